"""What comes in chunks, in any order and more than once, is what was published, or nothing."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.crowdstore.chunks import CHUNK, Assembly, chunk_count, chunk_of
from nearcast.crowdstore.objects import Metadata, ObjectKey, digest_of
from nearcast.errors import InvalidValue


def _assembly(content: bytes) -> Assembly:
    return Assembly(Metadata(ObjectKey("ada", "a"), ("t",), 0, len(content), digest_of(content)))


@given(st.integers(0, 4 * CHUNK), st.randoms(use_true_random=False))
def test_any_order_and_repetition_gives_the_object(size: int, random: Random) -> None:
    content = random.randbytes(size)
    assembly = _assembly(content)
    numbers = [*range(chunk_count(size))] * 2
    random.shuffle(numbers)
    useful = [assembly.add(number, chunk_of(content, number)) for number in numbers]
    assert sum(useful) == chunk_count(size)
    assert assembly.complete
    assert assembly.content() == content


def test_missing_names_the_first_that_have_not_come() -> None:
    content = bytes(5 * CHUNK)
    assembly = _assembly(content)
    assembly.add(1, chunk_of(content, 1))
    assert assembly.missing(3) == (0, 2, 3)
    assert not assembly.complete


def test_a_forged_chunk_makes_the_object_come_again() -> None:
    assembly = _assembly(b"what was published")
    assert assembly.add(0, b"what was falsified")
    assert assembly.content() is None
    assert assembly.missing(9) == (0,)
    assert assembly.add(0, b"what was published")
    assert assembly.content() == b"what was published"


@pytest.mark.parametrize(("number", "data"), [(-1, b"abc"), (1, b"abc"), (0, b"ab"), (0, b"abcd")])
def test_what_cannot_be_of_the_object_is_not_taken(number: int, data: bytes) -> None:
    assert not _assembly(b"abc").add(number, data)


def test_chunks_that_are_not_there_are_refused() -> None:
    with pytest.raises(InvalidValue, match="no chunk 1"):
        chunk_of(b"abc", 1)
