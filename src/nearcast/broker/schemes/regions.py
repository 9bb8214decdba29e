"""Regions with filter schemes of their own, as they are on disk."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from nearcast.errors import InvalidRecord
from nearcast.filtering.attraction import Zone
from nearcast.model.geometry import Point
from nearcast.planning.regional import Region
from nearcast.transition.specification import MechanismSpec


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    name: str
    lat: float
    lon: float
    radius: float
    scheme: MechanismSpec
    plan: str


def regions_bytes(regions: Iterable[Region]) -> bytes:
    kept = [
        _Kept(zone.name, zone.center.lat, zone.center.lon, zone.radius, region.scheme, region.plan)
        for region in regions
        for zone in (region.zone,)
    ]
    return msgspec.msgpack.encode(kept)


def regions_in(data: bytes) -> list[Region]:
    try:
        kept = msgspec.msgpack.decode(data, type=list[_Kept])
        return [
            Region(Zone(each.name, Point(each.lat, each.lon), each.radius), each.scheme, each.plan) for each in kept
        ]
    except (msgspec.DecodeError, ValueError) as error:  # the latter also of places and texts that are none
        raise InvalidRecord(f"regions cannot be read, and are better left out: {error}") from None
