"""The port to a broker, for devices that can reach one; what stands behind it is handed in.

It speaks the model's words: events with a reach, subjects with an area.  Whatever comes down is checked again by the nucleus, so
a broker may send too much, but not too little.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from nearcast.model.area import Area
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.proximity.announcement import Announcement
from nearcast.proximity.event_type import Attributes

Arrived = Callable[[Event, Attributes], None]
"""An event has come down, of a type with these attributes."""


class Uplink(Protocol):
    def open(self, arrived: Arrived) -> None:
        """From now on events may come; nothing of what was said before an earlier ``close`` holds any more."""

    def close(self) -> None: ...

    def announce(self, announcement: Announcement) -> None:
        """Of one that moves, the broker knows where it is from each event."""

    def withdraw(self, announcement: Announcement) -> None: ...

    def subscribe(self, subject: str, areas: tuple[Area, ...]) -> None:
        """Events of that subject that matter here, and those from inside one of these areas.  Replaces an earlier one."""

    def unsubscribe(self, subject: str) -> None: ...

    def moved(self, position: Point) -> None: ...

    def publish(self, event: Event) -> None:
        """An event of an announced subject, with the reach that its proximity has now."""
