"""When one topic filter covers another: against every topic over a small alphabet."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from nearcast.broker.access.filters import filter_covers
from nearcast.model.topic import topic_matches

# "z" occurs in no filter: it stands for all the names that nobody thought of.
NAMES = ("a", "b", "", "$a", "z")
DEEPEST_FILTER = 3
TOPICS = [
    "/".join(levels)
    for depth in range(1, DEEPEST_FILTER + 2)
    for levels in product(NAMES, repeat=depth)
    if levels != ("",)
]

levels = st.sampled_from(("a", "b", "", "$a", "+"))


@st.composite
def filters(draw: st.DrawFn) -> str:
    parts = draw(st.lists(levels, max_size=DEEPEST_FILTER - 1))
    last = draw(st.sampled_from(("a", "b", "", "$a", "+", "#")))
    return "/".join([*parts, last]) or "a"


@given(filters(), filters())
def test_a_filter_covers_another_exactly_if_it_matches_all_its_topics(outer: str, inner: str) -> None:
    everything = all(topic_matches(outer, topic) for topic in TOPICS if topic_matches(inner, topic))
    assert filter_covers(outer, inner) == everything


@given(filters(), filters(), filters())
def test_covering_is_transitive_and_every_filter_covers_itself(a: str, b: str, c: str) -> None:
    assert filter_covers(a, a)
    assert not (filter_covers(a, b) and filter_covers(b, c)) or filter_covers(a, c)


def test_overlap_is_not_enough() -> None:
    assert not filter_covers("a/b", "a/+")
    assert not filter_covers("a/+", "a/#")
    assert not filter_covers("a/+/#", "a/#"), "a/# also matches a itself"


def test_all_topics_with_at_least_one_level_are_all_topics() -> None:
    assert filter_covers("+/#", "#")
    assert filter_covers("#", "+/#")


def test_wildcards_do_not_open_the_topics_that_servers_keep_for_themselves() -> None:
    assert not filter_covers("#", "$SYS/#")
    assert not filter_covers("+/broker", "$SYS/broker")
    assert filter_covers("$SYS/#", "$SYS/broker/+")
