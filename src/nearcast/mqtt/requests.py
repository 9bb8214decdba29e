"""Subscriptions as SUBSCRIBE packets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

from nearcast.errors import InvalidInput, InvalidProperty, InvalidTopic
from nearcast.model.area import Area
from nearcast.model.area_text import area_in, area_text
from nearcast.model.cql2 import parse
from nearcast.model.normal_form import disjunctive_normal_form
from nearcast.model.predicate import Predicate
from nearcast.model.subscription import Subscription
from nearcast.model.time import Instant, TimeFrame
from nearcast.model.time import to_text as instant_text
from nearcast.model.topic import checked_topic_filter
from nearcast.mqtt import names
from nearcast.mqtt.observations import Observation, observation
from nearcast.mqtt.options import Properties, without_prefix

T = TypeVar("T")
LARGEST_BATCH: Final = 1_000_000
_SEPARATOR: Final = "\0"  # in no filter and no property: MQTT forbids it


@dataclass(frozen=True, slots=True)
class SubscriptionRequest:
    """One filter of a SUBSCRIBE, as it was read; ``since`` and ``until`` are still relative to now."""

    filter: str
    """As it was written, with ``$share`` and ``$near``: what UNSUBSCRIBE names."""
    topic: str
    """The plain topic filter in it."""
    group: str | None = None
    """Of a shared subscription."""
    area: Area | None = None
    where: str | None = None
    since: str | None = None
    """``None``: from now on; ``..``: from the beginning."""
    until: str | None = None
    batch: int | None = None
    """So many stored events, then wait for ``more``."""
    name: str = ""
    addressed: bool = False
    """It said something to nearcast: a property of its own, or the prefix."""
    observation: Observation | None = None
    """It asks to be told of clients, not of events."""

    @property
    def id(self) -> str:
        return subscription_id(self.filter, self.name)

    @property
    def begins_in_the_past(self) -> bool:
        return self.since is not None

    def subscription(
        self, now: Instant, qos: int = 0, *, no_local: bool = False, words: Words | None = None
    ) -> Subscription:
        """The subscription, made at that time."""
        frame = TimeFrame.parse("now" if self.since is None else self.since, self.until, now=now)
        where = self.where if self.where is None or words is None else words.where(self.where)
        return Subscription(self.topic, where, self.area, frame, self.id, qos, no_local)

    def resolved(self, now: Instant) -> SubscriptionRequest:
        """The same with instants instead of times relative to now: what can be kept, or sent again after a reconnect."""
        frame = TimeFrame.parse("now" if self.since is None else self.since, self.until, now=now)
        return replace(self, since=_bound(frame.since), until=None if frame.until is None else _bound(frame.until))

    def properties(self) -> Properties:
        """The user properties that say the same, beside a filter without options."""
        given = {
            names.AREA: None if self.area is None else area_text(self.area),
            names.WHERE: self.where,
            names.SINCE: self.since,
            names.UNTIL: self.until,
            names.BATCH: None if self.batch is None else str(self.batch),
            names.NAME: self.name or None,
        }
        if self.observation is not None:
            # It has no time frame: it begins when it is made.
            given |= {names.SINCE: None, **self.observation.properties()}
        return [(name, value) for name, value in given.items() if value is not None]


class Words:
    """Areas and filters of one SUBSCRIBE, which hold for all that it subscribes to: each is read once, also if it cannot be read.

    There is room for thousands of topic filters in a packet, and to read a polygon or a filter may take tens of milliseconds.
    """

    def __init__(self) -> None:
        self.area: Final = _Once(area_in)
        self.where: Final = _Once(_where)


class _Once(Generic[T]):
    def __init__(self, read: Callable[[str], T]) -> None:
        self._read: Final = read
        self._known: Final[dict[str, T | InvalidInput]] = {}

    def __call__(self, text: str) -> T:
        if text not in self._known:
            try:
                self._known[text] = self._read(text)
            except InvalidInput as error:
                self._known[text] = error
        found = self._known[text]
        if isinstance(found, InvalidInput):
            raise found.with_traceback(None)
        return found


def _where(text: str) -> Predicate:
    predicate = parse(text)
    disjunctive_normal_form(predicate)  # what a subscription refuses is refused here
    return predicate


def subscription_request(
    topic_filter: str, properties: Iterable[tuple[str, str]] = (), words: Words | None = None
) -> SubscriptionRequest:
    """Read one filter of a SUBSCRIBE, or the ``InvalidInput`` that says what is wrong with it."""
    topic, group, options = _taken_apart(topic_filter)
    own = _own(names.SUBSCRIBE_PROPERTIES, properties, options)
    text = own.get(names.AREA)
    area = None if text is None else (area_in if words is None else words.area)(text)
    observed = observation(topic, area, own)
    if observed is not None and group is not None:
        raise InvalidTopic("what one is told of other clients is for oneself: presence is not shared")
    return SubscriptionRequest(
        topic_filter,
        topic,
        group,
        area,
        own.get(names.WHERE),
        own.get(names.SINCE),
        own.get(names.UNTIL),
        _batch(own.get(names.BATCH)),
        own.get(names.NAME, ""),
        bool(own) or options is not None,
        observed,
    )


def unsubscribed_id(topic_filter: str, properties: Iterable[tuple[str, str]] = ()) -> str:
    """The id of the subscription that an UNSUBSCRIBE names."""
    _, _, options = _taken_apart(topic_filter)
    name = _own(names.UNSUBSCRIBE_PROPERTIES, properties, None).get(names.NAME, "")
    return subscription_id(topic_filter, name or dict(options or ()).get(names.NAME, ""))


def subscription_id(topic_filter: str, name: str = "") -> str:
    """What names a subscription among those of its client: its filter as written and the name given to it."""
    return f"{topic_filter}{_SEPARATOR}{name}" if name else topic_filter


def shared(topic_filter: str) -> tuple[str | None, str]:
    """Group and filter of ``$share/group/filter``; no group if it is not shared (MQTT 5, 4.8.2)."""
    if not topic_filter.startswith(names.SHARE):
        if topic_filter == names.SHARE[:-1]:
            raise InvalidTopic("$share needs a group and a filter: $share/<group>/<filter>")
        return None, topic_filter
    group, slash, rest = topic_filter[len(names.SHARE) :].partition("/")
    if not group or not slash or not rest:
        raise InvalidTopic(
            f"the shared subscription {topic_filter!r:.80} needs a group and a filter: $share/<group>/<filter>"
        )
    if "+" in group or "#" in group:
        raise InvalidTopic(
            f"the group {group!r:.60} of a shared subscription holds a wildcard; '+' and '#' are for the filter"
        )
    return group, rest


def _taken_apart(topic_filter: str) -> tuple[str, str | None, Properties | None]:
    group, topic = shared(topic_filter)
    options: Properties | None = None
    if topic.startswith(names.PREFIX):
        topic, options = without_prefix(topic, names.SUBSCRIBE_PROPERTIES)
        for name, _ in options:
            if name not in names.SUBSCRIBE_PROPERTIES:
                known = ", ".join(sorted(known.removeprefix(names.MARK) for known in names.SUBSCRIBE_PROPERTIES))
                raise InvalidProperty(f"{name!r:.60} is no option of a subscription; known: {known}")
    return checked_topic_filter(topic), group, options


def _own(known: frozenset[str], properties: Iterable[tuple[str, str]], options: Properties | None) -> Mapping[str, str]:
    own: dict[str, str] = {}
    for name, value in (*properties, *(options or ())):
        if not name.startswith(names.MARK):
            continue  # another program's
        if name not in known:
            raise InvalidProperty(f"{name!r:.60} cannot stand here; known: {', '.join(sorted(known))}")
        if name in own:
            raise InvalidProperty(f"{name} stands there twice; give it once")
        own[name] = value
    return own


def _batch(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()) or not 0 < len(text) <= 7 or not 0 < int(text) <= LARGEST_BATCH:
        raise InvalidProperty(f"{names.BATCH} is a whole number from 1 to {LARGEST_BATCH}, not {text!r:.60}")
    return int(text)


def _bound(at: Instant | None) -> str:
    return ".." if at is None else instant_text(at)
