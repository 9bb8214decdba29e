"""What the crowd does: posts are published, and all other operations follow from them at random (THYME 6.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from operator import attrgetter
from random import Random
from typing import Final, NamedTuple

from nearcast.errors import InvalidInput
from nearcast.experiment.thyme.posts import HOURS, Post, popular_tags

SECONDS: Final = 600.0
"""Into which three hours are squeezed."""

BREAK: Final = 62 / 60
"""Hours after kick-off at which the second half begins: 45 minutes, those that were added, and the break.

The paper's example has 526 subscriptions of 100 users; with these numbers 507 are expected, with 45 minutes it would be 450.
"""

FINAL_WHISTLE: Final = BREAK + 47 / 60
"""Of the second half, hours: 39 unpublications and 16 unsubscriptions are expected where the paper's example has 29 and 15."""

POPULAR: Final = 0.6
"""Share of the tags that somebody subscribes to, the most used ones."""

EVER_SHARE: Final = 0.6
"""Share of the subscriptions that reach over all time; the others begin now."""


class Kind(StrEnum):
    PUBLISH = "publish"
    UNPUBLISH = "unpublish"
    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"


class Operation(NamedTuple):
    """What a node is to do, so many seconds after operations begin."""

    at: float
    node: int
    kind: Kind
    name: str
    """Of the object, or of the subscription."""

    tags: tuple[str, ...] = ()
    """Of the object, or the one that is subscribed to."""

    content: bytes = b""
    past: bool = False
    """Whether a subscription reaches into the past."""


class Rates(NamedTuple):
    """For each user and hour of the match."""

    first_half: float = 3.0
    afterwards: float = 1.0
    unpublish: float = 0.5
    unsubscribe: float = 0.2


def operations(
    posts: Sequence[Post],
    nodes: int,
    random: Random,
    *,
    seconds: float = SECONDS,
    hours: float = HOURS,
    rates: Rates = Rates(),  # noqa: B008 - it never changes
    publishers: Sequence[int] | None = None,
    subscribers: Sequence[int] | None = None,
) -> list[Operation]:
    """In the order of time; posts of user u are published by the node of that number, or by one of the ``publishers``.

    Unpublications and unsubscriptions take back something, drawn at random, that is there at that time; where there is nothing, there is
    none.
    """
    if not posts or nodes < 1:
        raise InvalidInput("a crowd needs at least one node and one post")
    publishers = range(nodes) if publishers is None else publishers
    subscribers = range(nodes) if subscribers is None else subscribers
    squeeze = seconds / hours
    tags = popular_tags(posts, POPULAR)
    published = [
        Operation(squeeze * post.hours, publishers[post.user % len(publishers)], Kind.PUBLISH, post.name, post.tags, post.content)
        for post in posts
        if post.hours < hours
    ]  # fmt: skip
    half, whistle = BREAK * hours / HOURS, FINAL_WHISTLE * hours / HOURS
    subscribed = []
    for node in subscribers:
        times = [*_poisson(random, rates.first_half, 0.0, half), *_poisson(random, rates.afterwards, half, hours)]
        for number, time in enumerate(times):
            past = random.random() < EVER_SHARE
            subscribed.append(
                Operation(squeeze * time, node, Kind.SUBSCRIBE, f"s{number}", (random.choice(tags),), past=past)
            )

    def taken_back(rate: float, kind: Kind, things: Sequence[Operation], nodes: Sequence[int]) -> Iterator[Operation]:
        own: dict[int, list[Operation]] = {node: [] for node in nodes}
        for thing in things:
            own[thing.node].append(thing)
        for node in nodes:
            for time in _poisson(random, rate, half, whistle):
                there = [thing for thing in own[node] if thing.at < squeeze * time]
                if there:
                    thing = random.choice(there)
                    own[node].remove(thing)
                    yield Operation(squeeze * time, node, kind, thing.name)

    unpublished = taken_back(rates.unpublish, Kind.UNPUBLISH, published, publishers)
    unsubscribed = taken_back(rates.unsubscribe, Kind.UNSUBSCRIBE, subscribed, subscribers)

    return sorted([*published, *subscribed, *unpublished, *unsubscribed], key=attrgetter("at"))


def _poisson(random: Random, rate: float, since: float, until: float) -> Iterator[float]:
    """Times of a Poisson process: exponential distances."""
    if rate <= 0:
        return
    time = since + random.expovariate(rate)
    while time < until:
        yield time
        time += random.expovariate(rate)
