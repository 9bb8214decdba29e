"""What a benchmark says: one JSON document for tools (contracts.md), one table for people."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

# Where less is better, a ratio is turned round: above 1 always means that nearcast is better.
LESS_IS_BETTER: Final = frozenset(
    {
        "bytes_per_client",
        "growth",
        "idle_connection_bytes",
        "p99_milliseconds",
        "peak_memory_bytes",
        "single_event_microseconds",
        "slowest_task_over_median",
        "stream_p50_seconds",
        "stream_p95_seconds",
    }
)
OURSELVES: Final = "nearcast"
BOUND: Final = "bare-kernel"
_PACKAGES: Final = ("nearcast", "numpy", "numba", "shapely", "sedonadb", "psycopg")


@dataclass(frozen=True, slots=True)
class Measurement:
    system: str
    metric: str
    unit: str
    value: float
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Missing:
    system: str
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    benchmark: str
    machine: dict[str, Any]
    results: tuple[Measurement, ...]
    missing: tuple[Missing, ...]
    ratios: dict[str, float]

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2, allow_nan=False)

    def print(self, console: Console) -> None:
        machine = self.machine
        console.print(
            f"[bold]nearcast bench {self.benchmark}[/bold] on {machine['processor']}, Python {machine['python']}"
        )
        table = Table("system", "metric", "value", "unit", "parameters")
        for row in self.results:
            parameters = ", ".join(f"{name} {_shown(value)}" for name, value in row.parameters.items())
            table.add_row(row.system, row.metric, _shown(row.value), row.unit, parameters)
        console.print(table)
        for absent in self.missing:
            console.print(f"[yellow]not measured: {absent.system}: {absent.reason}[/yellow]")
        comparison = Table("ratio (above 1: nearcast is better)", "times")
        for name, ratio in self.ratios.items():
            comparison.add_row(name, _shown(ratio))
        if self.ratios:
            console.print(comparison)


def ratios(results: tuple[Measurement, ...], like: dict[str, Any]) -> dict[str, float]:
    """Nearcast against every other system, per metric, among results whose parameters contain ``like``.

    Where nearcast has several results of a metric, the first counts.
    """
    comparable = [row for row in results if like.items() <= row.parameters.items()]
    found: dict[str, float] = {}
    for other in comparable:
        ours = next((row for row in comparable if (row.system, row.metric) == (OURSELVES, other.metric)), None)
        name = f"{OURSELVES}/{other.system} {other.metric}"
        if ours is None or other.system == OURSELVES or name in found or not (ours.value and other.value):
            continue
        ratio = other.value / ours.value if other.metric in LESS_IS_BETTER else ours.value / other.value
        found[name] = round(ratio, 4)
    return found


def machine() -> dict[str, Any]:
    """What the figures depend on; neither names nor paths of this machine."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "versions": {name: found for name in _PACKAGES if (found := _version(name)) is not None},
    }


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _shown(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if abs(value) >= 1000 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:,.2f}" if abs(value) >= 1 else f"{value:.3g}"
