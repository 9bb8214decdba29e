"""Long messages travel in pieces; whoever sends pieces that do not fit together disturbs nobody."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.crowdstore.crowd import Crowd
from tests.crowdstore.data_centric.samples import indexed
from tests.crowdstore.data_centric.venue import dcs, storage

from nearcast.crowdstore.data_centric.desk import UNFINISHED, Desk, batches, payloads
from nearcast.crowdstore.data_centric.messages import FRAME, PIECES, Entries, Lacking, Piece
from nearcast.runtime.messages import Codec, encoded

LONG = Entries(tuple(indexed("n0", f"{number:0100}", ("a",), {"a"}) for number in range(40)))


@pytest.fixture(scope="module")
def desk() -> Desk:
    return storage(Crowd([(20.0, 20.0)], dcs(1, 1)), "n0").desk


def _pieces() -> list[bytes]:
    found = payloads(LONG)
    assert 2 < len(found) <= PIECES
    assert all(len(each) <= FRAME + 30 for each in found)
    return found


def test_what_fits_goes_as_it_is(desk: Desk) -> None:
    assert payloads(Lacking(1)) == [encoded(Lacking(1))]
    assert desk.read("n1", encoded(Lacking(1))) == Lacking(1)


@given(st.randoms(use_true_random=False))
def test_pieces_in_any_order_and_more_than_once_make_the_message_once(random: Random) -> None:
    desk = storage(Crowd([(20.0, 20.0)], dcs(1, 1)), "n0").desk
    some = _pieces()
    random.shuffle(some)
    repeated = [piece for piece in some[:-1] for _ in range(random.randint(1, 2))]
    assert [desk.read("n1", piece) for piece in repeated] == [None] * len(repeated)
    assert desk.read("n1", some[-1]) == LONG


def test_messages_of_two_senders_do_not_mix(desk: Desk) -> None:
    for piece in _pieces()[:-1]:
        assert desk.read("n1", piece) is None
    assert desk.read("n2", _pieces()[-1]) is None
    assert desk.read("n1", _pieces()[-1]) == LONG


def test_wrong_pieces_are_not_put_together(desk: Desk) -> None:
    codec = Codec(Piece)
    first, *rest = (codec.decoded(each) for each in _pieces())
    for wrong in (
        Piece(first.whole, len(rest) + 1, first.count, first.data),  # beyond the last
        Piece(first.whole, 2**31, first.count, first.data),
        Piece(first.whole, 0, 2, first.data),  # of another number of pieces
        Piece(first.whole, 0, first.count, b"x" * FRAME),  # other data
    ):
        for piece in (*rest, wrong):
            assert desk.read("liar", encoded(piece)) is None
    # One within another is none; nor is what is too long, or of too many.
    inner = encoded(Piece(1, 0, 2, b"x" * (FRAME - 100)))
    whole = inner + bytes(200)
    assert desk.read("liar", whole) is None
    for damaged in (Piece(1, 0, PIECES + 1, b""), Piece(1, 0, 2, b"x" * (FRAME + 1)), Piece(1, 0, 1, inner)):
        assert desk.read("liar", encoded(damaged)) is None


def test_who_begins_many_messages_fills_nothing_and_disturbs_nobody(desk: Desk) -> None:
    *some, last = _pieces()
    for piece in some:
        desk.read("n1", piece)
    for whole in range(10 * UNFINISHED):
        desk.read("liar", encoded(Piece(whole, 0, PIECES, b"x" * FRAME)))
    assert desk.read("n1", last) == LONG
    for number in range(10 * UNFINISHED):
        desk.read(f"liar {number}", encoded(Piece(number, 0, PIECES, b"x" * FRAME)))
    assert len(desk._pieces) <= UNFINISHED


def test_of_many_the_one_that_is_coming_in_is_not_given_up(desk: Desk) -> None:
    for number in range(UNFINISHED):
        desk.read(f"slow {number}", encoded(Piece(number, 0, PIECES, b"")))
    results = [desk.read("n1", piece) for piece in _pieces()]
    assert results[-1] == LONG


@given(st.lists(st.integers(0, 300)), st.integers(1, 400))
def test_batches_hold_as_much_as_fits_and_at_least_one(sizes: list[int], most: int) -> None:
    counts = list(batches(sizes, most))
    assert sum(counts) == len(sizes)
    start = 0
    for count in counts:
        some, after = sizes[start : start + count], sizes[start + count : start + count + 1]
        assert count == 1 or sum(some) <= most
        assert not after or sum(some) + after[0] > most
        start += count
