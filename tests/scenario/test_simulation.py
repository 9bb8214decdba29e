"""A run as a whole: the same seed is the same run, what is recorded adds up, and the truth in it is true."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.child import run_python

from nearcast.errors import InvalidRecord, ObserverActed
from nearcast.model.geometry import distance_degrees
from nearcast.records.content import content_hash
from nearcast.records.reader import read as read_records
from nearcast.records.summary import read_summary
from nearcast.runtime.observers import Observers
from nearcast.scenario.reading import examples, parse, read
from nearcast.scenario.simulation import RunSummary, headings, simulate

COMMAND = Path(sys.executable).with_name("nearcast")
SMALL: Mapping[str, Any] = {"clients.number": 40, "run.duration": "20 s"}
EVERYTHING = """
[run]
title = "A bit of everything"
duration = "30 s"
[clients]
number = 60
sensor_errors = { low = "30 m", medium = "10 m", high = "3 m" }
[delivery]
mechanism = "both"
forget_after = "10 s"
[cellular]
latency = "uniform 10 ms .. 900 ms"
loss = "2 %"
[population]
kind = "everybody"
join_within = "5 s"
[population.interruptions]
share = "50 %"
online = "exponential 10 s"
offline = "exponential 5 s"
after = "5 s"
[[workload]]
kind = "AR"
radius = "200 m"
[[workload]]
kind = "LBS"
rate = "0.5/s"
[[workload]]
kind = "RND"
timing = "poisson"
"""


def tables_of(summary: RunSummary) -> dict[str, str]:
    return {name: table["sha256"] for name, table in summary.tables.items()}


def in_another_process(text: Path, hash_seed: str, *arguments: str) -> dict[str, Any]:
    said = run_python(str(COMMAND), "simulate", str(text), "--seed", "7", "--json", *arguments, hash_seed=hash_seed)
    summary: dict[str, Any] = json.loads(said)
    return summary


def test_the_same_seed_is_the_same_run_in_every_process_and_under_every_eye(tmp_path: Path) -> None:
    scenario = tmp_path / "everything.toml"
    scenario.write_text(EVERYTHING)
    first = in_another_process(scenario, "0", "--out", str(tmp_path / "first"))
    second = in_another_process(scenario, "4242", "--out", str(tmp_path / "second"))
    observers, seen = Observers(), Counter[str]()
    for table in ("messages", "notifications", "events", "drops", "clients"):
        observers.analyze(table, lambda *_row, table=table: seen.update([table]))
    watched = simulate(parse(EVERYTHING), 7, observers=observers)
    del first["speed"], second["speed"], first["records"], second["records"]
    assert first == second
    assert first["tables"] == watched.tables
    assert {name: first["tables"][name]["rows"] for name in ("messages", "events", "drops")} == {
        name: seen[name] for name in ("messages", "events", "drops")
    }
    # The files too, byte for byte.
    for file in (tmp_path / "first").rglob("*.parquet"):
        assert file.read_bytes() == (tmp_path / "second" / file.relative_to(tmp_path / "first")).read_bytes()


def test_another_seed_is_another_run() -> None:
    scenario = read("rnd-waypoint", SMALL)
    assert tables_of(simulate(scenario, 1))["messages"] != tables_of(simulate(scenario, 2))["messages"]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, RunSummary]:
    out = tmp_path_factory.mktemp("recording") / "run"
    return out, simulate(parse(EVERYTHING), 3, out=out)


def test_the_summary_says_what_the_files_hold(recording: tuple[Path, RunSummary]) -> None:
    out, summary = recording
    for name, said in summary.tables.items():
        table = read_records(out, name)
        assert (table.num_rows, content_hash(table)) == (said["rows"], said["sha256"])


def test_a_recording_says_of_which_run_it_is(recording: tuple[Path, RunSummary]) -> None:
    out, summary = recording
    assert read_summary(out).about == {"title": "A bit of everything", "scenario": summary.scenario, "seed": 3}


def test_every_event_has_those_receivers_whose_area_of_interest_holds_its_place(
    recording: tuple[Path, RunSummary],
) -> None:
    """Positions are sampled every 5 s: at those instants, truth can be recomputed from the records alone."""
    scenario = parse(
        EVERYTHING, changes={"run.position_samples": "1 s", "cellular.loss": 0, "population.join_within": "0 s"}
    )
    rows: dict[str, list[tuple[Any, ...]]] = {"events": [], "clients": []}
    observers = Observers()
    for table, kept in rows.items():
        observers.analyze(table, lambda *row, keep=kept.append: keep(row))
    simulate(scenario, 3, observers=observers)
    assert len(rows["events"]) > 1_000
    radii = {"ar": 200.0, "lbs": 125.0, "rnd": 125.0}
    ours = [row for row in rows["events"] if row[3] == "ar"]
    by_publisher: dict[str, list[tuple[Any, ...]]] = {}
    for row in ours:
        by_publisher.setdefault(row[2], []).append(row)
    checked = 0
    for event in rows["events"]:
        for client, own in by_publisher.items():
            nearest = min(own, key=lambda row: abs(row[0] - event[0]))
            apart = abs(nearest[0] - event[0]) / 1e6
            if client == event[2] or apart > 0.5:
                continue
            metres, slack = distance_degrees(event[4], event[5], nearest[4], nearest[5]), 2.0 * apart + 15.0
            if abs(metres - radii[event[3]]) > slack:  # up to 2 m/s, and fixes with an error of 3 m
                up = was_up(rows["clients"], client, event[0])
                assert (client in event[9]) == (up and metres < radii[event[3]])
                checked += 1
        assert event[2] not in event[9]
    assert checked > 10_000


def was_up(changes: list[tuple[Any, ...]], client: str, time: int) -> bool:
    states = [state for at, name, state in changes if name == client and at <= time]
    return bool(states) and states[-1] in ("joined", "returned")


def test_what_is_sent_is_received_or_lost_and_the_counts_add_up(recording: tuple[Path, RunSummary]) -> None:
    out, summary = recording
    messages, traffic = read_records(out, "messages").to_pylist(), read_records(out, "traffic").to_pylist()
    for interface in ("cellular", "wifi"):
        booked = Counter[str]()
        for row in traffic:
            booked[row["direction"]] += row["messages"] if row["interface"] == interface else 0
        own = [row for row in messages if row["interface"] == interface]
        assert booked["received"] == sum(row["received"] for row in own) > 1_000
        # A broadcast is booked when it has been on air, anything else when the network takes it.
        refused = sum(row["outcome"] in ("link down", "switched off") for row in own)
        under_way = summary.counts["cellular_in_flight"] if interface == "cellular" else 0
        assert booked["sent"] == len(own) - refused + under_way
    notifications = read_records(out, "notifications").to_pylist()
    arrived = sum(row["received"] for row in messages if row["kind"] == "event" and row["sender"] == "broker")
    assert sum(row["path"] == "cloud" for row in notifications) == arrived
    delivered = Counter((row["event"], row["client"]) for row in notifications if row["outcome"] == "delivered")
    twice = {client for (_, client), copies in delivered.items() if copies > 1}
    changes = read_records(out, "clients").to_pylist()
    # Who failed and came back remembers nothing.
    assert twice <= {row["client"] for row in changes if row["state"] == "returned"}


def test_clients_come_go_and_are_recorded(recording: tuple[Path, RunSummary]) -> None:
    out, _ = recording
    states = Counter(read_records(out, "clients")["state"].to_pylist())
    assert states["joined"] == 60
    assert states["failed"] + states["left"] >= states["returned"] > 10


def test_positions_are_sampled_for_everybody_and_stay_in_the_world(recording: tuple[Path, RunSummary]) -> None:
    out, _ = recording
    positions = read_records(out, "positions")
    assert positions.num_rows == 60 * 7  # 0, 5, ... 30 s
    lats, lons = (np.array(positions[name]) for name in ("lat", "lon"))
    far = [distance_degrees(49.8728, 8.6512, lat, lon) for lat, lon in zip(lats, lons, strict=True)]
    assert max(far) < 650 * 2**0.5 + 1


def test_an_observer_that_acts_is_stopped() -> None:
    observers = Observers()
    acting: list[Any] = []

    def meddle(*_row: Any) -> None:
        acting[0]()

    observers.analyze("events", meddle)
    observers.measure("clock", lambda: 0.0)
    from nearcast.runtime.simulation.kernel import Simulation

    acting.append(lambda: Simulation.at(acting[1], 0, print))
    original = Simulation.__init__

    def remember(self: Simulation, *arguments: Any, **named: Any) -> None:
        original(self, *arguments, **named)
        acting.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Simulation, "__init__", remember)
        with pytest.raises(ObserverActed, match="schedule something"):
            simulate(read("rnd-waypoint", SMALL), 1, observers=observers)


def test_a_run_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    out = tmp_path / "run"
    observers = Observers()

    def break_down(*_row: Any) -> None:
        raise RuntimeError("broken")

    observers.analyze("events", break_down)
    with pytest.raises(RuntimeError, match="broken"):
        simulate(read("rnd-waypoint", SMALL), 1, out=out, observers=observers)
    assert not list(tmp_path.rglob("*.parquet"))
    with pytest.raises(InvalidRecord):
        read_records(out, "events")


@pytest.mark.parametrize("name", sorted(examples()))
def test_every_example_runs(name: str) -> None:
    small: dict[str, Any] = {"clients.number": 30, "run.duration": "5 s"}
    if name in ("churn", "day", "lcn"):
        small["population.points"] = [["0 s", 8], ["4 s", 20]]
    if name == "day":
        small["workload"] = [{"kind": "AR"}]  # the others begin later in the day
    if name == "failures":
        small |= {"population.join_within": "1 s", "cellular.outages": [["3 s", "4 s"]]}
    if name == "city-10000":
        small |= {"world.side": "1300 m", "world.points": 20}
    summary = simulate(read(name, small), 1)
    assert summary.counts["events"] > 0


@pytest.mark.parametrize(
    ("vx", "vy", "degrees"), [(0.0, 1.0, 0.0), (1.0, 0.0, 90.0), (-1.0, 0.0, 270.0), (-1e-20, 1.0, 0.0)]
)
def test_headings_go_clockwise_from_north_and_end_before_360_degrees(vx: float, vy: float, degrees: float) -> None:
    assert headings(np.array([vx]), np.array([vy])) == pytest.approx([degrees])
