"""Cases that the kernels leave open, judged by the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from nearcast.matching.approach import ApproachLog
from nearcast.matching.areas import Bools, covered
from nearcast.matching.columns import AREA_OPEN, PREDICATE_OPEN, Bytes
from nearcast.matching.events import EventBatch
from nearcast.matching.grid import Int32s
from nearcast.matching.subscribers import SubscriberTable
from nearcast.matching.templates import TemplateTable
from nearcast.model.area import Area, Circle
from nearcast.model.delivery import in_area
from nearcast.model.evaluation import evaluate
from nearcast.model.predicate import DistanceDecreases, Predicate, atoms_of

if TYPE_CHECKING:
    from nearcast.model.geometry import Point


def asks_direction(where: Predicate | None) -> bool:
    """Whether a predicate depends on who receives: ``distance decreases`` does."""
    return where is not None and any(isinstance(atom, DistanceDecreases) for atom in atoms_of(where))


class Judge:
    """Judges open cases of one batch; what is asked twice is answered once."""

    def __init__(
        self, batch: EventBatch, subscribers: SubscriberTable, templates: TemplateTable, approach: ApproachLog
    ) -> None:
        self._batch = batch
        self._subscribers = subscribers
        self._templates = templates
        self._approach = approach
        self._properties: dict[int, dict[str, object]] = {}
        self._verdicts: dict[tuple[int, int], bool] = {}

    def accepted(self, events: Int32s, items: Int32s, what: Bytes) -> Bools:
        accepted = np.ones(len(events), np.bool_)
        self._areas(events, items, np.flatnonzero(what & AREA_OPEN), accepted)
        cases = np.flatnonzero(((what & PREDICATE_OPEN) != 0) & accepted)
        templates = self._subscribers.template[items[cases]].tolist()
        for i, event, item, template in zip(
            cases.tolist(), events[cases].tolist(), items[cases].tolist(), templates, strict=True
        ):
            accepted[i] = self._content(event, item, template)
        return accepted

    def _areas(
        self, events: Int32s, items: Int32s, cases: np.ndarray[tuple[int], np.dtype[np.intp]], accepted: Bools
    ) -> None:
        fixed: dict[int, list[int]] = {}
        for i, template in zip(cases.tolist(), self._subscribers.template[items[cases]].tolist(), strict=True):
            area = self._templates[template].area
            if area is not None and not area.is_relative:
                fixed.setdefault(template, []).append(i)
            else:
                accepted[i] = self._in_area(int(events[i]), int(items[i]), area)
        for template, those in fixed.items():  # one look at a polygon for all events in question
            area = self._templates[template].area
            assert area is not None
            index = events[those]
            accepted[those] = covered(area, self._batch.lat[index], self._batch.lon[index])

    def _in_area(self, event: int, item: int, area: Area | None) -> bool:
        columns = self._subscribers.columns
        if area is None:
            area = Circle(float(columns.radius[item]))
        return in_area(area, self._batch.place(event), self._position(item))

    def _content(self, event: int, item: int, template: int) -> bool:
        """One verdict for all subscriptions that look alike, unless it depends on where the receiver is."""
        key = event, template
        verdict = self._verdicts.get(key)
        if verdict is not None:
            return verdict
        where = self._templates[template].where
        assert where is not None
        properties = self._properties.get(event)
        if properties is None:
            properties = self._properties[event] = self._batch.properties(event)
        if self._approach.watches(item):
            return evaluate(where, properties, self._direction(event, properties, item)) is True
        verdict = self._verdicts[key] = evaluate(where, properties) is True
        return verdict

    def _direction(self, event: int, properties: dict[str, object], item: int) -> Callable[[str | None], bool | None]:
        here = self._position(item)
        return lambda name: self._approach.approaching(event, properties, item, here, name)

    def _position(self, item: int) -> Point | None:
        return self._subscribers.position(int(self._subscribers.columns.client[item]))
