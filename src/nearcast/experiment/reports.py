"""What is known of an experiment when its runs are over, and where that lies."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from nearcast.errors import InvalidRecord
from nearcast.experiment.checks import CheckResult
from nearcast.experiment.parameters import RunParameters

REPORT: Final = "report.json"


class FigureFiles(msgspec.Struct, frozen=True):
    """One figure in all its forms; paths are relative to the folder of the report."""

    name: str
    caption: str
    png: str
    svg: str
    csv: str = ""
    """What it shows; reports of earlier versions have none."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What an experiment brought."""

    experiment: str
    document: str
    title: str
    quick: bool
    longer: int = 1
    """How many times as long quick runs were in which nothing changes."""

    seeds: list[int]
    checks: list[CheckResult]
    figures: list[FigureFiles]
    failures: dict[str, str]
    """Runs that did not come to their end, and why."""

    seconds: dict[str, float]
    """Of a processor, that each run took with its measuring."""

    version: str = ""
    """Of nearcast."""

    finished: str = ""
    """When the last of the runs was over: ISO 8601, UTC."""

    runs: list[RunParameters] = msgspec.field(default_factory=list)
    """What each was given."""

    @property
    def form(self) -> str:
        """How its runs differ from the documents'."""
        if not self.quick:
            return "full"
        return "quick" if self.longer == 1 else f"quick, {self.longer} times as long where nothing changes"

    @property
    def command(self) -> str:
        """Repeats it."""
        return command_of(self.experiment, quick=self.quick, longer=self.longer, seeds=len(self.seeds))

    def to_json(self, folder: Path) -> dict[str, Any]:
        """The document of the contract; ``folder`` is where the report lies."""
        return {
            "experiment": self.experiment,
            "document": self.document,
            "title": self.title,
            "quick": self.quick,
            "longer": self.longer,
            "seeds": self.seeds,
            "checks": [check.to_json() for check in self.checks],
            "figures": [str(folder / path) for figure in self.figures for path in (figure.png, figure.svg)],
            "figure_data": [str(folder / figure.csv) for figure in self.figures if figure.csv],
            "failures": self.failures,
            "seconds": self.seconds,
            "records": str(folder),
            "version": self.version,
            "finished": self.finished,
            "command": self.command,
        }


def command_of(experiment: str, *, quick: bool, longer: int = 1, seeds: int | None = None) -> str:
    """What to say to run it; ``seeds`` may be as many as usual."""
    options = " --quick" * quick + f" --longer {longer}" * (longer > 1)
    return f"nearcast experiment run {experiment}{options}" + (f" --seeds {seeds}" if seeds else "")


def folder_of(out: Path, experiment: str, *, quick: bool, longer: int = 1) -> Path:
    form = "quick" if quick else "full"
    return out / experiment / (form if longer == 1 else f"{form}-{longer}-times")


def stored_report(
    out: Path, experiment: str, *, quick: bool | None = None, longer: int = 1
) -> tuple[Report, Path] | None:
    """The report of an earlier run, and its folder; unless said, of the longest runs: the documents' if there are such."""
    if quick is None:
        folders = [folder_of(out, experiment, quick=False), *_quick_folders(out, experiment)]
    else:
        folders = [folder_of(out, experiment, quick=quick, longer=longer)]
    for folder in folders:
        try:
            return msgspec.json.decode((folder / REPORT).read_bytes(), type=Report), folder
        except FileNotFoundError:
            continue
        except (OSError, msgspec.MsgspecError) as error:
            raise InvalidRecord(f"{folder / REPORT} cannot be read: {error}") from None
    return None


def _quick_folders(out: Path, experiment: str) -> list[Path]:
    """The longest first."""
    usual = folder_of(out, experiment, quick=True)
    longer = [
        (int(times), found)
        for found in (out / experiment).glob(f"{usual.name}-*-times")
        if (times := found.name.removeprefix(f"{usual.name}-").removesuffix("-times")).isdecimal()
    ]
    return [*(found for _, found in sorted(longer, reverse=True)), usual]
