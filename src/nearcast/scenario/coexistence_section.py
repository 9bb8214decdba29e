"""``[coexistence]``: other mechanisms at attraction points than elsewhere (BYPASS.KOM 4.4, 5.3.2, 6.4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

from nearcast.planning.coexistence import Coordination
from nearcast.planning.density import DensityRule, Measure
from nearcast.scenario.adhoc_section import SPREADING, Spreading
from nearcast.scenario.gateways_section import LOCALLY
from nearcast.scenario.kinds import Number, OneOf, Optional, Quantity, Range, entry
from nearcast.scenario.problems import Contradiction
from nearcast.scenario.quantities import DURATION
from nearcast.scenario.tables import Section

INSIDE: Final = ("augment", "offload", "gateway")
"""Modes in which clients at points can be while those outside have the cloud."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CoexistenceSection(Section):
    """Who comes to an attraction point changes to ATTRACT, to a hybrid mode and to the mechanism of ``[adhoc]``; outside there is none.

    Channels are those of ``transitions.at_points``, with their ``transitions.extension``.
    """

    inside: str | None = entry(
        Optional(OneOf(INSIDE)),
        None,
        "what happens at attraction points goes from host to host there, and to the cloud as well ('augment') or not"
        " ('offload'); what the cloud has for clients there goes by way of gateways ('gateway'); if not given, mechanisms are"
        " the same everywhere",
    )
    threshold: float | None = entry(
        Optional(Number(Range(least=0.0))),
        None,
        "a point is crowded if more clients are there, and only then the mechanism of [adhoc] runs; always if not given",
    )
    hysteresis: float = entry(
        Number(Range(least=0.0)), 0, "until so many less than the threshold are left; the documents have none"
    )
    measure: str = entry(
        OneOf(("clients", "density")),
        "clients",
        "what the threshold is about: clients at the point, or these times 10000 m2 / radius2, as in the documents",
    )
    dwell: float = entry(
        Quantity(DURATION, Range(least=0.0)), "0 s", "shortest time between two changes of a point's mind"
    )
    otherwise: Spreading | None = entry(
        Optional(SPREADING), None, "the mechanism at points that are not crowded; if not given, none, as outside"
    )
    gateways_otherwise: Spreading | None = entry(
        Optional(LOCALLY), None, "how gateways there pass events on, beside 'otherwise'; if not given, as everywhere"
    )
    coordination: str = entry(
        OneOf(("central", "self-healing")),
        "central",
        "when a point has become crowded, or is so no longer, the broker tells everybody there, or only who comes next,"
        " from whom it spreads",
    )

    def rule(self) -> DensityRule | None:
        if self.threshold is None:
            return None
        return DensityRule(self.threshold, self.hysteresis, self.dwell, cast("Measure", self.measure))

    def tells_points(self) -> bool:
        """Whether points, each for itself, are told by the broker what to run."""
        return self.threshold is not None and self.coordination == "central"

    def coordinated(self) -> Coordination:
        return cast("Coordination", self.coordination)

    def contradictions(self) -> Iterator[Contradiction]:
        if self.inside is None and self.threshold is not None:
            yield Contradiction(
                ("threshold", "inside"),
                "means nothing while mechanisms are the same everywhere; set inside = 'augment'",
            )
        if self.threshold is not None and self.hysteresis > self.threshold:
            yield Contradiction(
                ("hysteresis", "threshold"),
                f"a point would stay crowded for ever; at most {self.threshold:g} is needed",
            )
        if self.coordination == "self-healing" and self.threshold is not None and self.otherwise is None:
            yield Contradiction(
                ("coordination", "otherwise"),
                "clients at points that are not crowded run nothing and hear of nothing; give [coexistence.otherwise], or"
                " coordinate centrally",
            )
        if self.gateways_otherwise is not None and (self.inside != "gateway" or self.otherwise is None):
            yield Contradiction(
                ("gateways_otherwise", "inside", "otherwise"),
                "means nothing unless there are gateways, and an ad hoc mechanism, at points that are not crowded",
            )
        if self.otherwise is not None and self.otherwise.word == "UNICAST":
            yield Contradiction(
                ("otherwise",), "'UNICAST' sends to hosts that somebody names, and nobody does here; choose 'BROADCAST'"
            )
        rest = {"hysteresis": self.hysteresis > 0, "dwell": self.dwell > 0, "measure": self.measure != "clients"}
        rest |= {"otherwise": self.otherwise is not None, "coordination": self.coordination != "central"}
        for key in [key for key, given in rest.items() if given and self.threshold is None]:
            yield Contradiction(
                (key, "threshold"), "means nothing while all points are taken for crowded; set a threshold"
            )
