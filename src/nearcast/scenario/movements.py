"""``[mobility]``: how people move.  Defaults are those of BYPASS.KOM 6.1.1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from nearcast.runtime.simulation.distributions import Distribution
from nearcast.scenario.kinds import REQUIRED, Count, File, FileName, Flag, Quantity, Range, entry
from nearcast.scenario.problems import Contradiction
from nearcast.scenario.quantities import ANGLE, DURATION, PROBABILITY, SPEED
from nearcast.scenario.spreads import Spread
from nearcast.scenario.tables import Section, Varieties

_SPEED: Final = Spread(SPEED, Range(above=0.0, most=10_000.0))
_PACE: Final = Quantity(SPEED, Range(above=0.0, most=10_000.0))
_PAUSE: Final = Spread(DURATION, Range(least=0.0))
_STATIONARY: Final = "start as if everybody had been on the way for ever, instead of with a pause at a target"


@dataclass(frozen=True, kw_only=True, slots=True)
class Mobility(Section):
    """What all models share: nothing but what they need of the world."""

    needs_streets: ClassVar[bool] = False


@dataclass(frozen=True, kw_only=True, slots=True)
class _Wandering(Mobility):
    speed: Distribution = entry(_SPEED, "uniform 1 m/s .. 2 m/s", "drawn anew for each walk")
    pause: Distribution = entry(_PAUSE, "uniform 1 s .. 60 s", "drawn anew at each target")


@dataclass(frozen=True, kw_only=True, slots=True)
class AttractionMobility(_Wandering):
    """Along the streets to an attraction point, chosen by weight; pause; and on (DA, MA)."""

    word: ClassVar[str] = "attraction"
    needs_streets: ClassVar[bool] = True

    truncate: bool = entry(Flag(), False, "whether all, not only 98.9 %, stop within the radius of the point")
    stationary: bool = entry(Flag(), True, _STATIONARY)


@dataclass(frozen=True, kw_only=True, slots=True)
class StreetMobility(_Wandering):
    """Along the streets to a place chosen uniformly; pause; and on (DA-RND, MA-RND)."""

    word: ClassVar[str] = "streets"
    needs_streets: ClassVar[bool] = True

    stationary: bool = entry(Flag(), True, _STATIONARY)


@dataclass(frozen=True, kw_only=True, slots=True)
class WaypointMobility(_Wandering):
    """Straight to a place chosen uniformly; pause; and on (RWP).  With a coin toss: THYME 6.4."""

    word: ClassVar[str] = "waypoint"

    move_probability: float = entry(
        Quantity(PROBABILITY, Range(above=0.0, most=1.0)), 1, "that one goes on after a pause; else one pauses again"
    )
    mobile: float = entry(
        Quantity(PROBABILITY, Range(least=0.0, most=1.0)),
        1,
        "share of the clients that move; the others stand somewhere",
    )
    stationary: bool = entry(Flag(), False, _STATIONARY)


@dataclass(frozen=True, kw_only=True, slots=True)
class WalkMobility(Mobility):
    """A random walk whose heading and speed change a little at each step (Contextcast 4.5.1)."""

    word: ClassVar[str] = "walk"

    slowest: float = entry(_PACE, "1 m/s", "the lowest speed")
    fastest: float = entry(_PACE, "2 m/s", "the highest speed")
    step: float = entry(Quantity(DURATION, Range(least=1e-3)), "10 s", "time between two changes")
    turn: float = entry(Quantity(ANGLE, Range(least=0.0)), "30 deg", "standard deviation of a change of heading")
    acceleration: float = entry(Quantity(SPEED, Range(least=0.0)), "0.1 m/s", "standard deviation of a change of speed")

    def contradictions(self) -> Iterator[Contradiction]:
        if self.slowest > self.fastest:
            yield Contradiction(
                ("slowest", "fastest"),
                f"{self.slowest:g} m/s is more than fastest, {self.fastest:g} m/s; exchange them",
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class RoadMobility(Mobility):
    """Vehicles on a straight road from west to east through the middle of the world, again and again (STEAM 5.1)."""

    word: ClassVar[str] = "road"

    speed: Distribution = entry(_SPEED, "50 km/h", "drawn once for each vehicle, which keeps it")
    lanes: int = entry(Count(Range(least=1, most=10)), 1, "in each direction")
    keep_left: bool = entry(Flag(), False, "whether vehicles drive on the left")


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing(Mobility):
    """Nobody moves; everybody stands at a place chosen uniformly."""

    word: ClassVar[str] = "standing"


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceMobility(Mobility):
    """As recorded: in a straight line from each fix to the next."""

    word: ClassVar[str] = "trace"

    file: FileName = entry(
        File(), REQUIRED, "the recorded positions (.csv, .gpx, or OGC Moving Features as .json, .mfjson or .geojson)"
    )


MOBILITY: Final = Varieties(
    "model",
    {
        m.word: m
        for m in (
            AttractionMobility,
            StreetMobility,
            WaypointMobility,
            WalkMobility,
            RoadMobility,
            Standing,
            TraceMobility,
        )
    },
    "attraction",
)
