"""What a document states, as something that can turn out wrong.

A check names the statement, what is measured in its place, and which values count as the same.  All of that is declared
before anything runs: a tolerance that is chosen after looking at the result proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, TypeAlias

from nearcast.experiment.measures import Measures
from nearcast.metrics.distribution import grand_mean

Basis: TypeAlias = Literal["text", "figure", "inferred"]
"""The statement stands in the text; only in a figure, which we do not have; or follows from what the document says."""

Verdict: TypeAlias = Literal["reproduced", "deviates", "not checkable", "not run"]

Outcome: TypeAlias = Mapping[str, Measures]
"""What all runs of an experiment with one seed brought, by name of the run."""

DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class Accepted:
    """The values that count as what is stated; borders belong to it."""

    low: float | None = None
    high: float | None = None

    def __contains__(self, value: float) -> bool:
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    def __str__(self) -> str:
        if self.low is not None and self.high is not None:
            return f"{self.low:g} .. {self.high:g}"
        return f"at least {self.low:g}" if self.low is not None else f"at most {self.high:g}"


def near(value: float, tolerance: float) -> Accepted:
    # Sums of decimal fractions: 0.7 - 0.05 should read 0.65.
    return Accepted(round(value - tolerance, 9), round(value + tolerance, 9))


def at_least(value: float) -> Accepted:
    return Accepted(low=value)


def at_most(value: float) -> Accepted:
    return Accepted(high=value)


def between(low: float, high: float) -> Accepted:
    return Accepted(low, high)


@dataclass(frozen=True, slots=True)
class Part:
    """One number, and what it must be.  ``measure`` gives it for one seed; None: the runs do not tell."""

    name: str
    accepted: Accepted
    measure: Callable[[Outcome], float | None]
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A statement of a document; it is reproduced if all its parts hold."""

    id: str
    stated: str
    basis: Basis
    parts: tuple[Part, ...]
    not_checkable: str = ""
    """Why the statement itself cannot be checked; the parts are then what was checked instead."""

    note: str = ""
    """What a reader must know to judge the verdict."""

    def to_json(self) -> dict[str, Any]:
        parts = [{"name": part.name, "accepted": str(part.accepted), "unit": part.unit} for part in self.parts]
        return {"id": self.id, "stated": self.stated, "basis": self.basis, "parts": parts}


@dataclass(frozen=True, slots=True)
class PartResult:
    name: str
    measured: float | None
    """Mean over the seeds."""

    deviation: float | None
    """Standard deviation over the seeds; one seed has none."""

    accepted: str
    unit: str
    holds: bool | None


@dataclass(frozen=True, slots=True)
class CheckResult:
    id: str
    stated: str
    measured: float | dict[str, float | None] | None
    basis: Basis
    verdict: Verdict
    why: str
    parts: tuple[PartResult, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def shown(value: float | None) -> str:
    """Four digits, which is more than most documents give; numbers of many more as a whole."""
    if value is None:
        return "–"
    return f"{value:.4g}" if abs(value) < 9_999.5 else f"{value:,.0f}"


def judge(check: Check, outcomes: Sequence[Outcome], *, failed: Sequence[str] = ()) -> CheckResult:
    """The verdict over all seeds; ``failed`` are the runs that did not come to their end, and why."""
    parts = tuple(_result(part, outcomes) for part in check.parts)
    several: dict[str, float | None] | None = {part.name: part.measured for part in parts} or None
    measured = parts[0].measured if len(parts) == 1 else several
    verdict, why = _verdict(check, parts)
    if verdict == "not run" and failed:
        why += f"; runs that failed: {'; '.join(failed)}"
    return CheckResult(check.id, check.stated, measured, check.basis, verdict, why, parts)


def _result(part: Part, outcomes: Sequence[Outcome]) -> PartResult:
    values = [_value(part, outcome) for outcome in outcomes]
    found = [value for value in values if value is not None]
    if not found or len(found) < len(values):
        return PartResult(part.name, None, None, str(part.accepted), part.unit, None)
    over_seeds = grand_mean(found)
    deviation = None if over_seeds.deviation is None else round(over_seeds.deviation, DIGITS)
    # Judged as it is shown: nobody should read "0.85, at most 0.85: deviates".
    mean = round(over_seeds.mean, DIGITS)
    return PartResult(part.name, mean, deviation, str(part.accepted), part.unit, mean in part.accepted)


def _value(part: Part, outcome: Outcome) -> float | None:
    try:
        return part.measure(outcome)
    except KeyError:
        # A run, a phase or a transition that is not there: its run failed, or was left out.
        return None


def _verdict(check: Check, parts: Sequence[PartResult]) -> tuple[Verdict, str]:
    missing = [part.name for part in parts if part.holds is None]
    failed = [part for part in parts if part.holds is False]
    if missing:
        return "not run", f"not measured: {', '.join(missing)}"
    listed = "; ".join(
        f"{part.name}: {shown(part.measured)}{part.unit}, not {part.accepted}{part.unit}" for part in failed
    )
    note = f" ({check.note})" if check.note else ""
    if check.not_checkable:
        instead = "checked instead, and " + (f"not met: {listed}" if failed else "met")
        return "not checkable", f"{check.not_checkable}; {instead if parts else 'nothing was checked instead'}{note}"
    if failed:
        return "deviates", listed + note
    return "reproduced", f"all of {len(parts)} within what was accepted{note}" if len(
        parts
    ) > 1 else f"within {parts[0].accepted}{parts[0].unit}{note}"
