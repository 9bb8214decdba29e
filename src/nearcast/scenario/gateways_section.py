"""``[gateways]``: receivers that are told by way of others near them (BYPASS.KOM 4.3.4, 6.4.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from nearcast.dissemination.gateways.count import SINGLE_HOP, Density, Share
from nearcast.dissemination.gateways.registry import SELECTIONS as REGISTERED
from nearcast.dissemination.gateways.settings import GatewaySettings
from nearcast.dissemination.gateways.spreading import UNICAST
from nearcast.planning.gateway_timetable import GatewayEntry
from nearcast.scenario.adhoc_section import SPREADING, Spreading
from nearcast.scenario.declared_sections import Declared, DeclaredSections
from nearcast.scenario.kinds import Flag, Number, Optional, Quantity, Range, entry
from nearcast.scenario.problems import Contradiction
from nearcast.scenario.quantities import DURATION, LENGTH
from nearcast.scenario.tables import Section, Table, Tables, Varieties
from nearcast.transition.registry import Registry

AT_POINTS: Final = frozenset({"ATTRACT"})
"""The filter schemes of those who are at attraction points."""

_SPAN: Final = Quantity(DURATION, Range(least=1e-3, most=60.0))


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection(Declared):
    """What all algorithms share."""

    registered: ClassVar[Registry[Any]] = REGISTERED


SELECTION: Final = Varieties("kind", DeclaredSections(Selection), "SKC-LEACH")
LOCALLY: Final = Varieties("kind", SPREADING.sections, "BROADCAST")


@dataclass(frozen=True, kw_only=True, slots=True)
class GatewayTransition(Section):
    """``[[gateways.transition]]``: from then on, gateways are chosen, or pass events on, in another way."""

    at: float = entry(Quantity(DURATION, Range(least=0.0)), "1 min", "when, after the start of the run")
    selection: Selection | None = entry(
        Optional(SELECTION), None, "which algorithm selects gateways from then on; no client hears of that"
    )
    mechanism: Spreading | None = entry(
        Optional(LOCALLY), None, "how they pass events on from then on; the broker tells everybody"
    )

    def contradictions(self) -> Iterator[Contradiction]:
        if self.selection is None and self.mechanism is None:
            yield Contradiction(("at",), "nothing changes; give a selection, a mechanism, or both")

    def planned(self) -> GatewayEntry:
        selection = None if self.selection is None else self.selection.spec()
        mechanism = None if self.mechanism is None else self.mechanism.spec()
        return GatewayEntry(self.at, selection, mechanism)


@dataclass(frozen=True, kw_only=True, slots=True)
class GatewaysSection(Section):
    """Receivers that are told by way of others near them."""

    selection: Selection = entry(SELECTION, {}, "the algorithm that selects them, with which the run starts")
    mechanism: Spreading = entry(LOCALLY, {}, "how they pass events on, with which the run starts")
    share: float = entry(
        Number(Range(above=0.0, most=1.0)), SINGLE_HOP, "of an event's receivers: so many are gateways"
    )
    coverage: float | None = entry(
        Optional(Number(Range(above=0.0, most=1.0))),
        None,
        "instead of a share: as few as are expected to have so many of the receivers in radio range (of the transport with the shortest one that is ever used)",
    )
    reach: float | None = entry(
        Optional(Quantity(LENGTH, Range(least=0.0))),
        None,
        "who is farther from its gateway is told directly at once; nobody is if not given",
    )
    acknowledged: bool = entry(
        Flag(), True, "whether receivers acknowledge, and those who were missed are told directly; in the documents not"
    )
    window: float = entry(_SPAN, "250 ms", "for how long a client collects acknowledgements")
    deadline: float = entry(_SPAN, "1 s", "who has not acknowledged an event by then is told directly")
    at_points: bool = entry(
        Flag(), False, "whether there are gateways only among those at attraction points, who are in the scheme ATTRACT"
    )
    transition: tuple[GatewayTransition, ...] = entry(
        Tables(Table(GatewayTransition)), [], "when they are selected, or pass events on, in another way"
    )

    def contradictions(self) -> Iterator[Contradiction]:
        if not self.window < self.deadline:
            yield Contradiction(
                ("deadline", "window"), "acknowledgements are collected for as long as that; set a later deadline"
            )
        if self.coverage is not None and self.share != SINGLE_HOP:
            yield Contradiction(
                ("share", "coverage"), "how many gateways there are is given twice, also as a coverage; leave one out"
            )

    def settings(self, radio_range: float) -> GatewaySettings:
        """Of the broker; so far radios reach."""
        return GatewaySettings(
            selection=self.selection.spec(),
            count=Share(self.share) if self.coverage is None else Density(self.coverage, radio_range),
            schemes=AT_POINTS if self.at_points else None,
            addressed=self.mechanism.word == UNICAST,
            reach=self.reach,
            acknowledged=self.acknowledged,
            window=self.window,
            deadline=self.deadline,
        )
