from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.errors import InvalidTopic
from nearcast.model.topic import TopicTrie, checked_topic, checked_topic_filter, topic_matches

level = st.sampled_from(["a", "b", "", "$SYS", "$"])
topics = st.lists(level, min_size=1, max_size=5).map("/".join).filter(bool)
filters = (
    st.tuples(st.lists(st.one_of(level, st.just("+")), max_size=4), st.sampled_from([["#"], ["+"], ["a"], [""]]))
    .map(lambda parts: "/".join(parts[0] + parts[1]))
    .filter(bool)
)


@pytest.mark.parametrize(
    ("topic_filter", "topic", "expected"),
    [
        ("a/b", "a/b", True),
        ("a/b", "a/b/c", False),
        ("a/b", "a", False),
        ("a/#", "a", True),
        ("a/#", "a/b/c", True),
        ("a/#", "ab", False),
        ("#", "a/b", True),
        ("+", "a", True),
        ("+", "a/b", False),
        ("+/+", "/a", True),
        ("/+", "/a", True),
        ("+", "/a", False),
        ("a/+", "a/", True),
        ("a/+", "a", False),
        ("a/+/c", "a/b/c", True),
        ("a/+/#", "a/b", True),
        ("a/+/#", "a", False),
        ("#", "$SYS/load", False),
        ("+/load", "$SYS/load", False),
        ("$SYS/#", "$SYS/load", True),
        ("$SYS/+", "$SYS/load", True),
        ("a/#", "a/$b", True),
        ("A", "a", False),
    ],
)
def test_topic_filters_match_as_mqtt_says(topic_filter: str, topic: str, expected: bool) -> None:
    assert topic_matches(checked_topic_filter(topic_filter), checked_topic(topic)) is expected
    trie = TopicTrie()
    trie.add(topic_filter, 7)
    assert trie.match(topic) == ([7] if expected else [])


@given(st.lists(filters, max_size=20), st.lists(st.integers(0, 19), max_size=20), topics)
def test_the_trie_agrees_with_the_definition_after_any_adding_and_removing(
    added: list[str],
    removed: list[int],
    topic: str,
) -> None:
    trie = TopicTrie()
    for number, topic_filter in enumerate(added):
        trie.add(topic_filter, number)
    left = dict(enumerate(added))
    for number in removed:
        was_there = number in left
        topic_filter = left.pop(number, "a")
        assert trie.remove(topic_filter, number) is was_there
    assert len(trie) == len(left)
    assert Counter(trie.match(topic)) == Counter(n for n, f in left.items() if topic_matches(f, topic))


def test_an_emptied_trie_holds_nothing() -> None:
    trie = TopicTrie()
    trie.add("a/+/b", 1)
    trie.add("a/+/b", 1)
    assert len(trie) == 1
    assert not trie.remove("a/+/b", 2)
    assert not trie.remove("a/x", 1)
    assert trie.remove("a/+/b", 1)
    assert len(trie) == 0
    assert not trie._root.children


@pytest.mark.parametrize("topic", ["a", "/", "a//b", "/a", "a/", "a b", "$SYS/x", "ä", "x" * 65535])
def test_valid_topics(topic: str) -> None:
    assert checked_topic(topic) == topic
    assert checked_topic_filter(topic) == topic


@pytest.mark.parametrize(
    ("topic", "says"),
    [
        ("", "a topic has at least one character"),
        ("a/+", "holds a wildcard; '+' and '#' are for subscriptions"),
        ("a#", "holds a wildcard"),
        ("a\0b", "holds a NUL character"),
        ("x" * 65536, "has 65536 bytes; MQTT allows 65535"),
        ("ä" * 40000, "has 80000 bytes"),
        ("\ud800", "lone surrogate"),
        (3, "a topic is a string, not 3"),
    ],
)
def test_invalid_topics_are_refused(topic: str, says: str) -> None:
    with pytest.raises(InvalidTopic) as error:
        checked_topic(topic)
    assert says in str(error.value)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize(
    ("topic_filter", "says"),
    [
        ("", "a topic filter has at least one character"),
        ("a+/b", "the '+' must stand alone in its level"),
        ("a/++", "the '+' must stand alone"),
        ("a/#/b", "the '#' must stand alone in the last level"),
        ("a/b#", "the '#' must stand alone"),
        ("##", "the '#' must stand alone"),
        ("a\0", "NUL"),
        ("$share/group/a/#", "shared subscription: who of the group receives is the broker's choice"),
    ],
)
def test_invalid_topic_filters_are_refused(topic_filter: str, says: str) -> None:
    with pytest.raises(InvalidTopic) as error:
        checked_topic_filter(topic_filter)
    assert says in str(error.value)
    trie = TopicTrie()
    with pytest.raises(InvalidTopic):
        trie.add(topic_filter, 1)
    assert not trie._root.children
