"""BANDS: the ground is cut into bands from west to east, each a channel; a client has all that its area of interest meets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Final

from msgspec import Meta

from nearcast.filtering.broker_half import BrokerHalf, Cloud
from nearcast.filtering.channels import Assigned, ChannelBroker, ChannelClient, UnknownChannels
from nearcast.filtering.client_half import ClientHalf, Surroundings
from nearcast.filtering.scheme import LENGTH, Scheme, Territory
from nearcast.model.geometry import EARTH_RADIUS, Point
from nearcast.runtime.ports import Fix


@dataclass(frozen=True)
class Cut:
    """The rule that both halves share."""

    south: float
    height: float
    count: int

    def band_of(self, place: Point) -> str:
        return str(self._number(place.lat))

    def around(self, place: Point, radius: float) -> tuple[str, ...]:
        # A hair more: who is right at the border of a band is in both.
        reach = math.degrees((radius + 1e-3) / EARTH_RADIUS)
        return tuple(map(str, range(self._number(place.lat - reach), self._number(place.lat + reach) + 1)))

    def _number(self, lat: float) -> int:
        metres = math.radians(lat - self.south) * EARTH_RADIUS
        return min(self.count - 1, max(0, math.floor(metres / self.height)))


class BandsBroker(ChannelBroker):
    def __init__(self, cloud: Cloud, unknown_channels: UnknownChannels, cut: Cut) -> None:
        super().__init__(cloud, unknown_channels)
        self._cut: Final = cut

    @property
    def channel_count(self) -> int:
        return self._cut.count

    def _assign(self, position: Point, radius: float) -> Assigned:
        return Assigned(self._cut.around(position, radius), self._cut.band_of(position))

    def _channels_at(self, place: Point) -> tuple[str, ...]:
        return (self._cut.band_of(place),)

    def _is_known(self, channel: str) -> bool:
        return channel.isdecimal() and int(channel) < self._cut.count


class BandsClient(ChannelClient):
    def __init__(self, surroundings: Surroundings, cut: Cut) -> None:
        super().__init__(surroundings)
        self._cut: Final = cut

    def _stays(self, fix: Fix) -> bool:
        needed = self._cut.around(fix.position, self._surroundings.radius())
        return set(needed) <= set(self.assigned) and self.own == self._cut.band_of(fix.position)


class Bands(Scheme, frozen=True, kw_only=True):
    """The world is cut into bands; a client gets what happens in all that its area of interest meets."""

    height: Annotated[float, Meta(ge=1, extra=LENGTH, description="of a band")] = 200.0

    def broker_half(self, territory: Territory, cloud: Cloud) -> BrokerHalf:
        return BandsBroker(cloud, territory.unknown_channels, self._cut(territory))

    def client_half(self, territory: Territory, surroundings: Surroundings) -> ClientHalf:
        return BandsClient(surroundings, self._cut(territory))

    def _cut(self, territory: Territory) -> Cut:
        box = territory.box
        metres = math.radians(box.north - box.south) * EARTH_RADIUS
        return Cut(box.south, self.height, math.ceil(metres / self.height))
