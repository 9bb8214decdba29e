"""Single runs of a campaign that is spread over many machines (``pipeline.campaign``): run, measure, and figures of all."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from nearcast.experiment.figures.boxes import bars
from nearcast.experiment.figures.files import save
from nearcast.metrics.columns import column, is_name, names_in, numbers, sums, wholes
from nearcast.metrics.fairness import jain_index
from nearcast.metrics.summary import RunMetrics, run_metrics
from nearcast.metrics.traffic import BROKER
from nearcast.records.reader import read as read_table
from nearcast.scenario.reading import read
from nearcast.scenario.simulation import simulate

FIGURES: Final = {
    "recall": ("Recall", ""),
    "precision": ("Precision", ""),
    "delay_p50": ("Median delay", "s"),
    "upload_fairness": ("Fairness of uploads (Jain)", ""),
    "cellular_upload": ("Upload of a client", "kbit/s"),
    "cellular_download": ("Download of a client", "kbit/s"),
}
"""What is drawn: titles and units, by metric."""


def run_scenario(scenario: str, changes: Mapping[str, Any], seed: int) -> dict[str, float | None]:
    """Simulate, measure, and keep nothing but the numbers."""
    with tempfile.TemporaryDirectory(prefix="nearcast-run-") as folder:
        out = Path(folder) / "records"
        summary = simulate(read(scenario, changes), seed, out=out)
        measured = run_metrics(out)
        fairness = upload_fairness(read_table(out, "traffic"))
    speed = summary.speed["simulated_seconds_per_second"]
    return {**numbers_of(measured), "upload_fairness": fairness, "simulated_seconds_per_second": speed}


def numbers_of(measured: RunMetrics) -> dict[str, float | None]:
    """The headline numbers of a run, by name."""
    delivery, application, delay = measured.delivery, measured.application, measured.delay
    found: dict[str, float | None] = {
        "clients": measured.clients,
        "events": delivery.events,
        "due": delivery.due,
        "notified": delivery.notified,
        "recall": delivery.recall,
        "precision": delivery.precision,
        "false_negatives": delivery.due - delivery.correct,
        "false_positives": delivery.notified - delivery.correct,
        "mean_client_recall": delivery.mean_client_recall,
        "mean_client_precision": delivery.mean_client_precision,
        "lost": application.lost,
        "doubled": application.doubled,
        "delay_mean": delay.mean,
        "delay_p50": delay.p50,
        "delay_p95": delay.p95,
        "match_operations": measured.match_operations_counted,
        "transitions": measured.transitions,
    }
    for total in measured.traffic:
        name = f"{total.interface}_{total.direction}"
        for each in (name, f"{name}_{total.kind_class}"):
            found[each] = (found.get(each) or 0.0) + (total.kilobits_per_second or 0.0)
    return found


def upload_fairness(traffic: Any) -> float | None:
    """Jain's index of what clients sent, in bytes."""
    sent = traffic.filter(is_name(column(traffic, "direction"), "sent") & ~is_name(column(traffic, "host"), BROKER))
    hosts = names_in(column(sent, "host"))
    return jain_index(sums(numbers(column(sent, "host"), hosts), wholes(sent, "bytes"), len(hosts)))


def draw(summary: Sequence[Mapping[str, Any]], folder: Path) -> list[str]:
    """A figure for each metric of ``FIGURES`` that was measured: means over the seeds, by setting and scenario; the names of the files."""
    files: list[str] = []
    for metric, (title, unit) in FIGURES.items():
        groups: dict[str, dict[str, float]] = {}
        for row in sorted(summary, key=lambda row: (row["scenario"], row["changes"])):
            if row["metric"] == metric:
                groups.setdefault(_setting(row["changes"]), {})[Path(row["scenario"]).stem] = row["mean"]
        if groups:
            files += save(bars(groups, label=unit, title=title), folder, metric)
    return files


def _setting(changes: str) -> str:
    values = msgspec.json.decode(changes)
    return ", ".join(f"{name.rpartition('.')[2]} {value}" for name, value in values.items()) or "as it is"
