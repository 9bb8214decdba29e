"""Which events go by way of the cloud, which from host to host, and which both ways (BYPASS.KOM 4.3.2, Table 7)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Flag
from typing import Final

from nearcast.dissemination.carrier import CarriedEvents, Carrier
from nearcast.errors import InvalidPlan
from nearcast.model.event import Event
from nearcast.runtime.host import Host
from nearcast.transition.engine import HostEngine
from nearcast.transition.mechanism import Mechanism
from nearcast.transition.null import neutral
from nearcast.transition.specification import MechanismSpec


class Events(Flag):
    """Of a publisher: those that happened where it was, and those published to elsewhere, or to no place at all."""

    NONE = 0
    LOCAL = 1
    ELSEWHERE = 2
    ALL = 3


@dataclass(frozen=True, slots=True)
class Mode:
    """A row of the table."""

    ad_hoc: Events
    cloud: Events
    gateways: bool = False
    """Whether what the cloud carries goes by way of gateways, where it can."""


MODES: Final[Mapping[str, Mode]] = {
    "cloud": Mode(Events.NONE, Events.ALL),
    "adhoc": Mode(Events.ALL, Events.NONE),
    "offload": Mode(Events.LOCAL, Events.ELSEWHERE),
    "augment": Mode(Events.LOCAL, Events.ALL),
    "gateway": Mode(Events.LOCAL, Events.ALL, gateways=True),
    # Two that the table does not have: of old, everything by one hop of radio, alone or beside the cloud.
    "broadcast": Mode(Events.ALL, Events.NONE),
    "both": Mode(Events.ALL, Events.ALL),
}


PROXY: Final = "hybrid mode"
"""The proxy in which hosts that have both ways hold their mode: plans exchange it (BYPASS.KOM 5.3.2)."""


class Ways(Mechanism):
    """Which events of this host go which way."""

    @neutral(lambda: Events.NONE)
    @abstractmethod
    def by_radio(self) -> Events: ...

    @neutral(lambda: Events.NONE)
    @abstractmethod
    def by_cloud(self) -> Events: ...


class TableWays(Ways):
    """As a row of the table says."""

    def __init__(self, mode: Mode) -> None:
        self._mode: Final = mode

    def by_radio(self) -> Events:
        return self._mode.ad_hoc

    def by_cloud(self) -> Events:
        return self._mode.cloud


def ways_of(spec: MechanismSpec) -> Ways:
    if spec.name not in MODES or spec.parameters:
        raise InvalidPlan(f"there is no hybrid mode {str(spec)!r}; there are {', '.join(map(repr, MODES))}")
    return TableWays(MODES[spec.name])


class HybridEvents(CarriedEvents):
    """Each carrier takes the events that it is for; whatever way the first copy comes, the application sees it once.

    Where there are both ways, after ``HostEngine`` among the components of its host.
    """

    def __init__(
        self,
        mode: str,
        *,
        ad_hoc: Sequence[Carrier] = (),
        cloud: Sequence[Carrier] = (),
        others: Sequence[Carrier] = (),
    ) -> None:
        """``mode`` is that of the start; ``others`` bring events, and take none."""
        super().__init__([*cloud, *ad_hoc, *others])
        self._first: Final = MechanismSpec(mode)
        self._ad_hoc: Final = tuple(ad_hoc)
        self._cloud: Final = tuple(cloud)
        self._use(ways_of(self._first))

    def start(self, host: Host) -> None:
        super().start(host)
        if self._ad_hoc and self._cloud:  # who has one way only has nothing to choose
            engine = host.component(HostEngine).engine
            ways = engine.create_proxy(PROXY, Ways, ways_of, self._first)
            ways.changed = lambda: self._use(ways.active)

    def _use(self, ways: Ways) -> None:
        chosen = [(carrier, ways.by_cloud()) for carrier in self._cloud]
        chosen += [(carrier, ways.by_radio()) for carrier in self._ad_hoc]
        self._takes = {
            kind: tuple(carrier for carrier, takes in chosen if kind in takes)
            for kind in (Events.LOCAL, Events.ELSEWHERE)
        }

    def publish(self, event: Event, *, local: bool = False) -> None:
        for carrier in self._takes[Events.LOCAL if local else Events.ELSEWHERE]:
            carrier.carry(event, local=local)
