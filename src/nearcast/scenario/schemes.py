"""``[scheme]`` and ``[[transition]]``: how the broker filters, and when it changes its mind (BYPASS.KOM 4.2, 6.2; LCN 2016).

Defaults are those of ``filtering.specification``; here is what a file may say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import ClassVar, Final

from nearcast.scenario.kinds import Count, Flag, Number, OneOf, Quantity, Range, entry
from nearcast.scenario.problems import Contradiction
from nearcast.scenario.quantities import DURATION, LENGTH, PROBABILITY
from nearcast.scenario.tables import Section, Varieties
from nearcast.transition.specification import MechanismSpec

_SPAN: Final = Quantity(DURATION, Range(least=1e-3))
_METRES: Final = Quantity(LENGTH, Range(least=0.0, most=100_000.0))


@dataclass(frozen=True, kw_only=True, slots=True)
class Scheme(Section):
    """What all schemes share."""

    needs_points: ClassVar[bool] = False

    def spec(self) -> MechanismSpec:
        """By which the halves are made; only what differs from the default stands in it, so that equal schemes are equal."""
        given = {part.name: getattr(self, part.name) for part in fields(self)}
        usual = {part.name: part.default for part in fields(self)}
        return MechanismSpec.of(self.word, **{name: value for name, value in given.items() if value != usual[name]})


@dataclass(frozen=True, kw_only=True, slots=True)
class _Reporting(Scheme):
    update: str = entry(
        OneOf(("fix", "distance", "frequency", "hybrid")),
        "fix",
        "when a client reports its position: with every fix, after so far, after so long, or after either",
    )
    distance: float = entry(
        Quantity(LENGTH, Range(above=0.0, most=100_000.0)),
        "10 m",
        "how far it goes between two reports ('distance', 'hybrid')",
    )
    seconds: float = entry(_SPAN, "15 s", "how long it waits between two reports ('frequency', 'hybrid')")


@dataclass(frozen=True, kw_only=True, slots=True)
class RadialScheme(_Reporting):
    """The broker knows where everybody is and measures distances."""

    word: ClassVar[str] = "RADIAL"


@dataclass(frozen=True, kw_only=True, slots=True)
class LpsScheme(_Reporting):
    """RADIAL, under the name of LCN 2016."""

    word: ClassVar[str] = "LPS"


@dataclass(frozen=True, kw_only=True, slots=True)
class SteScheme(_Reporting):
    """RADIAL with areas of interest that reach ahead of those who move."""

    word: ClassVar[str] = "STE"

    alpha: float = entry(Number(Range(least=0.0, most=1_000.0)), 1.5, "how many minutes of travel it reaches ahead")
    angle: float = entry(Number(Range(least=0.0, most=60.0)), 15.0, "degrees by which it widens on each side")


@dataclass(frozen=True, kw_only=True, slots=True)
class GridScheme(Scheme):
    """The world is cut into cells; a client gets what happens in its own."""

    word: ClassVar[str] = "GRID"

    cells: str = entry(OneOf(("square", "hexagon")), "square", "their form; hexagons are those of H3")
    factor: int = entry(Count(Range(least=1, most=500)), 5, "so many rows and columns of squares")
    resolution: int = entry(Count(Range(least=4, most=15)), 9, "of hexagons; 9 has edges of about 200 m")
    remember_location: bool = entry(
        Flag(), True, "whether the broker keeps the position by which it assigned cells (BYPASS.KOM) or not (LCN 2016)"
    )
    private: bool = entry(Flag(), False, "whether a client chooses its cells itself and says nothing but these")


@dataclass(frozen=True, kw_only=True, slots=True)
class EgridScheme(GridScheme):
    """As GRID, but a client gets what happens in all cells that its area of interest meets."""

    word: ClassVar[str] = "EGRID"

    cover: str = entry(OneOf(("box", "circle")), "box", "cells that meet the circle of interest, or the box around it")
    margin: float = entry(
        _METRES, "0 m", "added to the radius; with fastest speed x (location interval + round trip) nothing is missed"
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class RgridScheme(GridScheme):
    """EGRID as LCN 2016 has it: circles, and a broker that forgets positions."""

    word: ClassVar[str] = "RGRID"

    remember_location: bool = entry(Flag(), False, "as in GRID")
    cover: str = entry(OneOf(("box", "circle")), "circle", "as in EGRID")
    margin: float = entry(_METRES, "0 m", "as in EGRID")


@dataclass(frozen=True, kw_only=True, slots=True)
class AttractScheme(Scheme):
    """A channel for each attraction point, and one for everywhere else."""

    word: ClassVar[str] = "ATTRACT"
    needs_points: ClassVar[bool] = True

    extension: float = entry(_METRES, "0 m", "from how far around its point a channel takes events in")
    catch_all: bool = entry(Flag(), True, "whether there is a channel for everywhere else")
    enable_updates: bool = entry(Flag(), False, "whether clients report their positions all the same")


@dataclass(frozen=True, kw_only=True, slots=True)
class MultiScheme(_Reporting):
    """ATTRACT at attraction points, RADIAL everywhere else."""

    word: ClassVar[str] = "MULTI"
    needs_points: ClassVar[bool] = True

    extension: float = entry(_METRES, "0 m", "as in ATTRACT")
    enable_updates: bool = entry(Flag(), False, "as in ATTRACT")


SCHEMES: Final = Varieties(
    "kind",
    {
        kind.word: kind
        for kind in (
            RadialScheme,
            LpsScheme,
            SteScheme,
            GridScheme,
            EgridScheme,
            RgridScheme,
            AttractScheme,
            MultiScheme,
        )
    },
    "RADIAL",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class TransitionEntry(Section):
    """``[[transition]]``: at that time, everybody changes to that scheme."""

    at: float = entry(Quantity(DURATION, Range(least=0.0)), "1 min", "when, after the start of the run")
    scheme: Scheme = entry(SCHEMES, {}, "to which scheme")
    share: float = entry(Number(Range(above=0.0, most=1.0)), 1.0, "of the clients, drawn at random; the rest stay")


@dataclass(frozen=True, kw_only=True, slots=True)
class Privacy(Section):
    """``[privacy]``: clients that do not want to be known better than by a cell (LCN 2016, VI)."""

    share: float = entry(Quantity(PROBABILITY, Range(least=0.0, most=1.0)), 0, "of the clients, drawn at random")
    scheme: Scheme = entry(
        SCHEMES, {"kind": "EGRID", "private": True}, "which they insist on, whatever the others run; a private one"
    )

    def contradictions(self) -> Iterator[Contradiction]:
        if not getattr(self.scheme, "private", False):
            yield Contradiction(
                ("scheme",), "a scheme that keeps positions private is needed: GRID or EGRID with private = true"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Transitions(Section):
    """``[transitions]``: how schemes are exchanged, whenever they are.

    The defaults lose nothing and double nothing.  The documents' own way is what each key says in brackets.
    """

    state_transfer: bool = entry(
        Flag(), True, "whether the broker hands on what it knows; if not, it forgets it and clients subscribe again"
    )
    overlap: bool = entry(
        Flag(), True, "whether the old scheme goes on for a client until the new one knows enough of it (false)"
    )
    grace: float = entry(_SPAN, "60 s", "how long it goes on at most for a client of which nothing is heard")
    acknowledged: bool = entry(Flag(), True, "whether plans are acknowledged, and sent again until they are (false)")
    unknown_channels: str = entry(
        OneOf(("place", "discard")),
        "place",
        "what becomes of an event with an outdated channel: its place is looked at, or it is discarded ('discard')",
    )
    missing_context: str = entry(
        OneOf(("ignore", "deliver", "wait")),
        "ignore",
        "events for subscribers of whom the broker does not know enough: skip them, let the client filter, or wait",
    )
    wait_at_most: float = entry(_SPAN, "2 s", "how long an event is kept for those ('wait')")
    at_points: bool = entry(
        Flag(), False, "whether clients at attraction points change to ATTRACT and back, one by one (BYPASS.KOM 6.2.4)"
    )
    extension: float = entry(_METRES, "0 m", "from how far around its point a channel takes events in, for 'at_points'")
