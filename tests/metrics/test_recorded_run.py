"""A recorded simulation, measured: the numbers agree with each other and with what the run says of itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.child import loaded_by

from nearcast.errors import InvalidRecord
from nearcast.metrics import (
    RunMetrics,
    Windows,
    bands,
    carried,
    flows,
    pairs,
    per_client,
    per_client_and_window,
    per_event,
    run_metrics,
    totals,
)
from nearcast.metrics.columns import reals, wholes
from nearcast.model.time import EVER, MICROSECONDS, TimeFrame
from nearcast.records import RecordWriter, read
from nearcast.scenario.reading import read as read_scenario
from nearcast.scenario.simulation import RunSummary, simulate

SECONDS = 20


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, RunSummary]:
    folder = tmp_path_factory.mktemp("run") / "records"
    scenario = read_scenario(
        "ar-darmstadt",
        {"run.duration": f"{SECONDS} s", "clients.number": 30, "delivery.mechanism": "both", "cellular.loss": "2 %"},
    )
    return folder, simulate(scenario, 1, out=folder)


@pytest.fixture(scope="module")
def measured(recording: tuple[Path, RunSummary]) -> RunMetrics:
    return run_metrics(recording[0])


def test_recall_and_precision_are_those_of_sets_of_names(recording: tuple[Path, RunSummary]) -> None:
    folder, _ = recording
    events, notifications = read(folder, "events"), read(folder, "notifications")
    publisher = {row["event"]: row["publisher"] for row in events.to_pylist()}
    due = {(row["event"], client) for row in events.to_pylist() for client in row["receivers"]}
    told = {(row["event"], row["client"]) for row in notifications.to_pylist()}
    told = {(name, client) for name, client in told if publisher[name] != client}
    found = totals(pairs(events, notifications))
    assert (found.due, found.notified, found.correct) == (len(due), len(told), len(due & told))
    assert found.strays == found.events_without_truth == 0


def test_a_healthy_network_delivers_and_delays_as_configured(measured: RunMetrics) -> None:
    assert measured.seconds == SECONDS
    assert measured.clients == 30
    assert measured.until - measured.since == (SECONDS - 2) * MICROSECONDS
    assert measured.delivery.recall is not None
    assert measured.delivery.recall > 0.9
    assert measured.application.due == measured.application.delivered + measured.application.lost
    assert measured.application.doubled == 0
    assert measured.delay.p5 is not None
    assert measured.delay.p95 is not None
    assert 0.0 < measured.delay.p5 <= measured.delay.p95 < 1.0
    assert measured.client_recall is not None
    assert measured.client_recall.mean == measured.delivery.mean_client_recall


def test_messages_and_traffic_tell_of_the_same_bytes(recording: tuple[Path, RunSummary]) -> None:
    folder, run = recording
    clients = tuple(sorted(set(read(folder, "clients")["client"].to_pylist())))
    one_by_one = flows(read(folder, "messages"), clients)

    def amounts(table: Any) -> dict[tuple[str, str, str], int]:
        return {(row["interface"], row["direction"], row["class"]): row["messages"] for row in table.to_pylist()}

    from_messages, from_books = amounts(one_by_one.totals()), amounts(carried(read(folder, "traffic")))
    # What was received has a row; what was sent and is still on its way has none yet.
    for key, number in from_books.items():
        interface, direction, _ = key
        in_flight = run.counts[f"{interface}_in_flight"] if direction == "upload" else 0
        assert number - in_flight <= from_messages.get(key, 0) <= number, key
    assert set(from_messages) <= set(from_books)
    windows = Windows(0, 2**60, 2**60)
    everything = one_by_one.rates(windows, "upload").sum() * windows.seconds[0] * 1000 / 8
    assert everything == pytest.approx(one_by_one.bytes[one_by_one.upload].sum())


def test_windows_of_clients_add_up_to_the_clients(recording: tuple[Path, RunSummary]) -> None:
    folder, _ = recording
    found = pairs(read(folder, "events"), read(folder, "notifications"))
    start = int(found.times.min())
    windows = Windows(start, start + SECONDS * MICROSECONDS, 5 * MICROSECONDS)
    table = per_client_and_window(found, windows)
    for name in ("due", "notified", "correct"):
        by_client = dict(zip(table["client"].to_pylist(), [0] * table.num_rows, strict=True))
        for row in table.to_pylist():
            by_client[row["client"]] += row[name]
        expected = {row["client"]: row[name] for row in per_client(found).to_pylist() if row["due"] or row["notified"]}
        assert by_client == expected
    over_clients = bands(windows, wholes(table, "window"), reals(table, "recall"))
    over_events = bands(windows, windows.index(found.times), reals(per_event(found), "recall"))
    for each in (over_clients, over_events):
        assert each.num_rows == 4
        levels = np.stack([reals(each, name) for name in ("p5", "p25", "p50", "p75", "p95")])
        assert (np.diff(levels, axis=0) >= 0).all()


def test_a_frame_and_a_workload_choose_events(recording: tuple[Path, RunSummary], measured: RunMetrics) -> None:
    folder, run = recording
    assert run_metrics(folder, frame=EVER).delivery.events == run.counts["events"]
    half = TimeFrame(measured.since, measured.since + 10 * MICROSECONDS)
    first, whole = run_metrics(folder, frame=half).delivery, measured.delivery
    assert 0 < first.events < whole.events
    assert run_metrics(folder, workload="AR").delivery == whole
    assert run_metrics(folder, workload="LBS").delivery.events == 0


def test_the_numbers_can_be_written_as_json(measured: RunMetrics) -> None:
    text = json.dumps(measured.to_json(), allow_nan=False)
    assert json.loads(text)["about"]["seed"] == 1
    shares: dict[tuple[str, str], float] = {}
    for each in measured.traffic:
        key = each.interface, each.direction
        shares[key] = shares.get(key, 0.0) + (each.share or 0.0)
    assert list(shares.values()) == pytest.approx([1.0] * len(shares))


def test_a_recording_without_anything_cannot_be_measured(tmp_path: Path) -> None:
    with RecordWriter(tmp_path / "empty"):
        pass
    with pytest.raises(InvalidRecord, match="nothing to measure"):
        run_metrics(tmp_path / "empty")


def recorded_at(folder: Path, *seconds: int) -> Path:
    """Events at these seconds, and nothing else."""
    with RecordWriter(folder) as writer:
        for number in seconds:
            place = (None, None, None)
            writer.append("events", number * MICROSECONDS, f"e{number}", "ada", "t", *place, 1, None, ["bob"])
    return folder


def test_a_run_that_ends_before_anything_can_settle_is_judged_by_its_first_instant(tmp_path: Path) -> None:
    assert run_metrics(recorded_at(tmp_path / "short", 0, 1)).delivery.events == 1


def test_a_recording_of_events_alone_is_measured_from_the_first_to_the_last(tmp_path: Path) -> None:
    found = run_metrics(recorded_at(tmp_path / "few", 0, 1, 9))
    assert found.delivery.events == 2
    assert found.delivery.recall == 0.0
    assert found.delay.mean is None
    assert found.match_operations_done is None


def test_importing_the_metrics_does_not_load_pyarrow() -> None:
    assert not {"pyarrow", "numba", "pyspark"} & loaded_by("import nearcast.metrics")
