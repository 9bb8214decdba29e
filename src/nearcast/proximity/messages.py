"""What devices say to each other: beacons in the discovery group, events in proximity groups, questions for missed events.

Links have no multicast groups of their own.  A broadcast carries the identifier of its group, and whoever is no member ignores it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Final

from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.model.value_text import tree_of_value, value_of_tree
from nearcast.proximity.announcement import Announcement, LatLon, lat_lon, point_of
from nearcast.proximity.event_type import EventType
from nearcast.runtime.messages import Message

Stream = tuple[str, str]
"""Producer and subject: its events are numbered."""


class Beacon(Message, frozen=True, tag="beacon"):
    """An announcement, said again and again (STEAM 4.5)."""

    producer: str
    said: Instant
    announcement: Announcement
    place: LatLon
    """Where the producer is now."""

    latest: int
    """The number of its newest event of that subject."""

    period: float
    """Seconds until the next one."""

    relay: bool
    """The proximity is larger than the radio's range: whoever is inside passes it on."""

    withdrawn: bool = False

    def __post_init__(self) -> None:
        point_of(self.place)  # refuses what is nowhere, before it gets any further


class RaisedMessage(Message, frozen=True, tag="proximity event"):
    """An event on its way through a proximity group."""

    group: int
    producer: str
    subject: str
    number: int
    published: Instant
    place: LatLon | None
    parameters: dict[str, Any]
    relay: bool
    copy: int = 0
    """An event that is sent again is passed on again."""

    announcement: Announcement | None = None
    """For the group of a consumer, which need not have heard of the producer."""


class Missed(Message, frozen=True, tag="missed events"):
    """A consumer that was cut off asks for what it missed, by numbers; both ends are included."""

    group: int
    consumer: str
    asked: Instant
    producer: str
    subject: str
    first: int
    last: int
    relay: bool


Spoken = RaisedMessage | Beacon | Missed
KINDS: Final = (Beacon, RaisedMessage, Missed)


def name_of(message: Spoken) -> Hashable:
    """The same for all copies of a message, and for no other."""
    match message:
        case RaisedMessage():
            return message.group, message.producer, message.subject, message.number, message.copy
        case Beacon():
            announcement = message.announcement
            return message.producer, announcement.subject, announcement.wanted, message.said
        case Missed():
            return message


def speaker_of(message: Spoken) -> str:
    return message.consumer if isinstance(message, Missed) else message.producer


def event_id(producer: str, subject: str, number: int) -> str:
    return f"{producer}/{subject}/{number}"


def number_of(event: Event) -> int:
    return int(event.id.rpartition("/")[2])


def event_of(
    event_type: EventType, announcement: Announcement, producer: str, number: int, published: Instant,
    position: Point | None, parameters: Mapping[str, object],
) -> Event:  # fmt: skip
    """An event of that type, raised there and then; ``InvalidEvent`` if it is none."""
    validity = event_type.attributes.validity
    return Event(
        event_id(producer, event_type.subject, number),
        event_type.subject,
        published,
        event_type.checked(parameters),
        publisher=producer,
        place=position if event_type.attributes.location else None,
        reach=announcement.reach(position),
        lifetime=None if validity is None else max(1, round(validity * MICROSECONDS)),
    )


def message_of(event: Event, number: int, announcement: Announcement, group: int, *, relay: bool) -> RaisedMessage:
    """The event, packed; of a proximity that moves, the place says where it is."""
    place = event.reach.center if announcement.moves and event.reach else event.place
    return RaisedMessage(
        group,
        event.publisher or "",
        event.topic,
        number,
        event.published,
        lat_lon(place),
        {name: tree_of_value(name, value) for name, value in event.attributes.items()},
        relay,
    )


def event_in(message: RaisedMessage, announcement: Announcement) -> Event:
    """The run-time type check: an event of the announced type, or ``InvalidInput`` (STEAM 4.4)."""
    parameters = {name: value_of_tree(tree) for name, tree in message.parameters.items()}
    place = None if message.place is None else point_of(message.place)
    return event_of(
        announcement.event_type, announcement, message.producer, message.number, message.published, place, parameters
    )
