"""What a cell keeps: the same, in whatever order and however often it comes; and never more than there is room for."""

from __future__ import annotations

from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.crowdstore.data_centric.samples import NOW, gone, indexed, kept, part
from tests.effort import examples

from nearcast.crowdstore.data_centric import state as state_module
from nearcast.crowdstore.data_centric.entries import EVERYTHING, Entry, Gone, Indexed, Kept, Part, Place
from nearcast.crowdstore.data_centric.state import BUCKETS, CellState
from nearcast.model.time import MICROSECONDS

MEMORY = 600 * MICROSECONDS
TAGS = ("a", "b", "c")
names = st.sampled_from(["x", "y", "\0", "x\0y"])
owners = st.sampled_from(["n0", "n0\0x", "n1"])
times = st.integers(0, 3)

places = st.lists(st.builds(Place, times, st.sampled_from("pqrs"), st.integers(0, 3), st.integers(0, 3)), max_size=12)
entries: st.SearchStrategy[Entry] = st.one_of(
    st.builds(indexed, owners, names, st.just(TAGS), st.sets(st.sampled_from(TAGS), min_size=1), times, places),
    st.builds(kept, owners, names, st.just(TAGS), times),
    st.builds(part, owners, names, st.integers(0, 2), st.sampled_from(TAGS), times),
    st.builds(gone, owners, names, st.booleans(), times.map(NOW.__add__), times),
)


def _filled(some: list[Entry]) -> CellState:
    state = CellState(MEMORY)
    for entry in some:
        state.put(entry, NOW)
    return state


@examples(100)
@given(st.lists(entries, max_size=14), st.randoms(use_true_random=False))
def test_the_order_and_the_number_of_times_make_no_difference(some: list[Entry], random: Random) -> None:
    again = [*some, *random.choices(some, k=3)] if some else []
    random.shuffle(again)
    one, other = _filled(some), _filled(again)
    assert one.entries == other.entries
    assert one.sums == other.sums
    assert one.root() == other.root()
    # And so does what they tell each other.
    for entry in one.entries.values():
        assert not other.put(entry, NOW)


@examples(100)
@given(st.lists(entries, max_size=14), st.integers(0, 14))
def test_members_with_the_same_sums_have_the_same_and_what_is_found_is_there(some: list[Entry], cut: int) -> None:
    whole, half = _filled(some), _filled(some[:cut])
    assert (whole.entries == half.entries) == (whole.root() == half.root()) == (whole.sums == half.sums)
    for entry in whole.entries.values():
        if isinstance(entry, Part):
            found = list(whole.objects_for(entry))
            there = [each for each in whole.entries.values() if isinstance(each, Indexed)]
            assert sorted(found, key=str) == sorted(
                (each for each in there if entry.tag in each.tags and entry.accepts(each.item.metadata)), key=str
            )
            assert all(entry in whole.parts_for(each) for each in found)
    listed = [pair for bucket in range(BUCKETS) for pair in whole.listing(bucket)]
    assert len(listed) == len(whole)
    assert {entry.identity for entry in whole.named(name for name, _ in listed)} == set(whole.entries)
    whole.clear()
    assert not whole.entries
    assert not any(whole.sums)
    assert not list(whole.objects_for(part("n0", "x", 0, "a")))


def test_names_with_zeros_in_them_are_names_like_others() -> None:
    # Joined with a zero between them, both would be the same.
    one, other = kept("a", "b\0c", ("t",)), kept("a\0b", "c", ("t",))
    state = _filled([one, other])
    assert len(state) == 2
    state.drop(one)
    state.drop(other)
    assert len(state) == 0


def test_what_was_withdrawn_does_not_come_back_until_it_is_forgotten() -> None:
    state = _filled([indexed("n0", "x", ("a",), {"a"}), kept("n0", "x", ("a",)), gone("n0", "x", False, NOW)])
    assert list(state.entries.values()) == [gone("n0", "x", False, NOW)]
    later = NOW + MEMORY - 1
    assert not state.put(indexed("n0", "x", ("a",), {"a"}), later)
    state.prune(later)
    assert len(state) == 1
    state.prune(later + 1)
    assert len(state) == 0


def test_an_object_of_the_same_name_that_is_published_later_is_another_one() -> None:
    state = _filled([gone("n0", "x", False, NOW, published=5)])
    assert not state.put(indexed("n0", "x", ("a",), {"a"}, published=5), NOW)
    assert state.put(indexed("n0", "x", ("a",), {"a"}, published=6), NOW)
    assert not state.put(gone("n0", "x", False, NOW, published=5), NOW)
    assert len(state) == 2
    state.put(gone("n0", "x", False, NOW, published=6), NOW)
    assert len(state) == 1


def test_withdrawals_from_other_ages_are_none() -> None:
    state = CellState(MEMORY)
    assert not state.put(gone("n0", "x", False, NOW - MEMORY), NOW)
    assert not state.put(gone("n0", "x", False, NOW + MEMORY + 1), NOW)


def test_subscriptions_end() -> None:
    over = part("n0", "x", 0, "a", until=NOW - MEMORY - 1)
    open_ended, everywhere = part("n0", "y", 0, "a"), part("n1", "z", 0, EVERYTHING)
    state = _filled([over, open_ended, everywhere])
    assert set(state.entries) == {open_ended.identity, everywhere.identity}
    state.put(gone("n1", "z", True, NOW), NOW)
    assert set(state.entries) == {open_ended.identity, ("g", "s", "n1", "z")}
    assert not state.put(msgspec.structs.replace(everywhere, version=NOW + 1), NOW)


def test_there_is_room_for_so_many_and_withdrawals_always_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "ENTRIES", 3)
    state = _filled([indexed("n0", f"{number}", ("a",), {"a"}) for number in range(5)])
    assert sorted(identity[2] for identity in state.entries) == ["0", "1", "2"]
    assert not state.takes(indexed("n0", "3", ("a",), {"a"}))
    assert state.takes(indexed("n0", "2", ("a",), {"a"}))
    for number in range(5):
        assert state.put(gone("n0", f"{number}", False, NOW + number), NOW)
    # The oldest are forgotten first.
    assert list(state.entries.values()) == [gone("n0", f"{number}", False, NOW + number) for number in (2, 3, 4)]
    assert state.put(kept("n1", "x", ("a",)), NOW)


def test_of_places_the_newest_of_each_host_and_eight_at_most() -> None:
    item = indexed("n0", "x", ("a",), {"a"}).item
    many = item.with_replicas([Place(at, f"h{at % 12}", 0, at % 4) for at in range(24)])
    assert [(place.at, place.node) for place in many.replicas] == [(at, f"h{at - 12}") for at in range(23, 15, -1)]
    assert many.with_replicas([Place(3, "h11", 1, 1)]) is many


def test_entries_of_different_kinds_never_replace_each_other() -> None:
    samples: list[Entry] = [
        indexed("n0", "x", ("a",), {"a"}),
        kept("n0", "x", ("a",)),
        part("n0", "x", 0, "a"),
        gone("n1", "x", False, NOW),
        gone("n1", "x", True, NOW),
    ]
    state = _filled(samples)
    assert {type(entry) for entry in state.entries.values()} == {Indexed, Kept, Part, Gone}
    assert len(state) == 5
