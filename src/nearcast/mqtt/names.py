"""The names of the wire contract: properties, the prefix, and the topics that nearcast keeps for itself."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from nearcast.errors import InvalidTopic

MARK: Final = "nc-"
"""Every user property that begins so belongs to nearcast."""

ID: Final = "nc-id"
PLACE: Final = "nc-place"
REACH: Final = "nc-reach"
TO: Final = "nc-to"
WHEN: Final = "nc-when"
TAG: Final = "nc-tag"
CHANNEL: Final = "nc-channel"
PUBLISHED: Final = "nc-published"
PUBLISH_PROPERTIES: Final = frozenset({ID, PLACE, REACH, TO, WHEN, TAG, CHANNEL})
"""What a publisher may say; of these only ``nc-tag`` may be repeated."""
PAST: Final = "nc-past"
"""``n of x`` on the last stored event of a batch; more of them come on request if n is less than x."""
DELIVERY_PROPERTIES: Final = (PUBLISH_PROPERTIES - {CHANNEL}) | {PUBLISHED, PAST}

AREA: Final = "nc-area"
WHERE: Final = "nc-where"
SINCE: Final = "nc-since"
UNTIL: Final = "nc-until"
BATCH: Final = "nc-batch"
NAME: Final = "nc-name"
STAY: Final = "nc-stay"
AROUND: Final = "nc-around"
SUBSCRIBE_PROPERTIES: Final = frozenset({AREA, WHERE, SINCE, UNTIL, BATCH, NAME, STAY, AROUND})
UNSUBSCRIBE_PROPERTIES: Final = frozenset({NAME})

SCHEMES: Final = "nc-schemes"
HERE: Final = "here"
"""The value of ``nc-place`` that stands for the publisher's known position."""

PREFIX: Final = "$near/"
"""``$near/<options>/<topic or filter>``: properties for clients that cannot send any (MQTT 3.1.1)."""

SHARE: Final = "$share/"
RESERVED: Final = "$nearcast/"


class ReservedTopic(enum.Enum):
    """What stands after ``$nearcast/``; a slash at the end: something follows."""

    POSITION = "position"
    CONTEXT = "context/"
    ACCEPT = "accept"
    UNPUBLISH = "unpublish"
    MORE = "more/"
    ENOUGH = "enough/"
    ANNOUNCE = "announce/"
    SCHEME = "scheme"
    PROBLEMS = "problems"
    OBSERVABLE = "observable"
    PRESENCE = "presence/"

    @property
    def topic(self) -> str:
        return RESERVED + self.value

    def about(self, rest: str) -> str:
        """The topic for one context, filter or topic.

        A filter may hold wildcards, which MQTT forbids in the topic of a PUBLISH: they are percent-encoded.
        """
        return self.topic + (quote(rest, safe="/") if self in _OF_FILTERS else rest)


_OF_FILTERS: Final = frozenset({ReservedTopic.MORE, ReservedTopic.ENOUGH})
_EXACT: Final = {kind.topic: kind for kind in ReservedTopic if not kind.value.endswith("/")}
_OPEN: Final = tuple(kind for kind in ReservedTopic if kind.value.endswith("/"))


@dataclass(frozen=True, slots=True)
class Reserved:
    """A topic that nearcast keeps for itself, taken apart."""

    kind: ReservedTopic
    rest: str = ""
    """The name of a context, a filter (``more``, ``enough``) or a topic (``announce``)."""


def reserved(topic: str) -> Reserved | None:
    """What the topic asks nearcast for; ``None`` if it is one like any other."""
    if not topic.startswith(RESERVED):
        return None
    kind = _EXACT.get(topic)
    if kind is not None:
        return Reserved(kind)
    for kind in _OPEN:
        if topic.startswith(kind.topic) and len(topic) > len(kind.topic):
            rest = topic[len(kind.topic) :]
            return Reserved(kind, unquote(rest) if kind in _OF_FILTERS else rest)
    known = ", ".join(kind.topic + ("..." if kind.value.endswith("/") else "") for kind in ReservedTopic)
    raise InvalidTopic(f"nearcast keeps the topics below {RESERVED} for itself and has no {topic!r}; it has: {known}")


def check_unreserved(topic: str) -> None:
    """``InvalidTopic`` for topics on which only the broker itself speaks."""
    if topic[:1] == "$" and topic.startswith((RESERVED, PREFIX, SHARE)):
        raise InvalidTopic(f"{topic!r} is kept for the broker; publish to another topic")
