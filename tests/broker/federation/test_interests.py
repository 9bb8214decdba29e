"""Filters that brokers tell each other: made coarser when there are many, and never so that something is missed."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from nearcast.broker.federation import interests
from nearcast.model.topic import topic_matches

levels = st.sampled_from(["a", "b", "c", "$x"])
topics = st.lists(levels, min_size=1, max_size=3).map("/".join)
filters = st.lists(st.sampled_from(["a", "b", "c", "$x", "+"]), min_size=1, max_size=3).flatmap(
    lambda parts: st.sampled_from(["/".join(parts), "/".join([*parts, "#"]), "#"])
)


@given(wanted=st.frozensets(filters, max_size=8), topic=topics, most=st.integers(1, 8))
def test_what_some_filter_asks_for_a_coarser_one_does(wanted: frozenset[str], topic: str, most: int) -> None:
    before, interests.MOST_FILTERS = interests.MOST_FILTERS, most  # type: ignore[misc]
    try:
        told = interests.coarsened(wanted)
    finally:
        interests.MOST_FILTERS = before  # type: ignore[misc]
    if any(topic_matches(each, topic) for each in wanted):
        assert any(topic_matches(each, topic) for each in told), told


def test_many_filters_become_few() -> None:
    chance = random.Random(1)
    many = frozenset(f"{chance.randrange(50)}/{chance.random()}" for _ in range(5_000))
    assert len(interests.coarsened(many)) == 50
    assert interests.coarsened(frozenset(f"{number}/x" for number in range(5_000))) == ("#",)
