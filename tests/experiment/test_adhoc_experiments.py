"""The experiments of ad hoc mechanisms from their runs to their figures, with a few people in a small city."""

from __future__ import annotations

import math
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace as changed
from tests.experiment.adhoc_worlds import CLIENTS, e8, followed

from nearcast.experiment.adhoc.constants import CONSTANTS
from nearcast.experiment.adhoc.gossip import A6
from nearcast.experiment.adhoc.healing import E8, initial, last, outskirts, until, within
from nearcast.experiment.adhoc.pure import E5
from nearcast.experiment.adhoc.scalability import A5
from nearcast.experiment.adhoc.told_by_plan import E7
from nearcast.experiment.campaign import run
from nearcast.experiment.experiment import Experiment
from nearcast.experiment.figures.files import save
from nearcast.experiment.figures.spread import spread_maps
from nearcast.experiment.runs import Run, scenario

PEOPLE, SIDE = 24, "500 m"


def small(one: Run) -> Run:
    """The same run with fewer people on less ground."""
    changes: dict[str, Any] = tomllib.loads(one.scenario.to_toml())
    changes["clients"]["number"] = PEOPLE
    changes["world"] = {"kind": "organic", "side": SIDE}
    if changes["population"]["kind"] == "curve":
        end = changes["population"]["points"][-1][0]
        changes["population"]["points"] = [["0 s", 12], [end, PEOPLE]]
    for each in changes["adhoc"].get("transition", []):
        if "initiators" in each:
            each["initiators"] = min(each["initiators"], 4)
    return replace(one, scenario=scenario("adhoc", changes))


@pytest.mark.slow
@pytest.mark.parametrize("experiment", [E5, E7, E8, A5, A6, CONSTANTS], ids=lambda each: each.name)
def test_an_experiment_goes_from_its_runs_to_its_figures(experiment: Experiment, tmp_path: Path) -> None:
    smaller = replace(experiment, runs=lambda quick: tuple(small(one) for one in experiment.runs(quick)))
    (report,) = run([smaller], tmp_path, quick=True, jobs=1)
    assert report.failures == {}
    assert {figure.name for figure in report.figures} == {drawing.name for drawing in experiment.drawings}
    # Quick runs are too short for that one.
    open_checks = {check.id for check in report.checks if check.verdict == "not run"}
    assert open_checks == ({"E8.7"} if experiment is E8 else set())


def test_full_runs_have_the_documents_times_and_people() -> None:
    for experiment in (E5, E7, E8, A6, CONSTANTS):
        assert {one.scenario.clients.number for one in experiment.runs(False)} == {297}
    timetable = [(480.0, "PLAN-B"), (720.0, "HYPERG"), (1020.0, "FLOODING"), (1320.0, "BROADCAST")]
    for one in (*E8.runs(False), E7.runs(False)[0]):
        assert [(each.at, each.mechanism.word) for each in one.scenario.adhoc.transition] == timetable
    assert [[each.initiators for each in one.scenario.adhoc.transition] for one in E8.runs(False)] == [
        [1] * 4,
        [30] * 4,
    ]
    assert {one.scenario.population.most() for one in A5.runs(False)} == {300}


def test_times_of_a_spread() -> None:
    world = e8(good=True)
    one = world["one"]
    half = next(mark for mark in one.marks if mark.label == "T2").followed
    assert half is not None
    assert until("one", "HYPERG", 0.5)(world) == half.after[49]
    assert within("one", "HYPERG", half.after[49])(world) == 0.5
    assert within("one", "HYPERG", math.inf)(world) == len(half.after) / CLIENTS
    assert initial("one", "HYPERG")(world) == half.after[10], "the initiator, and ten others"
    assert until("one", "HYPERG", 1.0)(world) == 300.0, "who never followed had time until T3"
    assert last("one", "HYPERG", 300.0)(world) == half.after[-1]
    assert last("one", "HYPERG", 301.0)(world) is None, "too short to tell"
    assert outskirts("one", "PLAN-B")(world) > 2.0  # type: ignore[operator]


def test_a_spread_can_be_drawn_even_if_nobody_followed(tmp_path: Path) -> None:
    marks = {mark.label: mark for mark in e8(good=True)["one"].marks}
    nobody = next(iter(marks.values()))
    marks["nobody"] = changed(nobody, followed=followed([]))
    marks["unknown"] = changed(nobody, followed=None)
    png, _, table = save(spread_maps(marks), tmp_path, "spread")
    assert (tmp_path / png).read_bytes().startswith(b"\x89PNG")
    followers = sum(len(mark.followed.after) for mark in marks.values() if mark.followed)
    assert len((tmp_path / table).read_text().splitlines()) == 1 + followers
