"""``[[rule]]`` and ``[planning]`` in scenario files."""

import pytest

from nearcast.dissemination.broker_state import SUBSCRIBERS
from nearcast.errors import InvalidScenario
from nearcast.planning.ruled import SchemeRule
from nearcast.scenario.planning_section import AdaptivePlanning, when_none_holds
from nearcast.scenario.reading import examples, parse
from nearcast.scenario.schema import Scenario
from nearcast.transition.rules import Condition, Direction
from nearcast.transition.specification import MechanismSpec


def test_rules_are_read() -> None:
    scenario = parse("[[rule]]\nabove = 120\nback_at = 110\ndwell = '10 s'\nscheme = {kind = 'RGRID', factor = 7}")
    expected = Condition(SUBSCRIBERS, Direction.ABOVE, 120.0, 110.0)
    assert [entry.rule() for entry in scenario.rule] == [SchemeRule(expected, MechanismSpec.of("RGRID", factor=7), 10)]
    assert parse(scenario.to_toml()) == scenario


def test_when_no_rule_holds_the_first_otherwise_counts_or_else_the_scheme_of_the_start() -> None:
    def after(*lines: str) -> str:
        scenario = parse("scheme.kind = 'STE'\n" + "".join(f"[[rule]]\nabove = 1\n{line}\n" for line in lines))
        return when_none_holds(scenario.rule, scenario.scheme).name

    assert after("") == "STE"
    assert after("", "otherwise = {kind = 'GRID'}", "otherwise = {kind = 'EGRID'}") == "GRID"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "rule[1].above: this or 'below' is needed, and not both"),
        ("above = 1\nbelow = 2", "rule[1].above: this or 'below' is needed, and not both"),
        ("above = 5\nback_at = 6", "rule[1].back_at: 6 is beyond the threshold; at most 5 is needed"),
        ("below = 5\nback_at = 4", "rule[1].back_at: 4 is beyond the threshold; at least 5 is needed"),
        ("when = 'weather'\nabove = 1", "rule[1].when: 'weather' is not possible; choose one of"),
        ("above = 1\notherwise = {kind = 'GRIND'}", "rule[1].otherwise: kind: 'GRIND' is not possible"),
    ],
)
def test_a_rule_that_cannot_be_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(InvalidScenario) as refused:
        parse(f"[[rule]]\n{text}")
    assert complaint in str(refused.value)


def test_schemes_that_need_attraction_points_are_refused_in_a_world_without() -> None:
    plain = "world.kind = 'plain'\nmobility.model = 'waypoint'\n[[rule]]\nabove = 1\n"
    for key in ("scheme", "otherwise"):
        with pytest.raises(InvalidScenario, match=rf"rule\[1\].{key}: 'ATTRACT' needs attraction points"):
            parse(plain + f"{key} = {{kind = 'ATTRACT'}}")


def test_the_example_climbs_from_positions_to_cells_and_its_thresholds_lie_on_the_curve() -> None:
    scenario: Scenario = parse(examples()["lcn"].read_text())
    assert [rule.scheme.word for rule in scenario.rule] == ["RGRID", "GRID"]
    assert min(rule.back_at or 0 for rule in scenario.rule) > 50
    assert max(rule.above or 0 for rule in scenario.rule) < scenario.population.most()


ADAPTIVE = "planning.kind = 'adaptive'\n"


def test_candidates_are_read_and_written() -> None:
    scenario = parse("[planning]\nkind = 'adaptive'\ncandidates = [{kind = 'STE'}, {kind = 'EGRID', factor = 7}]")
    assert isinstance(scenario.planning, AdaptivePlanning)
    specs = [candidate.spec() for candidate in scenario.planning.candidates]
    assert specs == [MechanismSpec("STE"), MechanismSpec.of("EGRID", factor=7)]
    assert parse(scenario.to_toml()) == scenario


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (ADAPTIVE + "[[rule]]\nabove = 1", "planning.kind: 'adaptive' decides itself; leave out [[rule]]"),
        (ADAPTIVE + "[[transition]]", "planning.kind: 'adaptive' decides itself; leave out [[transition]]"),
        (ADAPTIVE + "planning.candidates = []", "planning.candidates: has no candidates; give at least one scheme"),
        ("planning.window = '1 s'", "planning.window: 'none' has no such key; 'adaptive' has"),
        (
            ADAPTIVE + "planning.candidates = [{kind = 'MULTI'}]\nworld.kind = 'plain'\nmobility.model = 'waypoint'",
            "planning.candidates[1]: 'MULTI' needs attraction points",
        ),
    ],
)
def test_plans_that_cannot_be_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(InvalidScenario) as refused:
        parse(text)
    assert complaint in str(refused.value)


def test_the_day_has_quiet_and_busy_times() -> None:
    scenario = parse(examples()["day"].read_text())
    assert isinstance(scenario.planning, AdaptivePlanning)
    assert scenario.planning.target_recall == 0.95


POINTS = "transitions.at_points = true\n"
SOON = "[[transition]]\nat = '5 s'\nscheme.kind = 'GRID'\n"
AD_HOC = "delivery.mechanism = 'broadcast'\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (POINTS + SOON, "transitions.at_points: clients change one by one, and by 'transition' all together"),
        (
            POINTS + "[[rule]]\nabove = 1",
            "transitions.at_points: clients change one by one, and by 'rule' all together",
        ),
        (POINTS + ADAPTIVE, "transitions.at_points: clients change one by one, and by 'planning.kind' all together"),
        (
            POINTS + "world.kind = 'plain'\nmobility.model = 'waypoint'",
            "transitions.at_points: needs attraction points, and a 'plain' world brings none",
        ),
        (AD_HOC + SOON, "transition: means nothing without a broker, and 'broadcast' has none"),
        (AD_HOC + "privacy.share = 0.1", "privacy.share: means nothing without a broker, and 'broadcast' has none"),
        (
            "[[transition]]\nscheme = 'GRID'",
            "transition[1].scheme: 'GRID' is no table; write its keys below [transition.scheme]",
        ),
        ("transition = ['GRID']", "transition[1]: 'GRID' is no table; write its keys below [[transition]]"),
    ],
)
def test_what_would_come_to_nothing_or_cannot_be_read_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(InvalidScenario) as refused:
        parse(text)
    assert complaint in str(refused.value)
