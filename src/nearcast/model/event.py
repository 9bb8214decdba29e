"""Events: what is published, and whom and where it concerns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from nearcast.errors import InvalidEvent
from nearcast.model.area import Area
from nearcast.model.cql2 import parse_addressing
from nearcast.model.geometry import Point
from nearcast.model.normal_form import Conjunct, disjunctive_normal_form
from nearcast.model.predicate import Predicate
from nearcast.model.temporal import TemporalPredicate
from nearcast.model.time import Instant, instant, to_datetime
from nearcast.model.topic import checked_topic
from nearcast.model.values import Value, checked_value

RESERVED_PROPERTIES: Final = frozenset({"tags", "place", "published"})
"""Names under which a filter sees the parts of an event that are not attributes."""

_NO_ATTRIBUTES: Final[Mapping[str, Value]] = MappingProxyType({})
_NO_TAGS: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Event:
    """A published message.

    ``place`` is where it happened (receivers' areas of interest are tested against it), ``reach`` where it matters
    (receivers must stand inside), ``to`` whom it concerns (constraints on the receiver's context, as CQL2), ``when``
    the temporal predicate on that context (it may also stand in the text of ``to``, where its bounds may be relative
    to the publication: ``overlaps(time, '-10m', 'now')``).  A reach around the publisher must be anchored at the publisher's
    position when the event is made: it does not move afterwards.
    """

    id: str
    topic: str
    published: Instant
    attributes: Mapping[str, Value]
    tags: frozenset[str]
    payload: bytes
    publisher: str | None
    place: Point | None
    reach: Area | None
    to: Predicate | None
    when: TemporalPredicate | None
    lifetime: int | None
    """Microseconds after publication during which the event exists; ``None`` is for ever."""
    conjuncts: tuple[Conjunct, ...] = field(init=False, repr=False, compare=False)
    """``to`` in disjunctive normal form."""

    # By hand, because it takes more (CQL2 text, a written instant) than what the attributes hold afterwards.
    def __init__(
        self,
        id: str,  # noqa: A002 - the word for it
        topic: str,
        published: Instant | str | datetime,
        attributes: Mapping[str, Value] = _NO_ATTRIBUTES,
        tags: Iterable[str] = (),
        payload: bytes = b"",
        publisher: str | None = None,
        place: Point | None = None,
        reach: Area | None = None,
        to: Predicate | str | None = None,
        when: TemporalPredicate | None = None,
        lifetime: int | None = None,
    ) -> None:
        if not id:
            raise InvalidEvent("an event needs an id")
        for name, part, kind in (("place", place, Point), ("reach", reach, Area), ("when", when, TemporalPredicate)):
            if part is not None and not isinstance(part, kind):
                raise InvalidEvent(f"`{name}` must be a {kind.__name__}, not {part!r}")
        if isinstance(tags, str):
            raise InvalidEvent(f"`tags` are several texts; for one of them write [{tags!r}]")
        if reach is not None and reach.is_relative:
            raise InvalidEvent(
                "the reach is relative to its publisher, whose position is not known here; "
                "publish with a position, or use reach.anchored(position)",
            )
        if lifetime is not None and (isinstance(lifetime, bool) or not isinstance(lifetime, int) or lifetime <= 0):
            raise InvalidEvent(
                f"the lifetime must be a whole, positive number of microseconds, not {lifetime!r}; duration('5m') reads a text"
            )
        at = instant(published)
        if isinstance(to, str):
            to, found = parse_addressing(to, now=at)
            if found is not None and when is not None:
                raise InvalidEvent("the temporal predicate stands both in `to` and in `when`; keep one")
            when = found or when
        elif to is not None and not isinstance(to, Predicate):
            raise InvalidEvent(f"`to` must be a filter, as CQL2 text or parsed, not {to!r}")
        set_field = object.__setattr__
        set_field(self, "id", id)
        set_field(self, "topic", checked_topic(topic))
        set_field(self, "published", at)
        set_field(self, "attributes", checked_attributes(attributes, RESERVED_PROPERTIES))
        set_field(self, "tags", checked_value("tags", frozenset(tags)) if tags else _NO_TAGS)
        set_field(self, "payload", payload)
        set_field(self, "publisher", publisher)
        set_field(self, "place", place)
        set_field(self, "reach", reach)
        set_field(self, "to", to)
        set_field(self, "when", when)
        set_field(self, "lifetime", lifetime)
        set_field(self, "conjuncts", () if to is None else disjunctive_normal_form(to))

    def __reduce__(self) -> tuple[type[Event], tuple[Any, ...]]:
        """Events travel between processes; the read-only view of their attributes cannot."""
        parts = {part.name: getattr(self, part.name) for part in fields(self) if part.init}
        return type(self), tuple({**parts, "attributes": dict(self.attributes)}.values())

    def at(self, place: Point) -> Event:
        """The same event, as if it had happened there."""
        return self._with(place=place)

    def under(self, topic: str) -> Event:
        """The same event under another topic, which is not checked."""
        return self._with(topic=topic)

    def for_everybody(self) -> Event:
        """The same event as if its sender did not choose whom it reaches: what is left is a matter of interest."""
        if self.reach is None and self.to is None and self.when is None:
            return self
        return self._with(reach=None, to=None, when=None, conjuncts=())

    def _with(self, **changes: object) -> Event:
        # What is there was checked when it was made; checking it again would cost as much as matching.
        changed = object.__new__(Event)
        for part in Event.__slots__:
            object.__setattr__(changed, part, getattr(self, part))
        for part, value in changes.items():
            object.__setattr__(changed, part, value)
        return changed

    def properties(self) -> dict[str, Value]:
        """What a filter sees: the attributes, the tags (always), the instant, and the place if there is one."""
        properties: dict[str, Value] = dict(self.attributes)
        properties["tags"] = self.tags
        properties["published"] = to_datetime(self.published)
        if self.place is not None:
            properties["place"] = self.place
        return properties


def checked_attributes(attributes: Mapping[str, Value], reserved: frozenset[str]) -> Mapping[str, Value]:
    """Check names and values; the result is read-only and no longer shares anything with its source."""
    if not attributes:
        return _NO_ATTRIBUTES
    checked = {}
    for name, value in attributes.items():
        if not isinstance(name, str) or not name:
            raise InvalidEvent(f"an attribute name must be a non-empty text, not {name!r}")
        if name in reserved:
            raise InvalidEvent(f"the attribute name {name!r} is reserved; choose another")
        checked[name] = checked_value(name, value)
    return MappingProxyType(checked)


@dataclass(frozen=True, slots=True)
class Proximity:
    """STEAM's proximity: an area that a producer announces for a topic.

    With an ``anchor`` it is stationary; without one it moves with its producer, and every event raised in it gets
    the reach that the area has at that moment.
    """

    topic: str
    area: Area
    anchor: Point | None = None

    def __post_init__(self) -> None:
        checked_topic(self.topic)
        if not self.area.is_relative and self.anchor is not None:
            raise InvalidEvent("the area of this proximity is absolute already; give no anchor")

    @property
    def moves(self) -> bool:
        """Whether it goes with its producer instead of lying around an anchor."""
        return self.area.is_relative and self.anchor is None

    def reach(self, producer: Point | None) -> Area:
        """The area at the moment when the producer, standing at ``producer``, raises an event."""
        if not self.area.is_relative:
            return self.area
        at = self.anchor or producer
        if at is None:
            raise InvalidEvent("the proximity moves with its producer, whose position is not known")
        return self.area.anchored(at)
