"""What a client has told of itself: kept, so that it can be told again to a broker that has forgotten it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from nearcast.client.attributes import attributes_of
from nearcast.client.track import Own, Track, on_the_wire
from nearcast.errors import InvalidEvent, InvalidPosition, UnknownName
from nearcast.model.area import Area, Circle
from nearcast.model.area_text import area_text
from nearcast.model.event import Proximity
from nearcast.model.geometry import Point
from nearcast.model.time import Instant
from nearcast.model.topic import checked_topic
from nearcast.model.values import Value
from nearcast.mqtt.names import ReservedTopic
from nearcast.mqtt.observations import NOBODY, Consent
from nearcast.mqtt.positions import ContextReport, PositionReport, compact_position, context_payload

DEFAULT: Final = "default"
"""The context that ``update`` speaks of."""


@dataclass(frozen=True, slots=True)
class Statement:
    """Something to be told to the broker."""

    topic: str
    payload: bytes
    what: str


@dataclass(frozen=True, slots=True)
class Motion:
    """Where a client is and how it moves, as an application says it."""

    lat: float | None = None
    lon: float | None = None
    speed: float | None = None
    heading: float | None = None
    time: Instant | None = None
    accuracy: float | None = None

    def report(self) -> PositionReport | None:
        if self.lat is None and self.lon is None:
            if any(said is not None for said in (self.speed, self.heading, self.time, self.accuracy)):
                raise InvalidPosition("speed, heading, time and accuracy are those of a position; give lat and lon too")
            return None
        if self.lat is None or self.lon is None:
            raise InvalidPosition("a position has both lat and lon")
        point = on_the_wire(Point(self.lat, self.lon))
        return PositionReport(point, self.speed, self.heading, self.time, self.accuracy)


@dataclass(slots=True, eq=False)
class Presence:
    """One client."""

    now: Callable[[], Instant]
    own: Own = field(default_factory=Own)
    contexts: dict[str, dict[str, Value]] = field(default_factory=dict)
    accepts: bool = False
    consent: Consent = NOBODY
    announced: dict[str, Proximity] = field(default_factory=dict)

    @property
    def track(self) -> Track:
        return self.own.track

    def move(self, at: Instant, motion: Motion) -> PositionReport | None:
        """Remember where the client is now; the report that says so."""
        report = motion.report()
        if report is not None:
            self.track.add(at, report.point)
        return report

    def context(
        self, named: Mapping[str, object], exact: Mapping[str, object] | None, position: Point | None
    ) -> Statement | None:
        """Change some attributes of the default context; nothing to say if none is named."""
        if not named and not exact:
            return None
        given = attributes_of(
            {name: value for name, value in named.items() if value is not None},
            {name: value for name, value in (exact or {}).items() if value is not None},
        )
        gone = {name for name, value in (*named.items(), *(exact or {}).items()) if value is None}
        kept = {name: value for name, value in self.contexts.get(DEFAULT, {}).items() if name not in gone}
        return self.register(DEFAULT, {**kept, **given}, position)

    def register(self, name: str, attributes: dict[str, Value], position: Point | None = None) -> Statement:
        topic = _context_topic(name)
        payload = context_payload(ContextReport(attributes, position))
        self.contexts[name] = attributes
        self.own.changed(self.now(), self.contexts)
        return Statement(topic, payload, f"the context {name!r}")

    def deregister(self, name: str) -> Statement:
        if self.contexts.pop(name, None) is None:
            raise UnknownName(
                f"there is no context {name!r} to deregister; known: {', '.join(self.contexts) or 'none'}"
            )
        self.own.changed(self.now(), self.contexts)
        return Statement(_context_topic(name), b"", f"the end of the context {name!r}")

    def accept(self, accept: bool) -> Statement:
        self.accepts = accept
        return Statement(ReservedTopic.ACCEPT.topic, b"true" if accept else b"false", "the wish for addressed events")

    def observable(self, consent: Consent) -> Statement:
        self.consent = consent
        return Statement(ReservedTopic.OBSERVABLE.topic, consent.payload(), "who may observe this client")

    # Announcements

    def announce(self, topic: str, area: Area | float, at: Point | None) -> Statement:
        shape = area if isinstance(area, Area) else Circle(area)
        proximity = self.announced[topic] = Proximity(topic, shape, at)
        text = area_text(shape if at is None else shape.anchored(at))
        return Statement(_announcement(proximity.topic), text.encode(), f"the announcement of {topic!r}")

    def unannounce(self, topic: str) -> Statement:
        if self.announced.pop(topic, None) is None:
            raise UnknownName(f"{topic!r} was not announced; announced: {', '.join(self.announced) or 'nothing'}")
        return Statement(_announcement(topic), b"", f"the end of the announcement of {topic!r}")

    def reach(self, topic: str, reach: Area | float | None) -> Area | None:
        """The reach of an event on that topic, here and now."""
        here = self.track.newest
        if reach is None:
            announced = self.announced.get(topic)
            return None if announced is None else announced.reach(here)
        area = reach if isinstance(reach, Area) else Circle(reach)
        if not area.is_relative:
            return area
        if here is None:
            raise InvalidEvent(
                "the reach lies around this client, whose position is not known: call update(lat=..., lon=...) first, "
                "or say where it lies (area.anchored(at))"
            )
        return area.anchored(here)

    # Telling it again

    def everything(self) -> Iterator[Statement]:
        """All that a broker needs to be told that knows nothing of this client; its position, and who may know of it, apart."""
        for name, attributes in self.contexts.items():
            yield self.register(name, attributes)
        if self.accepts:
            yield self.accept(True)
        for topic, proximity in self.announced.items():
            yield self.announce(topic, proximity.area, proximity.anchor)


def position_statement(report: PositionReport | None) -> Statement:
    payload = b"" if report is None else compact_position(report)
    return Statement(ReservedTopic.POSITION.topic, payload, "the position")


def _context_topic(name: str) -> str:
    return checked_topic(ReservedTopic.CONTEXT.about(name))


def _announcement(topic: str) -> str:
    return checked_topic(ReservedTopic.ANNOUNCE.about(topic))
