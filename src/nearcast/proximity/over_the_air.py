"""From device to device: beacons in the discovery group, events in proximity groups (STEAM 4.2 to 4.5)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

import msgspec

from nearcast.errors import InvalidInput
from nearcast.model.event import Event
from nearcast.model.geometry import Point, distance
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.proximity.announcement import Announcement, point_of, range_from
from nearcast.proximity.discovery import Discovery, Relevant
from nearcast.proximity.event_type import Attributes
from nearcast.proximity.mechanism import Dissemination
from nearcast.proximity.messages import (
    KINDS,
    Beacon,
    Missed,
    RaisedMessage,
    Spoken,
    event_in,
    message_of,
    name_of,
    speaker_of,
)
from nearcast.proximity.nucleus import Interest, Local, Nucleus
from nearcast.proximity.outbox import Outbox, OutboxStatistics
from nearcast.proximity.recovery import Recovery
from nearcast.proximity.relay import Relay
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, Cancellable, Endpoint, Sending
from nearcast.transition.mechanism import Silence


@dataclass(frozen=True, slots=True)
class AirStatistics:
    relevant: int
    """Proximities that this device is in."""

    groups: int
    """Those of them that it is a member of."""

    forwarded: int
    ignored: int
    """Events of groups that it is no member of."""

    foreign: int
    """Events that came because two groups have the same identifier, and were thrown away."""

    sent_again: int
    """Events for others that had missed them."""

    outbox: OutboxStatistics


class OverTheAir(Dissemination):
    def __init__(self, nucleus: Nucleus, silence: Silence) -> None:
        host, settings = nucleus.host, nucleus.settings
        self._nucleus: Final = nucleus
        self._settings: Final = settings
        self._me: Final = host.name
        self._discovery: Final = Discovery(settings.identify, settings.forgotten_after)
        self._relay: Final = Relay(host.clock, host.timers, host.random("relay"), settings)
        self._outbox: Final = Outbox(host.clock, host.timers, silence.guarded(self._broadcast))
        self._endpoint: Endpoint | None = None
        self._heart: Cancellable | None = None
        self._recovery: Final = Recovery(nucleus, self._discovery, self._relay, self._outbox, self._spread)
        self._counts: Final[Counter[str]] = Counter()

    # Life

    def start_mechanism(self) -> None:
        if self._endpoint is None:  # or it was stopped a moment ago, and has not been closed yet
            host, settings = self._nucleus.host, self._settings
            self._endpoint = host.link(settings.interface).open(settings.port, self._receive, *KINDS)
            self._heart = host.timers.every(settings.beacon_period, self._beat)

    def bootstrap(self) -> None:
        self._say_all()

    def close(self) -> None:
        if self._endpoint is not None and self._heart is not None:
            self._heart.cancel()
            self._endpoint.close()
            self._endpoint = self._heart = None

    def statistics(self) -> AirStatistics:
        member = [each for each in self._discovery if not each.announcement.wanted and self._interested(each)]
        return AirStatistics(
            relevant=len(self._discovery),
            groups=len({each.group for each in member}),
            forwarded=self._relay.forwarded,
            ignored=self._counts["ignored"],
            foreign=self._counts["foreign"],
            sent_again=self._recovery.sent_again,
            outbox=self._outbox.statistics(),
        )

    # This device

    def announced(self, local: Local) -> None:
        self._say(local)

    def withdrawn(self, local: Local) -> None:
        self._say(local, withdrawn=True)

    def interested(self, interest: Interest) -> None:
        """Nobody has to be told: membership follows from the list of relevant proximities."""

    def uninterested(self, interest: Interest) -> None:
        """Nobody has to be told."""

    def carry(self, event: Event, number: int, local: Local) -> None:
        self._spread(event, number, local, copy=0)

    def _spread(self, event: Event, number: int, local: Local, copy: int) -> None:
        here, reach = self._nucleus.position(), event.reach
        if here is None or reach is None:
            return
        attributes = local.announcement.event_type.attributes
        message = message_of(
            event, number, local.announcement, local.group, relay=self._is_far(range_from(here, reach))
        )
        message = msgspec.structs.replace(message, copy=copy)
        until = _until(event, attributes)
        self._outbox.send(message, attributes.priority, until)
        for wanting in self._discovery.wanting(event.topic):
            if not wanting.covers(here) or (wanting.announcement.moves and reach.covers(wanting.place)):
                continue  # it does not concern that consumer, or it stands in the proximity and hears it anyway
            wide = range_from(here, wanting.announcement.reach(wanting.place))
            far = self._is_far(distance(here, wanting.place) if wanting.announcement.moves else wide)
            other = msgspec.structs.replace(message, group=wanting.group, relay=far, announcement=local.announcement)
            self._outbox.send(other, attributes.priority, until)

    def _is_far(self, metres: float) -> bool:
        """Single hop if P_R <= T_R (STEAM 4.3)."""
        return metres > self._settings.transmission_range

    # Beacons

    def _beat(self) -> None:
        for each in self._discovery.leave(self._nucleus.host.now(), self._nucleus.position()):
            self._left(each)
        self._say_all()

    def _say_all(self) -> None:
        for local in (*self._nucleus.locals.values(), *self._nucleus.wanted.values()):
            self._say(local)

    def _say(self, local: Local, *, withdrawn: bool = False) -> None:
        here, announcement = self._nucleus.position(), local.announcement
        if here is None:
            return
        reach = announcement.reach(here)
        if not reach.covers(here):
            return  # it left its stationary proximity, which is announced inside only (STEAM 4.5.2)
        relay, period = self._is_far(range_from(here, reach)), self._settings.beacon_period
        now = self._nucleus.host.now()
        beacon = Beacon(self._me, now, announcement, (here.lat, here.lon), local.latest, period, relay, withdrawn)
        self._outbox.send(beacon, announcement.event_type.attributes.priority)

    def _beacon(self, beacon: Beacon, here: Point) -> None:
        announcement, place = beacon.announcement, point_of(beacon.place)
        inside = announcement.reach(place).covers(here)
        before = self._discovery.find(beacon.producer, announcement.subject, wanted=announcement.wanted)
        found = self._discovery.hear(beacon, self._nucleus.host.now(), inside=inside)
        if inside and beacon.relay:
            self._relay.forward(lambda: self._outbox.send(beacon), here)
        if announcement.wanted:
            return
        self._nucleus.heard_of((beacon.producer, announcement.subject), place)
        if found is None and before is not None:
            self._left(before)
        elif found is not None and self._interested(found):
            self._recovery.catch_up(found, beacon.latest)

    def _left(self, relevant: Relevant) -> None:
        self._nucleus.numbers(relevant.stream).since = None

    def _interested(self, relevant: Relevant) -> bool:
        return relevant.announcement.subject in self._nucleus.interests

    # Events of others

    def _receive(self, _sender: Address, message: Spoken) -> None:
        # In a crowd nearly all are copies of what came before: nothing else is worth a look at the sensor.
        name = name_of(message)
        if self._relay.knows(name) or speaker_of(message) == self._me:
            return
        here = self._nucleus.position()
        if here is None:
            return
        if not isinstance(message, RaisedMessage):  # events of groups that it joins later may come again
            self._relay.remember(name)
        match message:
            case RaisedMessage():
                self._raised(message, here)
            case Beacon():
                self._beacon(message, here)
            case Missed():
                self._recovery.asked(message, here)

    def _raised(self, message: RaisedMessage, here: Point) -> None:
        announcement = self._read_by(message)
        if announcement is None:
            member = any(self._interested(each) for each in self._discovery.in_group(message.group))
            self._counts["foreign" if member else "ignored"] += 1
            return
        self._relay.remember(name_of(message))
        try:
            event = event_in(message, announcement)
        except InvalidInput:
            self._counts["foreign"] += 1
            return
        if message.relay and self._passes_on(message, event, here):
            origin = None if message.place is None else point_of(message.place)
            priority = announcement.event_type.attributes.priority
            until = _until(event, announcement.event_type.attributes)
            self._relay.forward(lambda: self._outbox.send(message, priority, until), here, origin)
        if message.subject in self._nucleus.interests:
            again = bool(message.copy)
            self._nucleus.arrived(event, message.number, announcement.event_type.attributes, again=again)

    def _read_by(self, message: RaisedMessage) -> Announcement | None:
        """The announcement that says what the event is; none for who is no member of its group."""
        known = self._discovery.in_group(message.group)
        if message.announcement is None:
            for each in known:
                of_this = each.producer == message.producer or not each.announcement.moves
                if of_this and _is_about(each.announcement, message, wanted=False) and self._interested(each):
                    return each.announcement
            return None
        wanted = [local.announcement for local in self._nucleus.wanted.values() if local.group == message.group]
        wanted += [each.announcement for each in known]
        return message.announcement if any(_is_about(each, message, wanted=True) for each in wanted) else None

    def _passes_on(self, message: RaisedMessage, event: Event, here: Point) -> bool:
        """Members inside the proximity do; for a consumer's own one, whoever is in it does."""
        if message.announcement is None:
            return event.reach is not None and event.reach.covers(here)
        return any(each.announcement.wanted and each.covers(here) for each in self._discovery.in_group(message.group))

    def _broadcast(self, message: Message) -> Sending:
        return Sending.DROPPED if self._endpoint is None else self._endpoint.broadcast(message)


def _is_about(announcement: Announcement, message: RaisedMessage, *, wanted: bool) -> bool:
    return announcement.wanted == wanted and announcement.subject == message.subject


def _until(event: Event, attributes: Attributes) -> Instant | None:
    """Later than that, sending the event is of no use to anybody."""
    ends = [round(attributes.deadline * MICROSECONDS)] if attributes.deadline is not None else []
    if event.lifetime is not None:
        ends.append(event.lifetime)
    return event.published + min(ends) if ends else None
