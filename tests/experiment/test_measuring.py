"""What is measured in a recording is what the metrics say of it, part by part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from nearcast.errors import InvalidRecord
from nearcast.experiment.agreement import agreement
from nearcast.experiment.measures import Measures
from nearcast.experiment.measuring import EDGE, LAST, measure, restricted
from nearcast.experiment.runs import Run, scenario
from nearcast.experiment.schedule import broker_changes, mechanisms, timelines
from nearcast.metrics.delivery import totals
from nearcast.metrics.pairs import pairs
from nearcast.metrics.summary import run_metrics
from nearcast.metrics.traffic import carried
from nearcast.metrics.windows import Windows
from nearcast.model.time import MICROSECONDS, TimeFrame
from nearcast.records.reader import read
from nearcast.scenario.simulation import simulate

START = 1_767_225_600 * MICROSECONDS
SECONDS = 20.0


def made(name: str, scheme: str) -> Run:
    changes: dict[str, Any] = {
        "run.duration": f"{SECONDS:g} s",
        "clients.number": 30,
        "world": {"kind": "plain", "width": "400 m", "height": "400 m"},
        "mobility": {"model": "waypoint"},
        "scheme": {"kind": scheme},
        "population": {"kind": "curve", "points": [["0 s", 30], ["10 s", 30], ["15 s", 20]]},
    }
    wanted = scenario("ar-darmstadt", changes)
    return Run(name, wanted, phases=("first", "second"), cuts=(10.0,), window=5.0, settling=2.0, maps=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("measured")
    for run in (made("radial", "RADIAL"), made("grid", "GRID")):
        simulate(run.scenario, 1, out=out / run.name)
    return out


@pytest.fixture(scope="module")
def measured(folder: Path) -> Measures:
    return measure(made("radial", "RADIAL"), folder / "radial")


def test_the_whole_run_is_measured_as_the_metrics_do(folder: Path, measured: Measures) -> None:
    known = run_metrics(folder / "radial", frame=TimeFrame(START, START + round((SECONDS - LAST) * MICROSECONDS)))
    whole = measured.whole.delivery
    assert (whole.due, whole.notified, whole.correct) == (
        known.delivery.due,
        known.delivery.notified,
        known.delivery.correct,
    )
    assert (whole.recall, whole.precision) == (known.delivery.mean_event_recall, known.delivery.mean_event_precision)
    assert whole.client_recall == known.client_recall
    assert whole.due > 100


@pytest.mark.parametrize(("since", "until"), [(0.0, 20.0), (3.0, 7.5), (12.0, 12.0)])
def test_pairs_of_a_part_are_those_that_are_found_in_it(folder: Path, since: float, until: float) -> None:
    events, notifications = read(folder / "grid", "events"), read(folder / "grid", "notifications")
    frame = TimeFrame(START + round(since * MICROSECONDS), START + round(until * MICROSECONDS) + 1)
    part, direct = restricted(pairs(events, notifications), frame), pairs(events, notifications, frame=frame)
    # The whole knows of all notifications' events, so it has no strays that the part has not.
    assert totals(part) == totals(direct)


def test_phases_lie_between_the_cuts_and_are_settled(measured: Measures) -> None:
    assert [(phase.label, phase.since, phase.until) for phase in measured.phases] == [
        ("first", 2.0, 10.0 - EDGE),
        ("second", 12.0, SECONDS - LAST),
    ]
    assert sum(phase.delivery.events for phase in measured.phases) < measured.whole.delivery.events


def test_traffic_is_what_interfaces_carried(folder: Path, measured: Measures) -> None:
    table = carried(read(folder / "radial", "traffic")).to_pylist()
    known = {f"{row['direction']} {row['class']}": row for row in table}
    for name, rate in measured.whole.rates.items():
        if rate.messages:
            # All but the last two seconds of twenty.
            assert 0.8 * known[name]["messages"] < rate.messages <= known[name]["messages"]
            assert rate.bytes / rate.messages == pytest.approx(known[name]["bytes"] / known[name]["messages"], rel=0.02)
    assert {name for name, row in known.items() if row["messages"] > 50} <= {
        name for name, rate in measured.whole.rates.items() if rate.messages
    }


def test_the_number_of_clients_is_that_of_the_time(measured: Measures) -> None:
    first, second = measured.phases
    assert first.clients == pytest.approx(30.0)
    assert 19.0 < second.clients < 27.0
    assert measured.series.mechanisms["RADIAL"][0] == 30
    assert measured.series.mechanisms["RADIAL"][-1] == 20


def test_measures_survive_being_written_down(measured: Measures) -> None:
    assert msgspec.json.decode(msgspec.json.encode(measured), type=Measures) == measured


def test_a_phase_that_never_settles_is_refused(folder: Path) -> None:
    run = made("radial", "RADIAL")
    short = Run(run.name, run.scenario, phases=("a", "b"), cuts=(1.0,), window=5.0, settling=2.0)
    with pytest.raises(InvalidRecord, match="before it has settled"):
        measure(short, folder / "radial")


def test_runs_agree_in_what_they_have_in_common(folder: Path) -> None:
    radial, grid = str(folder / "radial"), str(folder / "grid")
    assert agreement(radial, radial) == 1.0
    both = agreement(radial, grid)
    assert both is not None
    assert 0.05 < both < 0.95
    assert agreement(grid, radial) == both


def rows(*given: tuple[float, str, str | None, str | None, str | None]) -> Any:
    import pyarrow as pa

    columns = list(zip(*given, strict=True))
    return pa.table(
        {
            "time": pa.array([START + round(at * MICROSECONDS) for at in columns[0]], pa.timestamp("us", tz="UTC")),
            "host": columns[1],
            "proxy": ["filter scheme"] * len(given),
            "source": pa.array(columns[2], pa.string()),
            "target": pa.array(columns[3], pa.string()),
            "plan": pa.array(columns[4], pa.string()),
        }
    )


def states(*given: tuple[float, str, str]) -> Any:
    import pyarrow as pa

    times = [START + round(at * MICROSECONDS) for at, _, _ in given]
    return pa.table(
        {
            "time": pa.array(times, pa.timestamp("us", tz="UTC")),
            "client": pa.array([client for _, client, _ in given], pa.string()),
            "state": pa.array([state for _, _, state in given], pa.string()),
        }
    )


TABLE = rows(
    (0.0, "broker", None, "A", None),
    (0.0, "ann", None, "A", None),
    (1.0, "bob", None, "A", None),
    (5.0, "broker", "A", "B", "1"),
    (5.2, "ann", "A", "B", "1"),
    (6.0, "bob", "A", "B", "1"),
    (9.0, "broker", "B", "A", "2"),
)


def test_changes_of_the_broker_do_not_include_its_start() -> None:
    assert [(change.at, change.source, change.target) for change in broker_changes(TABLE, START)] == [
        (5.0, "A", "B"),
        (9.0, "B", "A"),
    ]


def test_who_has_gone_runs_nothing() -> None:
    gone = states((0.0, "ann", "joined"), (8.0, "bob", "left"))
    windows = Windows(START, START + 10 * MICROSECONDS, 2 * MICROSECONDS)
    assert mechanisms(TABLE, gone, windows) == {"A": [2, 2, 1, 0, 0], "B": [0, 0, 1, 2, 1]}
    shown = {line.client: line for line in timelines(TABLE, gone, START)}
    assert (shown["bob"].since, shown["bob"].mechanism) == ([1.0, 6.0, 8.0], ["A", "B", None])
