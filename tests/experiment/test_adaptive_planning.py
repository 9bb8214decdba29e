"""The comparison of the adaptive policy with what it chooses from."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.effort import campaign

from nearcast.experiment.adaptive_planning import ADAPTIVE, ADAPTIVE_PLANNING, RULES, STATIC, TOO_COARSE
from nearcast.experiment.campaign import run
from nearcast.experiment.experiment import Experiment
from nearcast.experiment.runs import Run
from nearcast.scenario.planning_section import AdaptivePlanning
from nearcast.scenario.population_section import Curve


@pytest.mark.parametrize("quick", [True, False])
def test_static_runs_are_the_candidates_and_all_runs_have_the_same_day(quick: bool) -> None:
    runs = {each.name: each.scenario for each in ADAPTIVE_PLANNING.runs(quick)}
    planning = runs[ADAPTIVE].planning
    assert isinstance(planning, AdaptivePlanning)
    assert [candidate.spec() for candidate in planning.candidates] == [runs[name].scheme.spec() for name in STATIC]
    for name in (*STATIC, *RULES):
        assert runs[name].workload == runs[ADAPTIVE].workload
        assert runs[name].population == runs[ADAPTIVE].population
        assert bool(runs[name].rule) == (name in RULES)
        assert runs[name].planning.word == "none"


def test_quick_runs_publish_as_much_with_fewer_clients() -> None:
    def offered(quick: bool) -> float:
        scenario = ADAPTIVE_PLANNING.runs(quick)[0].scenario
        assert isinstance(scenario.population, Curve)
        return scenario.population.most() * sum(load.rate for load in scenario.workload)  # type: ignore[attr-defined]

    assert offered(quick=True) == pytest.approx(offered(quick=False))


RIVALS = ("RADIAL-10m", "rules-hindsight")
"""The cheapest static scheme and the cheapest rules (docs/transitions.md): the others cost half as much again, or more."""


@pytest.mark.slow
def test_learning_is_cheaper_than_its_closest_rivals_and_finds_enough(tmp_path: Path) -> None:
    judge(only(*RIVALS, TOO_COARSE, ADAPTIVE), tmp_path)


@campaign
def test_learning_is_cheaper_than_every_static_scheme_and_than_rules_and_finds_enough(tmp_path: Path) -> None:
    judge(ADAPTIVE_PLANNING, tmp_path)


def only(*names: str) -> Experiment:
    """The experiment with these runs, and what can be said of them."""

    def runs(quick: bool) -> tuple[Run, ...]:
        return tuple(each for each in ADAPTIVE_PLANNING.runs(quick) if each.name in names)

    compared = {f"to {name}" for name in names}
    checks = [
        replace(check, parts=tuple(part for part in check.parts if check.id == "P3" or part.name in compared))
        for check in ADAPTIVE_PLANNING.checks
    ]
    assert all(check.parts for check in checks)
    return replace(ADAPTIVE_PLANNING, runs=runs, checks=tuple(checks), drawings=())


def judge(experiment: Experiment, folder: Path) -> None:
    [report] = run([experiment], folder, quick=True, seeds=1, jobs=2)
    assert not report.failures
    assert {check.id: check.verdict for check in report.checks} == dict.fromkeys(("P1", "P2", "P3"), "reproduced")
