"""Which events go by way of the cloud, which from host to host, and which both ways (BYPASS.KOM 4.3.2, Table 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Flag
from typing import Final

from nearcast.dissemination.carrier import CarriedEvents, Carrier
from nearcast.model.event import Event


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


class HybridEvents(CarriedEvents):
    """Each carrier takes the events that it is for; whatever way the first copy comes, the application sees it once."""

    def __init__(self, carriers: Sequence[tuple[Carrier, Events]]) -> None:
        super().__init__([carrier for carrier, _ in carriers])
        self._takes: Final = tuple(carriers)

    def publish(self, event: Event, *, local: bool = False) -> None:
        kind = Events.LOCAL if local else Events.ELSEWHERE
        for carrier, takes in self._takes:
            if kind in takes:
                carrier.carry(event, local=local)
