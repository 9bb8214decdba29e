"""An uplink over any link that reaches a ``ProximityBroker`` by its address, such as the cellular one."""

from __future__ import annotations

from typing import Final

from nearcast.errors import InvalidInput
from nearcast.model.area import Area
from nearcast.model.area_text import area_text
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.proximity.announcement import Announcement, lat_lon
from nearcast.proximity.messages import event_in, message_of, number_of
from nearcast.proximity.uplink import Arrived
from nearcast.proximity.uplink_messages import PORT, Downward, Farewell, Position, Registration, Upward
from nearcast.runtime.host import Component, Host
from nearcast.runtime.ports import Address, Cancellable, Endpoint

SAY_AGAIN: Final = 10.0
"""Seconds after which a broker that has lost or forgotten something knows it again."""


class LinkedUplink(Component):
    """A component of the device, before its ``ProximityService``, to which it is handed as the port ``Uplink``."""

    def __init__(self, broker: Address, interface: str = "cellular", port: int = PORT) -> None:
        self._broker: Final = broker
        self._interface: Final = interface
        self._port: Final = port
        self._announcements: dict[str, Announcement] = {}
        self._interests: dict[str, tuple[str, ...]] = {}
        self._place: Point | None = None
        self._said = 0
        self._endpoint: Endpoint | None = None
        self._again: Cancellable | None = None
        self._arrived: Arrived
        self._host: Host

    def start(self, host: Host) -> None:
        self._host = host

    # The port

    def open(self, arrived: Arrived) -> None:
        self._arrived = arrived
        self._announcements, self._interests, self._place = {}, {}, None
        self._endpoint = self._host.link(self._interface).open(self._port, self._receive, Downward)
        self._again = self._host.timers.every(SAY_AGAIN, self._register)

    def close(self) -> None:
        if self._endpoint is not None and self._again is not None:
            self._endpoint.send(self._broker, Farewell(self._now()))
            self._again.cancel()
            self._endpoint.close()
            self._endpoint = self._again = None

    def announce(self, announcement: Announcement) -> None:
        self._announcements[announcement.subject] = announcement
        self._register()

    def withdraw(self, announcement: Announcement) -> None:
        self._announcements.pop(announcement.subject, None)
        self._register()

    def subscribe(self, subject: str, areas: tuple[Area, ...]) -> None:
        self._interests[subject] = tuple(map(area_text, areas))
        self._register()

    def unsubscribe(self, subject: str) -> None:
        self._interests.pop(subject, None)
        self._register()

    def moved(self, position: Point) -> None:
        self._place = position
        if self._endpoint is not None and self._interests:  # nobody asks where a mere producer is
            self._endpoint.send(self._broker, Position(self._now(), (position.lat, position.lon)))

    def publish(self, event: Event) -> None:
        announcement = self._announcements.get(event.topic)
        if self._endpoint is not None and announcement is not None:
            message = message_of(event, number_of(event), announcement, 0, relay=False)
            self._endpoint.send(self._broker, Upward(message))

    # The link

    def _register(self) -> None:
        if self._endpoint is not None:
            registration = Registration(
                self._now(), tuple(self._announcements.values()), tuple(self._interests.items()), lat_lon(self._place)
            )
            self._endpoint.send(self._broker, registration)

    def _receive(self, _sender: Address, message: Downward) -> None:
        announcement = message.announcement
        try:
            event = event_in(message.event, announcement)
        except InvalidInput:
            return  # no event of the type that it is said to be
        self._arrived(event, announcement.event_type.attributes)

    def _now(self) -> int:
        """An instant, but never the same twice."""
        self._said = max(self._said + 1, self._host.now())
        return self._said
