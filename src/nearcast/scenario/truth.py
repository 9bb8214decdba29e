"""Who should get an event, by physical truth: everybody who wants it where it really is (BYPASS.KOM 6.1.4).

Truth knows where people are and what they want, not what they reported; it serves recall and precision, never delivery.
The publisher is not counted among its own receivers (product.md, decision "known, not true").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from nearcast.compiled import kernel
from nearcast.model.acceptance import wanted
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.subscription import Subscription
from nearcast.model.time import EVER
from nearcast.runtime.simulation.motion import Legs, Motion, x_at, y_at
from nearcast.runtime.simulation.plane import Plane

NOT_INTERESTED: Final = -1.0


class Truth:
    """The interests of all clients and where they are: nodes from 0 on, in the order of ``names``."""

    def __init__(self, motion: Motion, plane: Plane, names: Sequence[str]) -> None:
        self._motion: Final = motion
        self._plane: Final = plane
        self._names: Final = names
        self._nodes: Final = {name: node for node, name in enumerate(names)}
        self._interests: Final[dict[int, dict[str, Subscription]]] = {}
        self._radii: Final = np.full(len(names), NOT_INTERESTED)
        self._found: Final = np.zeros(len(names), np.int64)
        self._only_topic: Final[dict[int, str]] = {}
        """Of those whose one subscription asks for topic and place only; the kernel has asked for the place."""

    def interest(self, client: str, name: str, subscription: Subscription | None) -> None:
        """A row of ``interests``: the client took that interest, or ended it."""
        node = self._nodes[client]
        held = self._interests.setdefault(node, {})
        if subscription is None:
            held.pop(name, None)
        else:
            held[name] = subscription
        self._radii[node] = max(map(_radius, held.values()), default=NOT_INTERESTED)
        self._only_topic.pop(node, None)
        if len(held) == 1 and all(map(_asks_for_place_only, held.values())):
            self._only_topic[node] = next(iter(held.values())).topic

    def gone(self, client: str) -> None:
        """The client has left or failed: it wants nothing any more."""
        node = self._nodes[client]
        self._interests.pop(node, None)
        self._only_topic.pop(node, None)
        self._radii[node] = NOT_INTERESTED

    def receivers(self, event: Event) -> list[str]:
        """The clients that should get an event that is published now."""
        itself = self._nodes.get(event.publisher or "", -1)
        x, y = self._plane.known_xy(event.place) if event.place else (math.nan, math.nan)
        count = _within(self._motion.table, event.published, self._radii, x, y, itself, self._found)
        names, topics = self._names, self._only_topic
        found = self._found[:count].tolist()
        return [names[node] for node in found if topics.get(node) == event.topic or self._wants(node, event)]

    def _wants(self, node: int, event: Event) -> bool:
        position = self._plane.to_point(*self._motion.leg(node).at(event.published))
        held = self._interests[node].values()
        return any(wanted(subscription, event, self._names[node], position) for subscription in held)


def _radius(subscription: Subscription) -> float:
    """Metres around the client within which the subscription may want an event."""
    area = subscription.area
    return area.radius if isinstance(area, Circle) and area.is_relative else math.inf


def _asks_for_place_only(subscription: Subscription) -> bool:
    return _radius(subscription) < math.inf and subscription.where is None and subscription.frame == EVER


@kernel
def _within(
    legs: Legs,
    time: int,
    radii: npt.NDArray[np.float64],
    x: float,
    y: float,
    itself: int,
    found: npt.NDArray[np.int64],
) -> int:
    """Those who may want an event at that place; NaN is no place, which everybody may want."""
    count = 0
    for node in range(len(radii)):
        radius = radii[node]
        if radius < 0.0 or node == itself:
            continue
        dx, dy = x_at(legs, node, time) - x, y_at(legs, node, time) - y
        if not dx * dx + dy * dy > radius * radius:  # `not >`: also without a place
            found[count] = node
            count += 1
    return count
