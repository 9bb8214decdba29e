"""What algorithms that select gateways have in common: the API, and the ledger of who has served (BYPASS.KOM 4.3.4).

All that there is to remember is remembered here, at the broker.  Gateways know nothing of it, so that another algorithm takes over
without a word to any client, and goes on with the ledger of the one before.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from types import NoneType
from typing import Annotated, Final

import msgspec

from nearcast.dissemination.gateways.candidate import Candidate, Distances, distances
from nearcast.dissemination.gateways.shares import relative_batteries, shared
from nearcast.runtime.ports import Address
from nearcast.transition.mechanism import Mechanism
from nearcast.transition.null import neutral
from nearcast.transition.state import Transferred

_COMPLETE: Final = 1.0 - 1e-9
"""Shares add up to whole turns, but for what is lost in rounding."""

BATTERY: Final = msgspec.Meta(
    ge=0, le=10, description="how much remaining battery counts: 0 not at all, 1 in proportion, 2 as its square"
)
RANGE: Final = msgspec.Meta(gt=0, extra={"dimension": "length"}, description="how far a gateway is heard")
RADIO_RANGE: Final = 88.0
"""Metres (BYPASS.KOM 6.1.3)."""


@dataclass(frozen=True, slots=True)
class Service:
    """How a client has served, in LEACH's terms.

    LEACH counts rounds for everybody: ``P * (r mod 1/P)`` says how much of an epoch is over.  Events concern different clients, and
    not the same number of them each time.  So each client has an epoch of its own, in which it is a candidate often enough to
    serve once: the sum of its shares ``P``.  If all are candidates each time, that is LEACH's.
    """

    times: int = 0
    """It was a gateway so often."""

    last: int = 0
    """The round in which it last was; 0: never."""

    epoch: float = 0.0
    """How much of its epoch is over, below 1."""

    owed: int = 1
    """Turns that it still has to serve in its epoch; below 0 if it has served ahead of its turn."""

    @property
    def ahead(self) -> float:
        """How often it has served beyond its share; below 0: others have served in its place."""
        return 1.0 - self.owed - self.epoch

    def after(self, rounds: int, share: float, *, serves: bool) -> Service:
        """It was a candidate in that round, and was to serve with that share of a turn."""
        over = self.epoch + share
        ended = over >= _COMPLETE
        return Service(
            self.times + serves,
            rounds if serves else self.last,
            max(0.0, over - 1.0) if ended else over,
            self.owed - serves + ended,
        )


@dataclass(frozen=True, slots=True)
class SelectionStatistics:
    rounds: int
    clients: int
    """That the ledger knows."""

    served: int
    """How often clients were gateways, all together."""


class GatewaySelection(Mechanism):
    """Says which candidates are gateways, and whom each of them serves."""

    services: Annotated[dict[str, Service], Transferred(per_member=True)]
    """The ledger, by client."""

    rounds: Annotated[int, Transferred()]
    """How often somebody was to be chosen."""

    def __init__(self, battery: float) -> None:
        self.services = {}
        self.rounds = 0
        self._battery: Final = battery

    @property
    @neutral(bool)
    def weighs_batteries(self) -> bool:
        """Whether it wants to know of batteries."""
        return self._battery > 0.0

    @neutral(dict)
    def select(self, candidates: Sequence[Candidate], k: int) -> dict[Address, tuple[Address, ...]]:
        """The gateways, about k of them, with those whom they serve: each candidate is one or the other, once.

        Nobody if there are no candidates, or if k is 0.
        """
        if not candidates or k < 1:
            return {}
        k = min(k, len(candidates))
        self.rounds += 1
        between = distances(candidates)
        weights = relative_batteries([each.battery for each in candidates], self._battery)
        served = self._select(candidates, between, shared(k, weights), k)
        self._note(candidates, served, shared(self._turns(k, len(served)), weights))
        return {
            candidates[gateway].address: tuple(candidates[member].address for member in members)
            for gateway, members in served.items()
        }

    @neutral(NoneType)
    def forget(self, client: Address) -> None:
        """The client is gone."""
        self.services.pop(client, None)

    @neutral(lambda: SelectionStatistics(0, 0, 0))
    def statistics(self) -> SelectionStatistics:
        served = sum(service.times for service in self.services.values())
        return SelectionStatistics(self.rounds, len(self.services), served)

    @abstractmethod
    def _select(
        self, candidates: Sequence[Candidate], between: Distances, shares: Sequence[float], k: int
    ) -> dict[int, list[int]]:
        """Gateways with those whom they serve, as numbers of candidates; ``shares`` are those of the candidates in k turns."""

    def _turns(self, _k: int, gateways: int) -> float:
        """The turns of a round in which there were so many gateways."""
        return gateways

    def _service(self, candidate: Candidate) -> Service:
        return self.services.get(candidate.address, NEW)

    def _note(self, candidates: Sequence[Candidate], served: dict[int, list[int]], shares: Sequence[float]) -> None:
        for index, candidate in enumerate(candidates):
            after = self._service(candidate).after(self.rounds, shares[index], serves=index in served)
            self.services[candidate.address] = after


NEW: Final = Service()
"""Of a client that was never a candidate."""


class Algorithm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of an algorithm: its fields (``transition.registry`` says how they are declared)."""

    @abstractmethod
    def selection(self, random: Random) -> GatewaySelection:
        """All algorithms draw from one stream, which outlives them."""
