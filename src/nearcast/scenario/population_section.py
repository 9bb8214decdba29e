"""``[population]``: when clients come and go.  Whoever is away still moves (BYPASS.KOM 6.4.3)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Final, Literal

from nearcast.runtime.simulation.distributions import Distribution
from nearcast.runtime.simulation.population import Action, Schedule
from nearcast.runtime.simulation.schedules import Arrivals, Failures, JoinWithin, OnOff, TargetCurve, Together
from nearcast.scenario.kinds import REQUIRED, Count, Flag, Quantity, Range, Row, Several, entry
from nearcast.scenario.problems import Contradiction
from nearcast.scenario.quantities import DURATION, PROBABILITY, RATE
from nearcast.scenario.spreads import Spread
from nearcast.scenario.tables import Section, Table, Varieties

_TIME: Final = Quantity(DURATION, Range(least=0.0))
_SHARE: Final = Quantity(PROBABILITY, Range(least=0.0, most=1.0))
_STAY: Final = Spread(DURATION, Range(least=0.0))
_SILENT: Final = "whether they go without a goodbye, as if they had failed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Interruptions(Section):
    """Clients that go down and come back, again and again (THYME 6.4)."""

    share: float = entry(_SHARE, 0, "of the clients to whom that happens")
    online: Distribution = entry(_STAY, "exponential 5 min", "how long they are up")
    offline: Distribution = entry(_STAY, "exponential 1 min", "how long they are down")
    probability: float = entry(
        Quantity(PROBABILITY, Range(above=0.0, most=1.0)), 1, "that they change when such a time is over"
    )
    after: float = entry(_TIME, "0 s", "when that begins")
    silent: bool = entry(Flag(), True, _SILENT)

    def contradictions(self) -> Iterator[Contradiction]:
        for key in ("online", "offline"):
            if not getattr(self, key).mean > 0:
                yield Contradiction((key,), "is always 0 s, so that time would stand still; give a longer time")


@dataclass(frozen=True, kw_only=True, slots=True)
class LastingFailures(Section):
    """Clients that fail and never return (THYME 6.4)."""

    share: float = entry(_SHARE, 0, "of the clients to whom that happens")
    at: Distribution = entry(_STAY, "uniform 200 s .. 300 s", "when it happens, after the start of the run")


@dataclass(frozen=True, kw_only=True, slots=True)
class Population(Section, ABC):
    """When hosts join, leave and fail."""

    @abstractmethod
    def schedule(self) -> Schedule: ...

    def most(self) -> int:
        """How many clients it takes."""
        return 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Everybody(Population):
    """All clients join, and stay unless they are interrupted or fail."""

    word: ClassVar[str] = "everybody"

    join_within: float = entry(_TIME, "0 s", "each joins at a random instant of this time")
    after: float = entry(_TIME, "0 s", "when that time begins")
    interruptions: Interruptions = entry(Table(Interruptions), {}, "clients that go down and come back")
    failures: LastingFailures = entry(Table(LastingFailures), {}, "clients that fail for good")

    def contradictions(self) -> Iterator[Contradiction]:
        if self.interruptions.share and self.failures.share:
            yield Contradiction(
                ("failures.share", "interruptions.share"),
                "an interruption would bring back who has failed for good; set one of the shares to 0",
            )
        # Who is not there yet cannot go, and must not "come back" before its time.
        joined = self.after + self.join_within
        if self.interruptions.share and self.interruptions.after < joined:
            yield Contradiction(
                ("interruptions.after", "after", "join_within"),
                f"{DURATION.text(self.interruptions.after)} is before all have joined; at least {DURATION.text(joined)} is needed",
            )
        if self.failures.share and self.failures.at.least < joined:
            yield Contradiction(
                ("failures.at", "after", "join_within"),
                f"some would fail before they have joined; give times from {DURATION.text(joined)} on",
            )

    def schedule(self) -> Schedule:
        joining = JoinWithin(self.join_within, self.after)
        broken, failures = self.interruptions, self.failures
        if broken.share:
            go_by = _go_by(silent=broken.silent)
            interrupted = OnOff(broken.online, broken.offline, broken.probability, broken.share, broken.after, go_by)
            return Together((joining, interrupted))
        if failures.share:
            return Together((joining, Failures(failures.share, failures.at)))
        return joining


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve(Population):
    """As many clients are up as a curve says; who comes and who goes is chosen at random (BYPASS.KOM 6.4.3)."""

    word: ClassVar[str] = "curve"

    points: tuple[tuple[float, int], ...] = entry(
        Several(Row((_TIME, Count()), '["8 min", 100]')), REQUIRED, "how many at which times; straight lines in between"
    )
    silent: bool = entry(Flag(), False, _SILENT)

    def contradictions(self) -> Iterator[Contradiction]:
        if not self.points:
            yield Contradiction(("points",), "has no points; give at least one")
        for (earlier, _), (later, _) in pairwise(self.points):
            if later <= earlier:
                yield Contradiction(
                    ("points",), f"{DURATION.text(later)} follows {DURATION.text(earlier)}; put them in order of time"
                )

    def most(self) -> int:
        return max((clients for _, clients in self.points), default=0)

    def schedule(self) -> Schedule:
        return TargetCurve(self.points, _go_by(silent=self.silent))


@dataclass(frozen=True, kw_only=True, slots=True)
class Visitors(Population):
    """Clients come at random instants (Poisson), stay for a while, and go; nobody is there at the start."""

    word: ClassVar[str] = "visitors"

    rate: float = entry(
        Quantity(RATE, Range(above=0.0)), "10/min", "how many come; who finds all clients up is turned away"
    )
    stay: Distribution = entry(Spread(DURATION, Range(least=0.0)), "exponential 10 min", "how long they stay")
    silent: bool = entry(Flag(), False, _SILENT)

    def contradictions(self) -> Iterator[Contradiction]:
        if not self.stay.mean > 0:
            yield Contradiction(("stay",), "is always 0 s: nobody would ever be there; give a longer time")

    def schedule(self) -> Schedule:
        return Arrivals(self.rate, self.stay, _go_by(silent=self.silent))


def _go_by(*, silent: bool) -> Literal[Action.LEAVE, Action.FAIL]:
    return Action.FAIL if silent else Action.LEAVE


POPULATIONS: Final = Varieties("kind", {kind.word: kind for kind in (Everybody, Curve, Visitors)}, "everybody")
