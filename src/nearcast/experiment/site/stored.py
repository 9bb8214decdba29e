"""What was found of each experiment: its report, that there is none, or what is wrong with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, get_args

from nearcast.errors import InvalidRecord
from nearcast.experiment.checks import CheckResult, Verdict
from nearcast.experiment.experiment import Experiment
from nearcast.experiment.reports import Report, command_of, stored_report

VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)


@dataclass(frozen=True, slots=True)
class Stored:
    """An experiment, and what is known of it."""

    experiment: Experiment
    report: Report | None = None
    folder: Path | None = None
    damaged: str = ""
    """What is wrong with its report, if it cannot be read."""

    @property
    def name(self) -> str:
        return self.experiment.name

    @property
    def command(self) -> str:
        """How to run it, as it was run or for the first time."""
        return self.report.command if self.report else command_of(self.name, quick=True)

    @property
    def checks(self) -> list[CheckResult]:
        """As reported; what the catalogue has besides was not run."""
        reported = self.report.checks if self.report else []
        known = {check.id for check in reported}
        why = self.damaged or ("the report is older than this check" if self.report else "the experiment was not run")
        missing = [
            CheckResult(check.id, check.stated, None, check.basis, "not run", why, ())
            for check in self.experiment.checks
            if check.id not in known
        ]
        return [*reported, *missing]

    @property
    def verdicts(self) -> Counter[Verdict]:
        return Counter(check.verdict for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        """That of its report; of one without, all checks are open."""
        if self.report is not None and self.folder is not None:
            return self.report.to_json(self.folder)
        return {
            "experiment": self.name,
            "document": self.experiment.document,
            "title": self.experiment.title,
            "seeds": [],
            "checks": [check.to_json() for check in self.checks],
            "figures": [],
            "records": None,
            "command": self.command,
            "damaged": self.damaged,
        }


def collect(
    out: Path,
    experiments: Sequence[Experiment],
    *,
    quick: bool | None = None,
    longer: int = 1,
    tell: Callable[[], None] = lambda: None,
) -> list[Stored]:
    """What lies there of each of them; there must be something of at least one."""
    found = []
    for each in experiments:
        found.append(_stored(out, each, quick=quick, longer=longer))
        tell()
    if not any(each.report or each.damaged for each in found):
        asked = command_of(found[0].name if len(found) == 1 else "all", quick=True, longer=longer)
        what = f"no report of {found[0].name}" if len(found) == 1 else "no report of any of these experiments"
        raise InvalidRecord(f"there is {what} in {out}; run it first: {asked} --out {out}")
    return found


def counted(found: Iterable[Stored]) -> dict[Verdict, int]:
    """How many statements have which verdict."""
    counts = sum((each.verdicts for each in found), Counter[Verdict]())
    return {verdict: counts[verdict] for verdict in VERDICTS}


def _stored(out: Path, experiment: Experiment, *, quick: bool | None, longer: int) -> Stored:
    try:
        found = stored_report(out, experiment.name, quick=quick, longer=longer)
    except InvalidRecord as error:
        return Stored(experiment, damaged=str(error))
    return Stored(experiment) if found is None else Stored(experiment, *found)
