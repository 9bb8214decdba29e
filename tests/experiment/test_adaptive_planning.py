"""The comparison of the adaptive policy with what it chooses from."""

from pathlib import Path

import pytest

from nearcast.experiment.adaptive_planning import ADAPTIVE, ADAPTIVE_PLANNING, RULES, STATIC
from nearcast.experiment.campaign import run
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


@pytest.mark.slow
def test_learning_is_cheaper_than_every_static_scheme_and_than_rules_and_finds_enough(tmp_path: Path) -> None:
    [report] = run([ADAPTIVE_PLANNING], tmp_path, quick=True, seeds=1, jobs=2)
    assert not report.failures
    assert {check.id: check.verdict for check in report.checks} == dict.fromkeys(("P1", "P2", "P3"), "reproduced")
