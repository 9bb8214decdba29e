"""What a device and the broker behind a link say to each other; what cannot be is refused where it is read."""

from __future__ import annotations

from typing import Final

from nearcast.model.area_text import area_in
from nearcast.model.time import Instant
from nearcast.proximity.announcement import Announcement, LatLon, point_of
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

    def __post_init__(self) -> None:
        for _, areas in self.interests:
            for area in areas:
                area_in(area)
        if self.place is not None:
            point_of(self.place)


class Position(Message, frozen=True, tag="proximity position"):
    measured: Instant
    place: LatLon

    def __post_init__(self) -> None:
        point_of(self.place)


class Upward(Message, frozen=True, tag="proximity publication"):
    event: RaisedMessage


class Downward(Message, frozen=True, tag="proximity notification"):
    """With the announcement: so a device needs to know nothing else to read it."""

    event: RaisedMessage
    announcement: Announcement


class Farewell(Message, frozen=True, tag="proximity farewell"):
    since: Instant


TO_BROKER: Final = (Registration, Position, Upward, Farewell)
