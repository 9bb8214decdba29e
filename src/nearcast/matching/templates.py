"""What subscriptions have in common, kept once.

Radius and time frame of a subscription differ from client to client and are columns; everything else (topic filter,
predicate, shape of the area, id, quality of service) is mostly the same for thousands of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from nearcast.matching.columns import AROUND_CLIENT, EVERYWHERE, FIXED, NO_LOCAL, REFINE, SINGULAR
from nearcast.matching.subscribers import Row
from nearcast.model.area import Area, Circle
from nearcast.model.predicate import Predicate
from nearcast.model.subscription import Subscription
from nearcast.model.time import TimeFrame

EARLIEST: Final = int(np.iinfo(np.int64).min)
LATEST: Final = int(np.iinfo(np.int64).max)


class Template(NamedTuple):
    topic: str
    where: Predicate | None
    area: Area | None
    circle: bool
    """The area is a circle around the client, whose radius is a column."""
    id: str
    qos: int
    no_local: bool

    def subscription(self, radius: float, since: int, until: int) -> Subscription:
        return Subscription(
            topic=self.topic,
            where=self.where,
            area=Circle(radius) if self.circle else self.area,
            frame=TimeFrame(None if since == EARLIEST else since, None if until == LATEST else until),
            id=self.id,
            qos=self.qos,
            no_local=self.no_local,
        )


@dataclass
class _Entry:
    number: int
    holders: int


class TemplateTable:
    def __init__(self) -> None:
        self._entries: dict[Template, _Entry] = {}
        self._templates: list[Template | None] = []
        self._free: list[int] = []

    def __getitem__(self, number: int) -> Template:
        template = self._templates[number]
        assert template is not None
        return template

    def add(self, subscription: Subscription, holders: int) -> int:
        circle = isinstance(subscription.area, Circle) and subscription.area.is_relative
        template = Template(
            subscription.topic,
            subscription.where,
            None if circle else subscription.area,
            circle,
            subscription.id,
            subscription.qos,
            subscription.no_local,
        )
        entry = self._entries.get(template)
        if entry is None:
            entry = _Entry(self._free.pop() if self._free else len(self._templates), 0)
            if entry.number == len(self._templates):
                self._templates.append(None)
            self._entries[template] = entry
            self._templates[entry.number] = template
        entry.holders += holders
        return entry.number

    def remove(self, number: int) -> None:
        template = self[number]
        entry = self._entries[template]
        entry.holders -= 1
        if not entry.holders:
            del self._entries[template]
            self._templates[number] = None
            self._free.append(number)


def row_of(subscription: Subscription, template: int, filter_number: int) -> Row:
    """The columns of a subscription."""
    area, frame = subscription.area, subscription.frame
    tag = filter_number
    if area is not None and not isinstance(area, Circle):
        tag |= REFINE
    kind = EVERYWHERE if area is None else AROUND_CLIENT if area.is_relative else FIXED
    if frame.since is not None or frame.until is not None or kind == FIXED:
        tag |= SINGULAR
    if subscription.no_local:
        tag |= NO_LOCAL
    return Row(
        template=template,
        tag=tag,
        kind=kind,
        radius=0.0 if area is None else area.bounding_radius(),
        since=EARLIEST if frame.since is None else frame.since,
        until=LATEST if frame.until is None else frame.until,
        center=None if area is None or area.is_relative else area.fixed_center(),
    )
