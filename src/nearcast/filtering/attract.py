"""ATTRACT: one channel for each attraction point (BYPASS.KOM 4.2.4).

Points may overlap: a client belongs to all that it is in.  Between them there is either one more channel for everybody else
(``c_other``, the prototype's choice), or nothing: then those who are in none are left to another scheme (MULTI, partial transitions).
"""

from __future__ import annotations

from typing import Final

from nearcast.filtering.attraction import Zone, Zones
from nearcast.filtering.broker_half import Cloud
from nearcast.filtering.channels import Assigned, ChannelBroker, ChannelClient, UnknownChannels
from nearcast.filtering.client_half import Surroundings
from nearcast.filtering.context import NEVER
from nearcast.filtering.messages import ContextUpdate
from nearcast.model.geometry import Point
from nearcast.runtime.ports import Fix

OTHER: Final = "elsewhere"
"""The channel of whoever is at no attraction point (the document's c_other)."""


class Channels:
    """Which channels clients and events belong to: the rule that both halves share."""

    def __init__(self, zones: Zones, *, catch_all: bool, extension: float = 0.0) -> None:
        """Without ``extension``, whoever is near the border of a point misses what happens on the other side of it.

        So a channel takes in events from so many metres around its point, while clients belong to it only inside: "taking the
        radius of subscriptions into account when matching incoming events" (BYPASS.KOM 6.2.4).  Clients at no point have no
        border; their channel takes in all events but those that are farther than that inside a point.
        """
        self.zones: Final = zones
        self._around: Final = zones.extended(extension)
        self._cores: Final = Zones(
            Zone(zone.name, zone.center, zone.radius - extension) for zone in zones if zone.radius > extension
        )
        self._elsewhere: Final = (OTHER,) if catch_all else ()
        self.count: Final = len(zones) + len(self._elsewhere)

    def of(self, position: Point) -> tuple[str, ...]:
        """Those of a client."""
        return self.zones.at(position) or self._elsewhere

    def at(self, place: Point) -> tuple[str, ...]:
        """Those of an event."""
        channels = self._around.at(place)
        return channels if self._cores.at(place) else (*channels, *self._elsewhere)

    def __contains__(self, channel: object) -> bool:
        return channel in self.zones or channel in self._elsewhere


class AttractBroker(ChannelBroker):
    """Clients by attraction point."""

    def __init__(self, cloud: Cloud, channels: Channels, unknown_channels: UnknownChannels = "place") -> None:
        super().__init__(cloud, unknown_channels)
        self._channels: Final = channels

    @property
    def channel_count(self) -> int:
        return self._channels.count

    def _assign(self, position: Point, _radius: float) -> Assigned:
        channels = self._channels.of(position)
        # Where zones overlap, what is published belongs to all of them: its place says so, one channel cannot.
        return Assigned(channels, channels[0] if len(channels) == 1 else None)

    def _channels_at(self, place: Point) -> tuple[str, ...]:
        return self._channels.at(place)

    def _channels_tagged(self, channel: str, place: Point) -> tuple[str, ...]:
        # Of several channels that take an event in, its publisher can name only its own.
        return tuple(dict.fromkeys((channel, *self._channels.at(place))))

    def _is_known(self, channel: str) -> bool:
        return channel in self._channels


class AttractClient(ChannelClient):
    """Holds the geometry of all channels, and asks when it has entered or left one."""

    def __init__(self, surroundings: Surroundings, channels: Channels, *, enable_updates: bool = False) -> None:
        super().__init__(surroundings)
        self._channels: Final = channels
        self.enable_updates = enable_updates
        """Report positions all the same: gateways are chosen by them (BYPASS.KOM 5.3.2)."""

    def moved(self, fix: Fix) -> None:
        if self._stays(fix) and self.enable_updates:
            self._surroundings.say(ContextUpdate(fix.time, fix.position.lat, fix.position.lon))
        else:
            super().moved(fix)

    def _stays(self, fix: Fix) -> bool:
        # Who was never told anything is not known to be in no channel, where there is none for everybody else.
        return self._assigned_by != NEVER and self._channels.of(fix.position) == self.assigned
