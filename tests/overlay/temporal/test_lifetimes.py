"""For how long messages wait, by predicate (Table 6.2)."""

from __future__ import annotations

import pytest

from nearcast.errors import InvalidEvent, InvalidSettings
from nearcast.model.event import Event
from nearcast.model.temporal import CONTEXTCAST_RELATIONS, WITH_TOLERANCE, TemporalPredicate
from nearcast.model.time import MICROSECONDS
from nearcast.overlay.temporal.expiry import DAY, Lifetimes

NOW = 1_800_000_000 * MICROSECONDS
A, B, Z = NOW + 600 * MICROSECONDS, NOW + 1_200 * MICROSECONDS, 10 * MICROSECONDS
LIFETIMES = Lifetimes(longest=DAY, grace=30.0)
EVER = NOW + round(DAY * MICROSECONDS)

LAST = {
    "before": A,
    "after": EVER,
    "equals": B + Z - 1,
    "meets": A + Z - 1,
    "met_by": B + Z,
    "ends_in": B,
    "starts_in": B,
    "overlaps": B,
    "excludes": EVER,
    "during": B,
    "contains": B,
}
"""The last instant at which each can become true of somebody: the document's conditions, read as limits."""


def event(relation: str, lifetime: int | None = None) -> Event:
    when = TemporalPredicate(relation, A, B, Z if relation in WITH_TOLERANCE else 0)
    return Event("e", "news", NOW, to="age > 3", when=when, lifetime=lifetime)


@pytest.mark.parametrize("relation", CONTEXTCAST_RELATIONS)
def test_each_predicate_has_its_end(relation: str) -> None:
    assert LIFETIMES.ends(event(relation)) == LAST[relation]
    assert LIFETIMES.forgotten(event(relation)) == LAST[relation] + 1 + 30 * MICROSECONDS


@pytest.mark.parametrize("relation", CONTEXTCAST_RELATIONS)
def test_no_message_outlives_its_lifetime(relation: str) -> None:
    assert LIFETIMES.ends(event(relation, lifetime=700 * MICROSECONDS)) == min(
        LAST[relation], NOW + 700 * MICROSECONDS - 1
    )


@pytest.mark.parametrize("relation", CONTEXTCAST_RELATIONS)
def test_what_would_never_end_can_be_refused(relation: str) -> None:
    strict = Lifetimes(unending=False)
    if relation in ("after", "excludes"):
        with pytest.raises(InvalidEvent, match="lifetime"):
            strict.check(event(relation))
        strict.check(event(relation, lifetime=5))
    else:
        strict.check(event(relation))
    LIFETIMES.check(event(relation))


def test_lifetimes_are_no_nonsense() -> None:
    with pytest.raises(InvalidSettings):
        Lifetimes(longest=0)
    with pytest.raises(InvalidSettings):
        Lifetimes(grace=-1)
