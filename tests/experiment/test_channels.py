"""Numbers of channels, against what a recording says in other words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.scenario.two_points import TWO_POINTS

from nearcast.experiment.coexistence import channels
from nearcast.experiment.measuring import measure
from nearcast.experiment.runs import Run
from nearcast.metrics.columns import column
from nearcast.model.time import MICROSECONDS
from nearcast.records.arrow import plain_schema
from nearcast.records.reader import read
from nearcast.records.tables import TABLES
from nearcast.scenario.ground import ground_of
from nearcast.scenario.reading import parse
from nearcast.scenario.schema import Scenario
from nearcast.scenario.simulation import simulate

TOWN = (
    """
[run]
duration = "40 s"
metric_samples = "1 s"
[clients]
number = 24
[world]
kind = "plain"
width = "360 m"
height = "360 m"
"""
    + TWO_POINTS
    + """
[transitions]
acknowledged = false
[coexistence]
inside = "augment"
threshold = 3
otherwise.kind = "PLAN-B"
"""
)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Scenario, Path]:
    folder, town = tmp_path_factory.mktemp("channels") / "run", parse(TOWN)
    simulate(town, 1, out=folder)
    return town, folder


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read(folder, table).to_pylist()
    return found


def test_coordination_is_all_plans_that_the_broker_sent(recorded: tuple[Scenario, Path]) -> None:
    found = channels.numbers(*recorded)
    sent = [row for row in rows(recorded[1], "messages") if row["interface"] == "cellular"]
    plans = sum(row["bytes"] for row in sent if row["kind"] == "plan" and row["received"])
    assert found["coordination"] == pytest.approx(plans / 1e6)
    assert plans > 1_000
    everything = found["cellular upload"] + found["cellular download"]
    assert found["coordination share"] == pytest.approx(found["coordination"] / everything)


def test_inside_a_channel_events_are_fast_and_outside_they_are_not(recorded: tuple[Scenario, Path]) -> None:
    found = channels.numbers(*recorded)
    assert found["delay inside"] < 100.0 < found["delay outside"]
    assert found["delay inside"] < found["delay at points"] < found["delay outside"]
    assert 0.05 < found["due inside"] < 0.5


def test_points_switch_as_often_as_the_records_say(recorded: tuple[Scenario, Path]) -> None:
    found = channels.numbers(*recorded)
    switches = [row for row in rows(recorded[1], "transitions") if row["proxy"].startswith("lc at ")]
    assert found["switches a minute"] == pytest.approx(len(switches) / (40 / 60))
    assert found["points that switch"] == len({row["proxy"] for row in switches})
    assert found["exchanges at points"] > 0.8  # at 8 m/s people are far away before they have said so
    assert found["agreeing"] > 0.9
    assert 0.1 < found["share at points"] < 0.6


def test_a_run_brings_them_along(recorded: tuple[Scenario, Path]) -> None:
    town, folder = recorded
    run = Run("town", town, window=5.0, settling=5.0, numbers=channels.numbers)
    assert measure(run, folder).numbers == dict(channels.numbers(town, folder))


def transitions(*made: tuple[float, str, str, str | None, str | None]) -> Any:
    """Seconds, host, proxy, source, target; all of them in the middle of the park."""
    town = parse(TOWN)
    lat, lon = 49.8728, 8.6512 - 100 / (111_195 * 0.6445)
    listed = [
        {
            "time": town.run.start + round(seconds * MICROSECONDS),
            "host": host,
            "proxy": proxy,
            "source": source,
            "target": target,
            "lat": lat,
            "lon": lon,
            "plan": None,
        }
        for seconds, host, proxy, source, target in made
    ]
    table = next(table for table in TABLES if table.name == "transitions")
    return pa.Table.from_pylist(listed, schema=plain_schema(table))


def states(*made: tuple[float, str, str]) -> Any:
    start = parse(TOWN).run.start
    rows = [{"time": start + round(at * MICROSECONDS), "client": who, "state": what} for at, who, what in made]
    return pa.Table.from_pylist(rows, schema=plain_schema(next(table for table in TABLES if table.name == "clients")))


def test_brief_is_what_is_undone_within_ten_seconds_and_who_lags_behind_does_not_agree() -> None:
    town = parse(TOWN)
    table = transitions(
        (20.0, "a", "lc", None, "PLAN-B"),
        (20.0, "b", "lc", None, "PLAN-B"),
        (25.0, "broker", "lc at park", "PLAN-B", "GOSSIP"),
        (25.0, "a", "lc", "PLAN-B", "GOSSIP"),
        (30.0, "broker", "lc at park", "GOSSIP", "PLAN-B"),
        (30.0, "a", "lc", "GOSSIP", "PLAN-B"),
    )
    assert column(table, "host").to_pylist()[0] == "a"
    found = channels._switches(town, table)
    assert found == {
        "switches a minute": 3.0,
        "brief": 0.5,
        "points that switch": 1.0,
        "points never crowded": 1.0,
    }
    # Twenty seconds of two clients; b has not followed for five of them.
    assert channels._agreement(town, table, states())["agreeing"] == pytest.approx(1 - 5 / 40)
    # Who has gone is asked no longer.
    gone = states((28.0, "b", "left"))
    assert channels._agreement(town, table, gone)["agreeing"] == pytest.approx(1 - 3 / 28)
    assert channels._where(ground_of(town), table) == {"exchanges": 4.0, "exchanges at points": 1.0}
