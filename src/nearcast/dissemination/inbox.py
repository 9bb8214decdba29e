"""The receiving end of every mechanism: each event once, and only what was asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from nearcast.dissemination.publisher import LocationRequest, Notify, Tally
from nearcast.dissemination.wire import EventMessage, event_in
from nearcast.model.acceptance import accepted, wanted
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.model.time import EVER, Instant
from nearcast.runtime.host import Host
from nearcast.runtime.ports import Cancellable
from nearcast.runtime.recent import Recent

NotificationRow = tuple[Instant, str, str, str, str, int, int]
NOTIFICATION_COLUMNS: Final = 7
DELIVERED: Final = "delivered"
DUPLICATE: Final = "duplicate"
UNWANTED: Final = "unwanted"


@dataclass(frozen=True, slots=True)
class Interest:
    """A subscription of this host."""

    subscription: Subscription
    notify: Notify
    request: LocationRequest | None


@dataclass(frozen=True, slots=True)
class InboxStatistics:
    delivered: int
    duplicates: int
    unwanted: int


class Inbox:
    """The interests of one host, the last check against them, and the memory of what came already."""

    # Hundreds of inboxes take turns: what lies together is fetched together.
    __slots__ = (
        "_delivered",
        "_duplicates",
        "_held",
        "_host",
        "_name",
        "_notifications",
        "_now",
        "_patient",
        "_position",
        "_recent",
        "_taken",
        "_told_of_patience",
        "_unwanted",
        "_within",
        "interests",
        "notification_rows",
    )

    def __init__(self, host: Host) -> None:
        self.interests: Final[dict[str, Interest]] = {}
        self._patient = True
        self._told_of_patience: Final[list[Callable[[bool], None]]] = []
        self._host: Final = host
        self._now: Final = host.clock.now
        self._name: Final = host.name
        self._position: Final = host.position
        self._within: Final = host.sensor.within if host.sensor else _never_sure
        # As they were when an event came: who is notified may end an interest.
        self._held: tuple[_Check, ...] = ()
        self._recent: Final = Recent()
        self._delivered = self._duplicates = self._unwanted = 0
        self._notifications: Final = host.observers.emitter("notifications")
        self.notification_rows: Final = host.observers.rows_emitter("notifications", NOTIFICATION_COLUMNS)
        # No table of the records: for whoever wants to know what a client wants, before any broker knows.
        self._taken: Final = host.observers.emitter("interests")

    def add(self, interest: Interest, cancelled: Callable[[str], None] | None = None) -> Cancellable:
        """Take an interest, in place of an earlier one of that id; ``cancelled(id)`` is called when it ends."""
        if self._host.observers.watching:
            self._host.observers.refuse("subscribe")
        self.interests[interest.subscription.id] = interest
        self._changed()
        self._taken(self._host.name, interest.subscription.id, interest.subscription)
        return _Held(self, interest, cancelled)

    def end(self, interest: Interest) -> bool:
        """Give an interest up; false if it has ended already."""
        if self._host.observers.watching:
            self._host.observers.refuse("unsubscribe")
        name = interest.subscription.id
        if self.interests.get(name) is not interest:
            return False
        del self.interests[name]
        self._changed()
        self._taken(self._host.name, name, None)
        return True

    def _changed(self) -> None:
        self._held = tuple(map(_check, self.interests.values()))
        patient = all(type(interest.notify) is Tally for interest in self.interests.values())
        if patient != self._patient:
            self._patient = patient
            for tell in self._told_of_patience:
                tell(patient)

    def when_patience_changes(self, tell: Callable[[bool], None]) -> None:
        """Tell whether those who are notified only count, so that this need not hear of events at once: now, and when it changes."""
        self._told_of_patience.append(tell)
        tell(self._patient)

    def wants(self, event: Event) -> bool:
        """Whether one of this host's interests matches the event now, whoever published it; nobody is notified."""
        position = self._position()
        return any(wanted(subscription, event, "", position) for subscription, *_ in self._held)

    def receive(self, event: Event, path: str, hops: int) -> str:
        """A copy of an event has reached this host; answers what came of it."""
        row = self.judged(event, path, hops)
        self._notifications(*row)
        return row[4]

    @staticmethod
    def receive_all(arrivals: Iterable[tuple[Inbox, EventMessage]], path: str, hops: int) -> None:
        """Copies of events have reached several hosts, all of them patient; while they are gone through, the clock shows when."""
        values: list[object] = []
        for inbox, message in arrivals:
            values += inbox.judged(event_in(message), path, hops)
        inbox.notification_rows(values)

    def judged(self, event: Event, path: str, hops: int) -> NotificationRow:
        """What comes of such a copy: it is remembered, whoever wants it is notified, and this is its row for the records."""
        now, name, outcome = self._now(), event.id, UNWANTED
        recent = self._recent
        if now >= recent.turn:
            recent.forget(now)
        before = len(recent)
        recent.setdefault(name, recent.turn)  # ``Recent.add``, without the call
        if len(recent) == before:
            outcome = DUPLICATE
            self._duplicates += 1
        else:
            place = event.place if event.reach is None else None
            position: Point | None = None
            asked = False
            for subscription, notify, metres, topic in self._held:
                near = self._within(metres, place) if place is not None and metres is not None else None
                if near is None:
                    if not asked:  # once for all interests: a sensor with errors says something else each time
                        position, asked = self._position(), True
                    wants = wanted(subscription, event, self._name, position)
                else:
                    # In the right place, or not, beyond doubt: no need to know where exactly.
                    wants = near and (
                        (topic == event.topic and event.publisher != self._name)
                        or accepted(subscription, event, self._name)
                    )
                if wants:
                    outcome = DELIVERED
                    notify(event)
            if outcome is DELIVERED:
                self._delivered += 1
            else:
                self._unwanted += 1
        delay = now - event.published
        return now, name, self._name, path, outcome, delay if delay > 0 else 0, hops

    def statistics(self) -> InboxStatistics:
        return InboxStatistics(self._delivered, self._duplicates, self._unwanted)


_Check = tuple[Subscription, Notify, float | None, str | None]
"""What the last check needs of an interest; the metres are those around this host, if its area is such a circle; the topic is
what it asks for beside the place, if that is all."""


def _check(interest: Interest) -> _Check:
    area = interest.subscription.area
    around = area.radius if isinstance(area, Circle) and area.center is None else None
    subscription = interest.subscription
    only = subscription.topic if subscription.frame is EVER and subscription.where is None else None
    return subscription, interest.notify, around, only


def _never_sure(_metres: float, _place: Point) -> None:
    """Whether a host without a sensor is near."""


@dataclass(eq=False, slots=True)
class _Held(Cancellable):
    inbox: Inbox
    interest: Interest
    cancelled: Callable[[str], None] | None

    def cancel(self) -> None:
        if self.inbox.end(self.interest) and self.cancelled:
            self.cancelled(self.interest.subscription.id)
