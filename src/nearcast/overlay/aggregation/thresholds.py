"""How alike a context and an aggregate must be to be merged (S_th).

Lower merges more: fewer updates, more messages that find nobody.  The document recommends 0.6 everywhere, and names as
open what the others do here (7.2): merging more of what is farther away, by metres or by hops, and tuning itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from nearcast.errors import InvalidValue
from nearcast.model.area import Area
from nearcast.model.geometry import Point
from nearcast.model.history import POSITION
from nearcast.model.values import OneOf
from nearcast.overlay.values.coarse import Coarse
from nearcast.overlay.values.places import bounds, distance_to

RECOMMENDED: Final = 0.6
"""Contextcast 4.5.2."""


class Threshold(Protocol):
    """Says how alike a context that comes must be to an aggregate; it comes from so many hops away, at least."""

    def of(self, context: Coarse, hops: int = 0) -> float: ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """The same for all."""

    value: float = RECOMMENDED

    def __post_init__(self) -> None:
        _checked(self.value)

    def of(self, _context: Coarse, hops: int = 0) -> float:  # noqa: ARG002 - wherever it is
        return self.value


@dataclass(frozen=True, slots=True)
class ByDistance:
    """From ``near`` at the router down to ``far`` at ``reach`` metres and beyond; ``near`` for who is nowhere."""

    here: Point
    reach: float
    near: float = 0.7
    far: float = 0.5
    attribute: str = POSITION

    def __post_init__(self) -> None:
        _checked(self.near)
        _checked(self.far)
        if not self.reach > 0:
            raise InvalidValue(f"the threshold falls over some metres, not over {self.reach}")

    def of(self, context: Coarse, hops: int = 0) -> float:  # noqa: ARG002 - in metres
        place = context.attributes.get(self.attribute)
        if not isinstance(place, (Point, Area)) and not (isinstance(place, OneOf) and place.type_name == "point"):
            return self.near
        away = distance_to(bounds(place), self.here)
        return self.near + (self.far - self.near) * min(1.0, away / self.reach)


@dataclass(frozen=True, slots=True)
class ByHops:
    """One for each level of a hierarchy: what is registered here, what comes from the next router, and so on; the last for all beyond.

    So every router knows its surroundings well, and what is far away by aggregates of aggregates.
    """

    levels: tuple[float, ...] = (0.8, 0.7, 0.6, 0.5)

    def __post_init__(self) -> None:
        if not self.levels:
            raise InvalidValue("a hierarchy has at least one level")
        for value in self.levels:
            _checked(value)

    def of(self, _context: Coarse, hops: int = 0) -> float:
        return self.levels[max(0, min(hops, len(self.levels) - 1))]


class SelfTuning:
    """Between two bounds: stricter when aggregates cost more messages than they save updates, else more generous.

    Whoever counts them tells both, once in a while.  Multiples of ``tolerated`` and no smooth control: the similarity of
    real contexts comes in few steps, between which nothing changes.  One for each router: the decision is a local one.
    """

    def __init__(
        self,
        start: float = RECOMMENDED,
        least: float = 0.4,
        most: float = 0.9,
        step: float = 0.02,
        tolerated: float = 1.0,
    ) -> None:
        if not 0 <= least <= start <= most <= 1:
            raise InvalidValue(f"thresholds lie in order between 0 and 1, not {least}, {start}, {most}")
        if step <= 0 or tolerated <= 0:
            raise InvalidValue(f"the step and the tolerated share are positive, not {step} and {tolerated}")
        self.value = start
        self._least, self._most, self._step, self._tolerated = least, most, step, tolerated

    def of(self, _context: Coarse, hops: int = 0) -> float:  # noqa: ARG002 - wherever it is
        return self.value

    def counted(self, false_positives: int, updates_saved: int) -> bool:
        """Since the last time; whether it became stricter."""
        before = self.value
        if false_positives > self._tolerated * updates_saved:
            self.value = min(self._most, self.value + self._step)
        elif false_positives < self._tolerated * updates_saved / 2:
            self.value = max(self._least, self.value - self._step)
        return self.value > before


def _checked(value: float) -> None:
    if not 0 <= value <= 1:
        raise InvalidValue(f"similarities lie between 0 and 1, and so does their threshold, not {value}")
