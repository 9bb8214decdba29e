"""The adaptive policy at work in a small simulated city, beside the schemes that it chooses from."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from nearcast.metrics.matching import OPERATIONS_DONE, increases
from nearcast.metrics.summary import run_metrics
from nearcast.metrics.windows import Windows
from nearcast.model.time import MICROSECONDS
from nearcast.records.reader import read
from nearcast.scenario.kinds import Toml
from nearcast.scenario.reading import parse
from nearcast.scenario.simulation import simulate

SEED = 1
BUSY = (240.0, 360.0)
RADIAL, EGRID = {"kind": "RADIAL"}, {"kind": "EGRID", "factor": 5, "margin": "11 m"}
EVENING = """
clients.number = 40
delivery.forget_after = "5 min"
run = {duration = "10 min", metric_samples = "1 s"}

[[workload]]
rate = "3/min"
timing = "poisson"
start = "4 min"
end = "6 min"
"""


@dataclass(frozen=True)
class Outcome:
    cost: float
    recall: float
    changes: list[tuple[float, str]]
    """Seconds at which the broker changed its scheme, and to which."""


def outcome(folder: Path, **changes: Toml) -> Outcome:
    scenario = parse(EVENING, changes=changes)
    simulate(scenario, SEED, out=folder)
    found, start, seconds = run_metrics(folder), scenario.run.start, scenario.run.duration
    whole = Windows(start, start + round(seconds * MICROSECONDS), round(seconds * MICROSECONDS))
    operations = float(increases(read(folder, "metrics"), OPERATIONS_DONE, whole)[0])
    rows = [row for row in read(folder, "transitions").to_pylist() if row["host"] == "broker" and row["source"]]
    changes_made = [(row["time"].timestamp() - start / MICROSECONDS, row["target"].partition("(")[0]) for row in rows]
    assert found.delivery.mean_event_recall is not None
    return Outcome(sum(row.bytes for row in found.traffic) + operations, found.delivery.mean_event_recall, changes_made)


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    folder = tmp_path_factory.mktemp("evening")
    planning = {"kind": "adaptive", "candidates": [EGRID]}
    return {
        "adaptive": outcome(folder / "adaptive", scheme=RADIAL, planning=planning),
        "RADIAL": outcome(folder / "radial", scheme=RADIAL),
        "EGRID": outcome(folder / "egrid", scheme=EGRID),
    }


def test_in_quiet_times_cells_run_and_in_busy_times_positions(evening: dict[str, Outcome]) -> None:
    changes = evening["adaptive"].changes
    assert [scheme for _, scheme in changes] == ["EGRID", "RADIAL", "EGRID"]
    quiet, busy, quiet_again = (time for time, _ in changes)
    assert quiet < 120
    # Rent as long as a switch costs: with 40 clients that publish 2 events per second, some seconds.
    assert BUSY[0] < busy < BUSY[0] + 20
    assert BUSY[1] < quiet_again < BUSY[1] + 150


def test_that_costs_less_than_either_all_the_time(evening: dict[str, Outcome]) -> None:
    assert evening["adaptive"].cost < 0.9 * min(evening["RADIAL"].cost, evening["EGRID"].cost)


def test_and_finds_as_much(evening: dict[str, Outcome]) -> None:
    assert evening["adaptive"].recall >= evening["RADIAL"].recall - 0.01
    assert evening["adaptive"].recall >= 0.95


def test_the_same_seed_decides_the_same(evening: dict[str, Outcome], tmp_path: Path) -> None:
    planning = {"kind": "adaptive", "candidates": [EGRID]}
    assert outcome(tmp_path / "again", scheme=RADIAL, planning=planning) == evening["adaptive"]
