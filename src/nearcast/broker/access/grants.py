"""One rule of the settings, as it is for one client: what it allows, and why it does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nearcast.broker.access.filters import filter_covers
from nearcast.model.area import Area
from nearcast.model.containment import surely_within
from nearcast.model.event import Event
from nearcast.model.subscription import Subscription
from nearcast.model.temporal import TemporalPredicate
from nearcast.model.time import Instant, duration_text
from nearcast.model.topic import topic_matches


@dataclass(frozen=True, slots=True)
class Grant:
    """Something is allowed if one grant allows all of it; parts of several are not put together."""

    rule: str
    """How messages name the rule."""

    publish: tuple[str, ...] = ()
    subscribe: tuple[str, ...] = ()
    within: Area | None = None
    reach_at_most: float | None = None
    history_at_most: int | None = None
    may_address: bool = False
    plans: bool = False
    query: bool = False
    observe: bool = False
    hand_in: bool = False
    people_per_hour: int | None = None
    counted_as: str = ""
    """Under which people are counted, whatever place the rule has among others; none: as messages name it."""

    @property
    def allows_plain(self) -> bool:
        """Whether it has nothing against an event without place, reach and addressing."""
        return self.within is None and self.reach_at_most is None

    def may_publish(self, topic: str) -> bool:
        return any(topic_matches(allowed, topic) for allowed in self.publish)

    def may_receive(self, topic: str) -> bool:
        return any(topic_matches(allowed, topic) for allowed in self.subscribe)

    def may_subscribe(self, topic_filter: str) -> bool:
        return any(filter_covers(allowed, topic_filter) for allowed in self.subscribe)

    def objections(self, event: Event) -> Iterator[str]:
        """What it has against an event on a topic that it allows."""
        if self.within is not None:
            yield from self._objections_to_place(event, self.within)
        if self.reach_at_most is not None:
            if event.reach is None:
                yield f"the event needs a reach of at most {self.reach_at_most:g} m: without one it would reach everybody"
            elif event.reach.bounding_radius() > self.reach_at_most * (1 + 1e-6):  # bounding radii are rounded up
                yield f"the reach goes {event.reach.bounding_radius():.0f} m far, and may at most {self.reach_at_most:g} m"
        if not self.may_address and (event.to is not None or event.when is not None):
            yield "it may not address receivers by their context (may_address)"
        if self.people_per_hour is not None and event.when is not None:
            yield "whoever was or will be somewhere cannot be counted before it is delivered (people_per_hour)"
        if self.history_at_most is not None and event.when is not None:
            horizon = event.published - self.history_at_most
            if looks_before(event.when, horizon):
                yield f"{event.when.relation} asks where receivers were more than {duration_text(self.history_at_most)} ago (history_at_most)"

    def objection_to(self, subscription: Subscription, now: Instant) -> str | None:
        """What it has against a subscription to a filter that it allows."""
        if self.history_at_most is None:
            return None
        since = subscription.frame.since
        if since is None or since < now - self.history_at_most:
            asked = "begins at the beginning of time" if since is None else f"begins {duration_text(now - since)} ago"
            return f"the subscription {asked}, and may at most {duration_text(self.history_at_most)} (history_at_most)"
        return None

    def objection_to_observing(self, area: Area) -> str | None:
        """What it has against watching an area, if it lets its clients observe."""
        if self.within is None:
            return None
        if area.is_relative:
            return "an area around a client may go beyond the permitted one (within)"
        return None if surely_within(self.within, area) else "the watched area goes beyond the permitted one (within)"

    @staticmethod
    def _objections_to_place(event: Event, permitted: Area) -> Iterator[str]:
        if event.place is None and event.reach is None:
            yield "the event needs a place or a reach within the permitted area"
        if event.place is not None and not permitted.covers(event.place):
            yield "its place is not within the permitted area"  # which place that is stays out of logs
        if event.reach is not None and not surely_within(permitted, event.reach):
            yield "its reach goes beyond the permitted area"


def looks_before(predicate: TemporalPredicate, horizon: Instant) -> bool:
    """Whether some context that ended at ``horizon`` or before could satisfy the predicate.

    Truth depends only on how the ends of the interval lie to the bounds.  Two points beside each of them, and beside the horizon,
    realise every such position; a tolerance only adds positions on both sides of a bound, so what it lets in between a bound and the
    horizon is there at one of the two.
    """
    marks = [horizon, *(bound for bound in (predicate.a, predicate.b) if bound is not None)]
    points = sorted({mark + shift for mark in marks for shift in range(-2, 3) if mark + shift <= horizon})
    return any(predicate.holds(start, end) for index, start in enumerate(points) for end in points[index + 1 :])
