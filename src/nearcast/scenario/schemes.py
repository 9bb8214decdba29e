"""``[scheme]`` and ``[[transition]]``: how the broker filters, and when it changes its mind (BYPASS.KOM 4.2, 6.2; LCN 2016)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from nearcast.scenario.kinds import Flag, Number, OneOf, Quantity, Range, entry
from nearcast.scenario.problems import Contradiction
from nearcast.scenario.quantities import DURATION, LENGTH, PROBABILITY
from nearcast.scenario.scheme_sections import SCHEMES, Scheme
from nearcast.scenario.tables import Section

_SPAN: Final = Quantity(DURATION, Range(least=1e-3))
_METRES: Final = Quantity(LENGTH, Range(least=0.0, most=100_000.0))


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
