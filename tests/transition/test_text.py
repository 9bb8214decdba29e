"""Mechanisms as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.dissemination.adhoc.registry import MECHANISMS
from nearcast.errors import InvalidPlan
from nearcast.transition.specification import MechanismSpec
from nearcast.transition.text import mechanism_in


@given(st.floats(0, 1), st.floats(0, 10))
def test_what_a_specification_shows_is_read_as_the_same(p: float, hesitation: float) -> None:
    for spec in (
        MechanismSpec.of("GOSSIP", p=p, hesitation=hesitation),
        MechanismSpec.of("PLAN-B"),
        MechanismSpec("FLOODING"),
    ):
        assert mechanism_in(str(spec), MECHANISMS) == spec


def test_case_and_blanks_do_not_matter() -> None:
    assert mechanism_in(" plan-b ( window = 0.02 ) ", MECHANISMS) == MechanismSpec.of("PLAN-B", window=0.02)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "'' is not written NAME"),
        ("GOSSIP(p=0.5", "is not written NAME"),
        ("GOSSIP(0.5)", "a parameter is written name=value, not '0.5'"),
        ("GOSSIP(q=1)", "its parameters are p, hesitation"),
        ("GOSSIP(p=much)", "Expected `float`"),
        ("CHAT", "there is no ad hoc mechanism 'CHAT'"),
    ],
)
def test_mistakes_are_named(text: str, complaint: str) -> None:
    with pytest.raises(InvalidPlan, match=complaint):
        mechanism_in(text, MECHANISMS)
