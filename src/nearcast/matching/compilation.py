"""Compiling what matching needs before it is needed.

The first process on a machine compiles for half a minute, at the first event with a place.  A server does that before it takes
connections: in the middle of a conversation its clients would give up waiting.
"""

from __future__ import annotations

from typing import Final

from nearcast.compiled import is_kept
from nearcast.matching import grid, kernels, matches, packed, subscribers
from nearcast.matching.matcher import Matcher
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription

KERNELS: Final = (
    grid.rehash,
    grid.remove,
    kernels.match_reaches,
    matches.once,
    packed.match_packed,
    subscribers.chain_items,
    subscribers.place_clients,
    subscribers.place_items,
    subscribers.place_presence,
    subscribers.unchain_item,
)
"""What a matcher calls, as long as its journal is not replayed."""

PEOPLE: Final = 600
"""So many that the grid has to grow."""


def is_compiled() -> bool:
    """Whether an earlier process has left them all, made of the present source."""
    return all(is_kept(kernel) for kernel in KERNELS)


def compile_kernels() -> None:
    """Have a matcher do everything once."""
    matcher, here = Matcher(), Point(lat=0.0, lon=0.0)
    for number in range(PEOPLE):
        client = f"client {number}"
        matcher.move(client, here.lat, here.lon + number / 100)
        matcher.subscribe(client, Subscription("anything", area=Circle(1)))
    for number, area in enumerate((None, Circle(1, here))):
        matcher.subscribe(client, Subscription("anything", area=area, id=str(number)))
    matcher.move(client, here.lat, here.lon)
    events = [Event("first", "anything", 0, place=here, reach=reach) for reach in (None, Circle(1, here))]
    for event in events:
        matcher.match(event)
    matcher.match_batch(events)
    matcher.unsubscribe(client)
