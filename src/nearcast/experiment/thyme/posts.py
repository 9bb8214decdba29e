"""What people post during a football final (THYME 6.2), drawn at random where the tweets themselves are not at hand.

Of the tweets the paper names times (3 h from kick-off on, in spikes), numbers (4,545 of the 100 most active users) and a figure.  The law of
popularity, the share of the spikes and how active users are compared with each other are our choice, and stand here.

How many different tags there are decides how many notifications a subscription brings, and with that most of the traffic.  There is no list of
hashtags that people choose from: the number of different ones grows with their use (Heaps' law).  In samples of all tweets of 2015 and 2016 there
were 2,352 among 3,795 uses, 4,288 among 7,928, 7,728 among 16,062 and 13,720 among 33,028 (Chen, Alexander, Oliveira and Altmann, Scaling laws and
dynamics of hashtags on Twitter, Chaos 30, 2020, and its data): as the power 0.8 of the uses.  ``Tags`` draws by a law with that exponent.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Container, Sequence
from itertools import accumulate
from random import Random
from typing import Final, NamedTuple

from nearcast.errors import InvalidInput

HOURS: Final = 3.0
"""Of the match and what followed it."""

PER_USER: Final = 45.45
"""Posts of one of the most active users: 4,545 of a hundred."""

GROWTH: Final = 0.8
"""The number of different tags grows as this power of their uses."""

BREADTH: Final = 10.0
"""New tags at the beginning, in proportion: with 10, a match of 196 users has about 60 % of the different tags that as many uses have in a
sample of all tweets.  A match is one topic; by how much that narrows it, nobody says."""

TAGS: Final = (0.6, 0.3, 0.1)
"""Chances that a post has one, two or three."""

LENGTHS: Final = (40, 140)
"""Bytes of a tweet of those days, from and to."""

ACTIVITY: Final = 0.5
"""How many posts the user of rank r has: in proportion to r to the power of minus that."""

SPIKES: Final = ((0.0, 2.0), (0.42, 1.0), (0.79, 1.0), (1.05, 1.0), (1.35, 1.0), (1.86, 2.0), (2.3, 4.0), (2.55, 4.0))
"""Hours after kick-off and weights: kick-off, an injury, the break, the second half, a post is hit, extra time, the goal, the end."""

IN_SPIKES: Final = 0.5
"""The share of posts that belong to one; the others come at any time."""

FADING: Final = 0.06
"""Hours, in which a spike falls to 1/e."""


class Post(NamedTuple):
    """What one user posted; the time is in hours after the first."""

    hours: float
    user: int
    name: str
    tags: tuple[str, ...]
    content: bytes


class Zipf:
    """Ranks 0, 1, ... of which each is drawn in proportion to (rank + 1) to the power of minus the exponent."""

    def __init__(self, ranks: int, exponent: float = 1.0) -> None:
        self._sums: Final = list(accumulate((rank + 1) ** -exponent for rank in range(ranks)))

    def draw(self, random: Random) -> int:
        return bisect(self._sums, random.random() * self._sums[-1])

    def share(self, rank: int) -> float:
        """The chance of that one."""
        below: float = self._sums[rank - 1] if rank else 0.0
        share: float = (self._sums[rank] - below) / self._sums[-1]
        return share


class Tags:
    """Tags 0, 1, ... in the order of their first use: a new one with the chance (breadth + growth * known) / (breadth + uses), else one that was
    used before, in proportion to its uses less ``growth`` (Pitman and Yor, 1997).  So the number of different tags grows as the uses to the power
    of ``growth``, ranks follow Zipf's law with the exponent 1 / growth, and a share of about ``growth`` is used once.
    """

    def __init__(self, growth: float = GROWTH, breadth: float = BREADTH) -> None:
        if not (0.0 <= growth < 1.0 and breadth > 0.0):
            raise InvalidInput(
                f"tags grow as a power from 0 to 1 of their uses, not {growth}, with a breadth above 0, not {breadth}"
            )
        self._growth: Final = growth
        self._breadth: Final = breadth
        self._uses: Final[list[int]] = []
        self._used: Final[list[int]] = []
        """One entry for each use."""

    def __len__(self) -> int:
        return len(self._uses)

    def draw(self, random: Random, without: Container[int] = ()) -> int:
        """Use one that is none of those."""
        while True:
            tag = self._any(random)
            if tag not in without:
                break
        if tag == len(self._uses):
            self._uses.append(0)
        self._uses[tag] += 1
        self._used.append(tag)
        return tag

    def _any(self, random: Random) -> int:
        known, uses = len(self._uses), len(self._used)
        if random.random() * (self._breadth + uses) < self._breadth + self._growth * known:
            return known
        while True:
            tag = self._used[random.randrange(uses)]
            if random.random() * self._uses[tag] >= self._growth:
                return tag


def match_posts(users: int, random: Random, growth: float = GROWTH) -> list[Post]:
    """Posts of so many users, in the order of time; names are numbers, as those of tweets."""
    tags, activity = Tags(growth), Zipf(users, ACTIVITY)
    times = sorted(_time(random) for _ in range(round(PER_USER * users)))
    return [
        Post(
            hours,
            activity.draw(random),
            str(number),
            _some(tags, random),
            random.randbytes(random.randint(*LENGTHS)),
        )
        for number, hours in enumerate(times)
    ]


def popular_tags(posts: Sequence[Post], share: float) -> list[str]:
    """The most used of the tags in these posts, so large a share of all; equally used ones in the order of first use."""
    uses: dict[str, int] = {}
    for post in posts:
        for tag in post.tags:
            uses[tag] = uses.get(tag, 0) + 1
    return sorted(uses, key=lambda tag: -uses[tag])[: math.ceil(share * len(uses))]


def _some(law: Tags, random: Random) -> tuple[str, ...]:
    (number,) = random.choices((1, 2, 3), TAGS)
    chosen: dict[int, None] = {}
    while len(chosen) < number:
        chosen[law.draw(random, chosen)] = None
    return tuple(sorted(f"tag{rank}" for rank in chosen))


def _time(random: Random) -> float:
    while True:
        if random.random() >= IN_SPIKES:
            return HOURS * random.random()
        ((start, _),) = random.choices(SPIKES, [weight for _, weight in SPIKES])
        hours = start + random.expovariate(1 / FADING)
        if hours < HOURS:
            return hours
