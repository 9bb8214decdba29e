"""The worlds of STEAM's experiments, in small; and runs that are computed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest
from tests.documents import ROOT

from nearcast.experiment.campaign import run
from nearcast.experiment.checks import Check, Outcome, Part, near
from nearcast.experiment.execution import Failure, Task, execute
from nearcast.experiment.experiment import Drawing, Experiment
from nearcast.experiment.figures.files import save
from nearcast.experiment.figures.lines import lines
from nearcast.experiment.measures import computed
from nearcast.experiment.runs import Computed
from nearcast.experiment.steam import crowds
from nearcast.experiment.steam.accuracy import gossip, partitions, saved
from nearcast.experiment.steam.cost import cost
from nearcast.experiment.steam.filtering import events
from nearcast.experiment.steam.intersection import COUNTS, SPEED, day
from nearcast.experiment.steam.latency import SIZES, TYPES, Bench, latency
from nearcast.experiment.storage import Result, kept_result


@pytest.mark.parametrize("scenario", ["A", "B"])
@pytest.mark.parametrize("speed", [0.0, 30.0])
def test_cost_is_the_closed_form_whoever_moves(scenario: str, speed: float) -> None:
    found = cost(3, scenario=scenario, saturation=40, speed=speed, draws=1)
    assert found["largest difference"] <= 1
    assert found["cost 100"] == found["cost 200"] == 1.0
    assert found["cost 700"] > 20


def test_a_partition_takes_those_behind_it_out_of_the_closed_form() -> None:
    crowd = crowds.Crowd(1, 4)
    crowd.place([(100.0, 0.0), (250.0, 0.0), (500.0, 0.0), (-150.0, 0.0)])
    assert crowd.spread(600) == crowds.Spread(cost=4, inside=4, connected=3, reached=3)
    assert crowd.spread(120) == crowds.Spread(cost=1, inside=1, connected=1, reached=1)


def test_an_idle_consumer_hears_and_passes_nothing_on() -> None:
    crowd = crowds.Crowd(1, 2, idle=1)
    crowd.place([(150.0, 0.0), (300.0, 0.0)])
    assert crowd.spread(600) == crowds.Spread(cost=1, inside=2, connected=2, reached=1)


@pytest.mark.parametrize("name", sorted(crowds.PLACEMENTS))
def test_everybody_is_where_the_scenario_says(name: str) -> None:
    places = crowds.PLACEMENTS[name](Random(1), 400)
    assert len(places) == 400
    assert max(math.hypot(x, y) for x, y in places) <= 700.01
    on_road = [abs(y) < 2 or abs(x) < 2 for x, y in places]
    assert all(on_road) is (name in "ABC")
    # Half of a road is within half its length; of an area, a quarter.
    share = sum(math.hypot(x, y) <= 350 for x, y in places) / 400
    assert share == pytest.approx(0.5 if name in "ABC" else 0.25, abs=0.08)


def test_searchers_have_equal_parts() -> None:
    places = crowds.searchers(Random(1), 100)
    nearest = [min(math.dist(a, b) for b in places if b != a) for a in places]
    assert min(nearest) > 0.6 * max(nearest)


def test_chances_and_shares_of_a_sparse_crowd() -> None:
    found = partitions(1, scenario="D", saturation=20, draws=3)
    assert found["chance 700"] == 1.0
    assert found["chance 100"] == found["unreached 200"] == 0.0
    assert 0.1 < found["unreached 700"] < 1.0


def test_gossip_saves_what_geometry_says() -> None:
    assert saved("A", 400) == pytest.approx(0.1)
    assert saved("D", 400) == pytest.approx(0.15)
    found = gossip(1, scenario="A", saturation=120, draws=1)
    assert found["reached 700"] == 1.0
    assert found["saved 700"] == pytest.approx(saved("A", 700), abs=0.08)


def test_each_vehicle_of_a_lane_passes_once_and_hears_what_the_way_through_says() -> None:
    share = 1 / 400
    tallies = day(filtered=True, radius=40.0, share=share)
    assert {lane: tally.vehicles for lane, tally in tallies.items()} == {
        lane: round(count * share) for lane, count in COUNTS.items()
    }
    told = sum(tally.events for tally in tallies.values()) / sum(tally.vehicles for tally in tallies.values())
    assert told == pytest.approx(40 / SPEED, abs=0.15)
    assert all(tally.found == tally.vehicles for tally in tallies.values())
    found = events(1, filtered="no", share=share)
    assert found["events 1.1"] == pytest.approx(COUNTS["1.1"] * 2 * 400 / SPEED, rel=0.02)


def test_processing_is_measured_on_devices_that_deliver() -> None:
    found = latency(1, runs=3)
    assert found["raise, types 1: calls"] == found["raise, types 40: calls"] > 10
    assert found["collisions"] == 0
    assert {len(each.subject) for each in TYPES} <= set(range(14, 19))
    bench = Bench()
    act = bench.delivering(SIZES[-1], 5)
    for _ in range(5):
        act()
    assert bench.services[0].statistics().delivered == 5


# Runs that are computed


def doubled(seed: int, *, number: float) -> Mapping[str, float]:
    if number < 0:
        raise ValueError("less than nothing")
    return {"twice": 2 * number, "seed": seed}


def drawn(outcomes: list[Outcome]) -> object:
    return lines({"a": [(1.0, outcomes[0]["four"].numbers["twice"])]}, x="x", y="y", title="t")


MADE_UP = Experiment(
    name="made-up",
    document="nearcast",
    title="Doubling",
    runs=lambda _quick: (),
    computed=lambda quick: (Computed("four", doubled, (("number", 4.0 if quick else 5.0),)),),
    checks=(
        Check("M1", "twice is eight", "text", (Part("twice", near(8.0, 0.0), lambda o: o["four"].numbers["twice"]),)),
    ),
    drawings=(Drawing("twice", "Twice", ("four",), drawn),),  # type: ignore[arg-type]
    seeds=2,
)


def test_a_computed_run_is_judged_drawn_and_kept(tmp_path: Path) -> None:
    (report,) = run([MADE_UP], tmp_path, quick=True, jobs=1)
    assert [(check.id, check.verdict) for check in report.checks] == [("M1", "reproduced")]
    assert (tmp_path / "made-up" / "quick" / report.figures[0].png).is_file()
    (full,) = run([MADE_UP], tmp_path, jobs=1)
    assert full.checks[0].verdict == "deviates"
    assert full.seeds == [1, 2]
    kept = kept_result(tmp_path / "made-up" / "quick", 1, MADE_UP.computed(True)[0])
    assert kept is not None
    assert kept.measures == computed({"twice": 8.0, "seed": 1.0})
    assert kept_result(tmp_path / "made-up" / "quick", 1, MADE_UP.computed(False)[0]) is None, "other arguments"
    assert kept_result(tmp_path / "made-up" / "quick", 2, MADE_UP.computed(True)[0]) is None, "another seed"


def test_a_computed_run_that_fails_says_why_and_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT)  # processes of their own must find this module
    tasks = [
        Task("made-up", Computed(f"of {number:g}", doubled, (("number", number),)), 1, tmp_path)
        for number in (-1.0, 1.0)
    ]
    for jobs in (1, 2):
        failed, done = execute(tasks, jobs=jobs, fresh=True)
        assert isinstance(failed, Failure)
        assert "less than nothing" in failed.reason
        assert isinstance(done, Result)
        assert done.measures.numbers["twice"] == 2.0


def test_lines_can_be_drawn_below_zero_and_in_many_colours(tmp_path: Path) -> None:
    series = {str(number): [(0.0, -1.0), (1.0, float(number))] for number in range(16)}
    png, svg, _ = save(lines(series, x="x", y="y", title="t"), tmp_path, "figure")
    assert (tmp_path / png).read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / svg).read_text().count("<path") > 16
