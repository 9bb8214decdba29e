"""What the benchmark asks of a peer.

A question goes through three steps, of which only the middle one is measured: ``prepare`` brings events into the
form that the peer likes best, ``query`` asks and waits for the whole answer, ``pairs`` reads it.  So no peer pays
for a slow client library, for text that must be parsed, or for projecting coordinates.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from nearcast.benchmark.peers.started import Started

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nearcast.benchmark.workload import City


class Pairs(NamedTuple):
    """Event ``event[i]`` of the batch reaches client ``client[i]``."""

    event: NDArray[np.int64]
    client: NDArray[np.int64]


class Peer(Started):
    """A system under test; starting it also loads the clients of the city."""

    name: ClassVar[str]
    batch: ClassVar[int] = 1024
    """How many events in one question suit this peer best."""

    @staticmethod
    @abstractmethod
    def available() -> str | None:
        """Why this peer cannot run here, or ``None`` if it can."""

    def __init__(self, world: City) -> None:
        self.world = world

    @abstractmethod
    def prepare(self, start: int, stop: int) -> Any:
        """Events ``start`` to ``stop`` of the city, ready to be asked for (not measured)."""

    @abstractmethod
    def query(self, request: Any) -> Any:
        """Everybody within the radius of each of these events (measured)."""

    @abstractmethod
    def pairs(self, reply: Any) -> Pairs:
        """What the reply says (not measured)."""

    def version(self) -> str:
        return "unknown"
