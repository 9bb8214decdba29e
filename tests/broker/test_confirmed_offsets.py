"""Confirmed offsets: the same answers as a set of them, in a few spans."""

from hypothesis import given
from hypothesis import strategies as st

from nearcast.broker.sessions.confirmed_offsets import MOST_FRESH, ConfirmedOffsets


@given(st.lists(st.booleans(), max_size=900), st.integers(0, 20))
def test_what_is_owed_is_never_confirmed_and_what_was_confirmed_stays_so(kept: list[bool], begins: int) -> None:
    pending = dict.fromkeys(range(begins, begins + len(kept) + 1))
    confirmed = ConfirmedOffsets()
    for offset, keep in enumerate(kept, begins + 1):  # the first one is never confirmed
        if not keep:
            del pending[offset]
            confirmed.add(offset, pending)
    restored = ConfirmedOffsets(list(confirmed.spans(pending)))
    for offset, keep in enumerate(kept, begins + 1):
        assert (offset in confirmed) == (offset in restored) == (not keep)
    assert begins not in confirmed
    assert len(confirmed.spans(pending)) <= len(pending)


@given(st.sets(st.integers(0, 2_000), min_size=1), st.integers(0, 2_000))
def test_what_is_below_the_first_that_is_owed_is_forgotten(offsets: set[int], first: int) -> None:
    confirmed = ConfirmedOffsets()
    for offset in sorted(offsets):
        confirmed.add(offset, range(first, first + 1))
    confirmed.forget(first)
    assert all(end > first for _, end in confirmed.spans(()))
    confirmed.forget(None)
    assert not confirmed.spans(())


def test_very_many_that_are_given_up_in_a_row_are_one_span() -> None:
    confirmed = ConfirmedOffsets()
    for offset in range(1, 100_000):
        confirmed.add(offset, (0,))
    assert len(confirmed._fresh) <= MOST_FRESH
    assert confirmed.spans((0,)) == ((1, 100_000),)
