"""Links by UDP on which hosts hear each other only within a range, as if they were out in the street: for ten processes on one desk.

Every datagram ends with where its sender is, and who is too far away does not hear it.  So STEAM emulated its radios (5: "an entity
discards all communication messages received from entities located beyond T_R").
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from nearcast.errors import InvalidInput
from nearcast.model.geometry import Point, distance
from nearcast.runtime.live.sensor import NewestFix
from nearcast.runtime.live.udp import LARGEST, Station, UdpLink, UdpNetwork

_PLACE: Final = struct.Struct(">dd")


@dataclass(frozen=True, slots=True, kw_only=True)
class RangedNetwork(UdpNetwork):
    """The network as a host at that place sees it."""

    radius: float
    """Metres."""

    position: NewestFix

    def __post_init__(self) -> None:
        UdpNetwork.__post_init__(self)
        if not self.radius > 0:
            raise InvalidInput(f"a radio with a range of {self.radius} m cannot be")

    def attach(self, station: Station) -> RangedLink:
        return RangedLink(self, station)


class RangedLink(UdpLink):
    """One host's interface to it."""

    def __init__(self, network: RangedNetwork, station: Station) -> None:
        super().__init__(network, station)
        self._ranged: Final = network
        self.largest = LARGEST - 1 - _PLACE.size
        self.unheard = 0
        """Datagrams of hosts that were too far away."""

    def packed(self, data: bytes) -> bytes:
        here = self._here()
        # Who does not know where it is, nobody can hear.
        return data + (_PLACE.pack(here.lat, here.lon) if here else _PLACE.pack(float("nan"), 0.0))

    def unpacked(self, data: bytes) -> bytes | None:
        if len(data) <= _PLACE.size:
            return b""
        here, there = self._here(), _place(data)
        if here is None or there is None or distance(here, there) > self._ranged.radius:
            self.unheard += 1
            return None
        return data[: -_PLACE.size]

    def _here(self) -> Point | None:
        fix = self._ranged.position()
        return fix.position if fix else None


def _place(data: bytes) -> Point | None:
    try:
        return Point(*_PLACE.unpack(data[-_PLACE.size :]))
    except InvalidInput:
        return None
