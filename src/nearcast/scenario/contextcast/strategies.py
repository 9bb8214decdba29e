"""Ways of routing by context, by name; each with what all routers of one process may share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from nearcast.matching.context_columns import surely
from nearcast.matching.shared_contexts import SharedContexts
from nearcast.overlay.aggregation.aggregates import Aggregation
from nearcast.overlay.aggregation.thresholds import Fixed
from nearcast.overlay.routing.adaptive import Adaptive
from nearcast.overlay.routing.aggregated import Aggregated, AggregatedSettings
from nearcast.overlay.routing.knowledge import Knowledge
from nearcast.overlay.routing.merged import merging
from nearcast.overlay.routing.reference import Reference
from nearcast.overlay.routing.reporting import Exact, Reporting
from nearcast.overlay.routing.router import Deliver, Router
from nearcast.overlay.routing.settings import AdaptiveSettings
from nearcast.overlay.values.domains import Domains
from nearcast.overlay.values.kinds import DEFAULT_LARGEST_SET, Limits
from nearcast.overlay.values.possible import possibly
from nearcast.overlay.values.similarity import Reading
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.wired import Wire
from nearcast.scenario.contextcast.at_once import SpreadAtOnce, Spreading

Make = Callable[[Deliver], Router]


class Propagation(Enum):
    """Who is told what of contexts."""

    REFERENCE = "reference"
    AGGREGATED = "aggregated"
    ADAPTIVE = "adaptive"
    MERGED = "merged"
    """Adaptive, with aggregation in composites: chapters 4 and 5 of the document together."""


NEVER_DISSOLVED: Final = 1e9
"""False positives per second above which an aggregate is made anew: the document's evaluation does without (4.5.2)."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """How all routers of a network do it."""

    propagation: Propagation = Propagation.REFERENCE
    reporting: Reporting = field(default_factory=Exact)
    coarse: bool = False
    """Whether contexts say areas where there are positions: then what is possible counts."""

    threshold: float = 0.6
    """S_th, for what aggregates."""

    reading: Reading = Reading.POSITION_ONLY_FOR_POINTS
    largest_set: int = DEFAULT_LARGEST_SET
    """So many values are listed in an aggregate before they become an interval."""

    by_aggregates: bool = False
    hop_by_hop: bool = False
    """Whether each hop of an update is simulated, where only what comes of it could be (``at_once``)."""

    adaptive: AdaptiveSettings = field(default_factory=AdaptiveSettings)
    domains: Domains = field(default_factory=Domains)

    def maker(self, simulation: Simulation, wire: Wire) -> Make:
        """Makes the routers of one network, which share what they may."""
        exact = self.propagation is Propagation.REFERENCE and not self.coarse
        local, known = SharedContexts(), SharedContexts(surely if exact else possibly)
        spreading = Spreading(simulation, wire, known)

        def make(deliver: Deliver) -> Router:
            return Router(self._knowledge(known, spreading), self.reporting, deliver=deliver, shared=local)

        return make

    def _knowledge(self, known: SharedContexts, spreading: Spreading) -> Knowledge:
        aggregation = Aggregation(Fixed(self.threshold), self.reading, Limits(self.largest_set))
        match self.propagation:
            case Propagation.REFERENCE:
                return Reference(shared=known) if self.hop_by_hop else SpreadAtOnce(spreading)
            case Propagation.AGGREGATED:
                settings = AggregatedSettings(in_vain=NEVER_DISSOLVED, by_aggregates=self.by_aggregates)
                return Aggregated(aggregation, settings, self.domains, shared=known)
            case Propagation.ADAPTIVE:
                return Adaptive(self.adaptive, shared=known)
            case Propagation.MERGED:
                return Adaptive(self.adaptive, condense=merging(aggregation, self.domains), shared=known)
