"""A broker for proximities: it knows where devices are, and so who stands in which proximity (spec 6; product.md).

It decides with a margin, because a device moves between two reports; the device itself has the last word.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from nearcast.errors import InvalidInput
from nearcast.model.area import Area
from nearcast.model.area_text import area_in
from nearcast.model.event import Event
from nearcast.model.geometry import Point, distance
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.proximity.announcement import Announcement, point_of
from nearcast.proximity.messages import event_in
from nearcast.proximity.uplink_messages import PORT, TO_BROKER, Downward, Farewell, Position, Registration, Upward
from nearcast.runtime.host import Component, Host
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, Endpoint


@dataclass(frozen=True, slots=True)
class BrokerStatistics:
    devices: int
    announcements: int
    published: int
    sent: int
    unannounced: int
    """Events of which the broker did not know, or no longer knew, what they are."""


@dataclass(slots=True)
class _Device:
    heard: Instant
    since: Instant = -1
    announcements: dict[str, Announcement] = field(default_factory=dict)
    interests: dict[str, tuple[Area, ...]] = field(default_factory=dict)
    place: Point | None = None
    measured: Instant = -1


class ProximityBroker(Component):
    def __init__(
        self, *, interface: str = "cellular", port: int = PORT, margin: float = 50.0, forget_after: float = 60.0
    ) -> None:
        """``margin``: metres that a device may have gone since its last report; ``forget_after``: seconds of silence."""
        self._interface: Final = interface
        self._port: Final = port
        self._margin: Final = margin
        self._forget_after: Final = forget_after
        self._devices: Final[dict[Address, _Device]] = {}
        self._published = self._sent = self._unannounced = 0
        self._host: Host
        self._endpoint: Endpoint

    def start(self, host: Host) -> None:
        self._host = host
        self._endpoint = host.link(self._interface).open(self._port, self._receive, *TO_BROKER)
        host.timers.every(self._forget_after / 4, self._forget_silent)

    def statistics(self) -> BrokerStatistics:
        announcements = sum(len(device.announcements) for device in self._devices.values())
        return BrokerStatistics(len(self._devices), announcements, self._published, self._sent, self._unannounced)

    def _receive(self, sender: Address, message: Message) -> None:
        device = self._devices.setdefault(sender, _Device(self._host.now()))
        device.heard = self._host.now()
        match message:
            case Upward():
                self._publish(sender, device, message)
            case Position() if message.measured > device.measured:
                device.place, device.measured = point_of(message.place), message.measured
            case Registration() if message.since > device.since:
                self._register(device, message)
            case Farewell() if message.since > device.since:
                # Not forgotten at once: an earlier registration that comes later must be known for what it is.
                device.announcements, device.interests, device.since = {}, {}, message.since

    def _register(self, device: _Device, message: Registration) -> None:
        device.since = message.since
        device.announcements = {each.subject: each for each in message.announcements}
        device.interests = {subject: tuple(map(area_in, areas)) for subject, areas in message.interests}
        if message.place is not None and message.since > device.measured:
            device.place, device.measured = point_of(message.place), message.since

    def _publish(self, sender: Address, device: _Device, message: Upward) -> None:
        announcement = device.announcements.get(message.event.subject)
        if announcement is None:
            self._unannounced += 1
            return
        try:
            event = event_in(message.event, announcement)
        except InvalidInput:
            self._unannounced += 1
            return
        self._published += 1
        receivers = [address for address in self._receivers(event) if address != sender]
        self._sent += len(receivers)
        self._endpoint.send_all(receivers, Downward(message.event, announcement))

    def _receivers(self, event: Event) -> Iterator[Address]:
        for address, device in self._devices.items():
            areas = device.interests.get(event.topic)
            if areas is None:
                continue
            place = device.place
            if place is None or self._near(event.reach, place):
                yield address  # who does not say where it is decides by itself
            elif event.place is not None:
                around = [area.anchored(place) for area in areas]
                if any(self._near(area, event.place) for area in around):
                    yield address

    def _near(self, area: Area | None, place: Point) -> bool:
        if area is None or area.covers(place):
            return True
        return distance(area.fixed_center(), place) <= area.bounding_radius() + self._margin

    def _forget_silent(self) -> None:
        oldest = self._host.now() - round(self._forget_after * MICROSECONDS)
        for address in [address for address, device in self._devices.items() if device.heard < oldest]:
            del self._devices[address]
