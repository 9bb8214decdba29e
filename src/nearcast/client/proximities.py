"""Proximities through a broker that speaks MQTT: the port ``Uplink`` of ``nearcast.proximity``, over a client.

An event goes to the topic of its subject, with a reach that is larger than its proximity by a margin, because a device moves between two
reports of where it is; the device itself has the last word.  A consumer's own proximity asks for events whatever their reach is, which
no subscription can: for these, each event goes to a second topic, ``proximity/<subject>``, too, without a reach.

Who raised an event is in the event; a broker does not tell who published something.  Who may publish to such a topic is for its rules to say.

The broker keeps the session of a client with a name of its own: what it missed while it was cut off comes when it is back.  What a
producer could not say meanwhile it says again, for as long as the type's ``persistence``, under the same id, so that nothing is doubled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

import msgspec

from nearcast.client.client import Client
from nearcast.client.events import Events
from nearcast.errors import InvalidInput, NearcastError, TimedOut
from nearcast.model.area import Area, Circle
from nearcast.model.area_text import area_in
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS
from nearcast.proximity.announcement import Announcement
from nearcast.proximity.messages import event_in, message_of, number_of
from nearcast.proximity.uplink import Arrived
from nearcast.proximity.uplink_messages import Downward
from nearcast.runtime.host import Component, Host
from nearcast.runtime.messages import Codec, encoded

MARGIN: Final = 50.0
"""Metres that a device may have gone since its last report, as at a ``ProximityBroker``."""

PATIENCE: Final = 30.0
"""Seconds for which an event is tried whose type promises no persistence: those of an operation of a client."""

ANYWHERE: Final = "proximity/"
"""What the topic of events without a reach begins with."""

Wanted = tuple[str, Area | None]
"""A topic, and where its events must happen."""


@dataclass(frozen=True, slots=True)
class MqttUplinkStatistics:
    published: int
    received: int
    foreign: int
    """What came on such a topic and is no event of a proximity."""

    failed: int
    """Orders that the broker refused, or that could not be given in time."""

    waiting: int
    """Orders that have not been given yet."""


class MqttUplink(Component):
    """A component of a live device, before its ``ProximityService``, to which it is handed as the port ``Uplink``.

    The client belongs to whoever made it; its id must be the name of the device's host, by which others know its events.
    """

    def __init__(self, client: Client, *, margin: float = MARGIN) -> None:
        self._client: Final = client
        self._margin: Final = margin
        self._codec: Final[Codec[Downward]] = Codec(Downward)
        self._orders: Final[asyncio.Queue[Callable[[], Awaitable[object]] | None]] = asyncio.Queue()
        self._announcements: Final[dict[str, Announcement]] = {}
        self._wanted: Final[dict[str, tuple[Area, ...]]] = {}
        self._streams: Final[dict[Wanted, tuple[Events, asyncio.Task[None]]]] = {}
        self._arrived: Arrived | None = None
        self._published = self._received = self._foreign = self._failed = 0
        self._place: Point | None = None
        """Where this device is, as soon as it is its turn to be told."""

        self._told: Point | None = None
        self._worker: asyncio.Task[None] | None = None
        self.problem: NearcastError | None = None
        """Why the last order failed that did."""

        self._host: Host

    def start(self, host: Host) -> None:
        if self._client.client_id != host.name:
            raise InvalidInput(
                f"the client of device {host.name!r} has the id {self._client.client_id!r}; "
                f"others know events by the name of the device: connect(..., client_id={host.name!r})"
            )
        self._host = host
        self._worker = asyncio.create_task(self._work())

    def stop(self) -> None:
        """What has been ordered is still done."""
        self._orders.put_nowait(None)

    async def done(self) -> None:
        """Wait until there is nothing more to do, after the device has left; or failed, of which its components are not told."""
        if self._worker is not None:
            self.stop()
            await self._worker

    def statistics(self) -> MqttUplinkStatistics:
        return MqttUplinkStatistics(self._published, self._received, self._foreign, self._failed, self._orders.qsize())

    # The port

    def open(self, arrived: Arrived) -> None:
        self._arrived = arrived

    def close(self) -> None:
        self._arrived = None
        for subject in list(self._announcements):
            del self._announcements[subject]
            self._order(partial(self._client.unannounce, subject))
        self._wanted.clear()
        self._order(self._listen)

    def announce(self, announcement: Announcement) -> None:
        self._announcements[announcement.subject] = announcement
        area = area_in(announcement.area) if announcement.moves else announcement.reach(None)
        self._order(partial(self._client.announce, announcement.subject, area))

    def withdraw(self, announcement: Announcement) -> None:
        if self._announcements.pop(announcement.subject, None) is not None:
            self._order(partial(self._client.unannounce, announcement.subject))

    def subscribe(self, subject: str, areas: tuple[Area, ...]) -> None:
        self._wanted[subject] = areas
        self._order(self._listen)

    def unsubscribe(self, subject: str) -> None:
        self._wanted.pop(subject, None)
        self._order(self._listen)

    def moved(self, position: Point) -> None:
        # Only the newest: a client that is cut off has many of them to tell.
        if position != (self._told if self._place is None else self._place):
            waiting, self._place = self._place, position
            if waiting is None:
                self._order(self._tell_place)

    def publish(self, event: Event) -> None:
        announcement = self._announcements.get(event.topic)
        if announcement is not None:
            self._order(partial(self._say, event, announcement))

    # What is ordered is done in its turn

    def _order(self, order: Callable[[], Awaitable[object]]) -> None:
        self._orders.put_nowait(order)

    async def _work(self) -> None:
        while (order := await self._orders.get()) is not None:
            try:
                await order()
            except NearcastError as problem:
                self._failed += 1
                self.problem = problem
        for wanted in list(self._streams):
            with suppress(NearcastError):  # the client is cut off: the broker finds out by itself
                await self._end(wanted)

    async def _tell_place(self) -> None:
        place, self._place = self._place, None
        if place is not None:
            self._told = None  # until it has been heard
            await self._client.update(lat=place.lat, lon=place.lon)
            self._told = place

    async def _say(self, event: Event, announcement: Announcement) -> None:
        message = message_of(event, number_of(event), announcement, 0, relay=False)
        payload = encoded(Downward(message, announcement))
        reach = event.reach
        around = None if reach is None else Circle(reach.bounding_radius() + self._margin, reach.fixed_center())
        kept = max(announcement.event_type.attributes.persistence, PATIENCE)
        until = event.published + round(kept * MICROSECONDS)
        # Two ids: what comes under one that it knows, a broker takes for the same event.
        for topic, name, where in (
            (event.topic, event.id, around),
            (ANYWHERE + event.topic, ANYWHERE + event.id, None),
        ):
            await self._insist(
                partial(self._client.publish, topic, payload, id=name, place=event.place, reach=where), until
            )
        self._published += 1

    async def _insist(self, say: Callable[[], Awaitable[object]], until: int) -> None:
        while self._host.now() < until:
            try:
                await say()
            except TimedOut:
                continue
            return
        raise TimedOut("an event could not be said as long as it was worth saying")

    async def _listen(self) -> None:
        """To all that is wanted now, and to nothing else; what could not be asked for in time is asked for again."""
        try:
            await self._listen_now()
        except TimedOut:
            self._order(self._listen)
            raise

    async def _listen_now(self) -> None:
        wanted: set[Wanted] = {(subject, None) for subject in self._wanted}
        wanted |= {(ANYWHERE + subject, area) for subject, areas in self._wanted.items() for area in areas}
        for each in [each for each in self._streams if each not in wanted]:
            await self._end(each)
        for topic, area in sorted(wanted - self._streams.keys(), key=str):
            events = self._client.subscribe(topic, within=area, no_local=True, retained=False)
            await events.open()
            self._streams[topic, area] = events, asyncio.create_task(self._read(events))

    async def _end(self, wanted: Wanted) -> None:
        events, reading = self._streams.pop(wanted)
        reading.cancel()
        await events.close()

    async def _read(self, events: Events) -> None:
        try:
            async for event in events:
                self._take(event)
        except NearcastError as problem:  # the client was closed, or refused for good
            self.problem = problem

    def _take(self, event: Event) -> None:
        try:
            message = self._codec.decoded(event.payload)
            inside = event_in(message.event, message.announcement)
        except (msgspec.DecodeError, InvalidInput):
            self._foreign += 1
            return
        self._received += 1
        # As a callback of the host: whatever the application raises there is reported as ever.
        self._host.timers.after(0.0, partial(self._hand_over, inside, message.announcement))

    def _hand_over(self, event: Event, announcement: Announcement) -> None:
        if self._arrived is not None:
            self._arrived(event, announcement.event_type.attributes)
