"""Who should have got a message, and did not: false negatives (Def. 3.7, 3.9), as a run goes on.

Somebody who registers, changes or goes while a message is on its way may be missed by any protocol (3.3.2): only those count
whose context was settled when it was sent and is the same when it must have arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from nearcast.model.event import Event
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.overlay.handles import Handle
from nearcast.scenario.contextcast.network import RouterNetwork

SETTLING: Final = 10.0
"""Seconds: longer than an update or a message takes from one end of the network to the other."""

Settled = Callable[[Handle], bool]


class Audit:
    """Listens to what a network delivers; ``expect`` before each message that is to be audited."""

    def __init__(self, network: RouterNetwork, settling: float = SETTLING) -> None:
        self.settling: Final[Instant] = round(settling * MICROSECONDS)
        self.due = 0
        self.missed = 0
        self.messages = 0
        self._simulation: Final = network.simulation
        self._got: Final[dict[str, set[Handle]]] = {}
        network.listen(self._delivered)

    def expect(self, event: str, handles: Iterable[Handle], settled: Settled) -> None:
        """It is for these; those of them count who are ``settled`` still when all is over."""
        self.messages += 1
        self._got[event] = set()
        self._simulation.at(self._simulation.time + self.settling, self._judge, (event, tuple(handles), settled))

    @property
    def false_negatives(self) -> float:
        """The share of those due."""
        return self.missed / self.due if self.due else 0.0

    def _delivered(self, event: Event, handles: frozenset[Handle]) -> None:
        got = self._got.get(event.id)
        if got is not None:
            got |= handles

    def _judge(self, expected: tuple[str, tuple[Handle, ...], Settled]) -> None:
        event, handles, settled = expected
        got = self._got.pop(event)
        due = [handle for handle in handles if settled(handle)]
        self.due += len(due)
        self.missed += sum(handle not in got for handle in due)
