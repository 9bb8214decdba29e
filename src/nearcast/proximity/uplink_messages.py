"""What a device and the broker behind a link say to each other."""

from __future__ import annotations

from typing import Final

from nearcast.model.time import Instant
from nearcast.proximity.announcement import Announcement, LatLon
from nearcast.proximity.messages import RaisedMessage
from nearcast.runtime.messages import Message

PORT: Final = 21


class Registration(Message, frozen=True, tag="proximity registration"):
    """All that a device has announced and wants: said when it changes and now and then, so that nothing has to be acknowledged."""

    since: Instant
    """A later one replaces an earlier one, in whatever order they arrive."""

    announcements: tuple[Announcement, ...]
    interests: tuple[tuple[str, tuple[str, ...]], ...]
    """Subjects, and areas as ``model.area_text`` writes them."""

    place: LatLon | None


class Position(Message, frozen=True, tag="proximity position"):
    measured: Instant
    place: LatLon


class Upward(Message, frozen=True, tag="proximity publication"):
    event: RaisedMessage


class Downward(Message, frozen=True, tag="proximity notification"):
    """With the announcement: so a device needs to know nothing else to read it."""

    event: RaisedMessage
    announcement: Announcement


class Farewell(Message, frozen=True, tag="proximity farewell"):
    since: Instant


TO_BROKER: Final = (Registration, Position, Upward, Farewell)
