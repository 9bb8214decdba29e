from random import Random

from hypothesis import given
from hypothesis import strategies as st
from tests.child import run_python

from nearcast.runtime.random import RandomStreams

PRINT = "from nearcast.runtime.random import RandomStreams as R; print([R(7).stream('a', 'é').random() for _ in '12'])"


def drawn(random: Random) -> list[float]:
    return [random.random() for _ in range(20)]


def test_a_stream_is_a_function_of_seed_and_name() -> None:
    assert drawn(RandomStreams(1).stream("mobility", "ada")) == drawn(RandomStreams(1).stream("mobility", "ada"))
    assert drawn(RandomStreams(1).stream("mobility", "ada")) != drawn(RandomStreams(2).stream("mobility", "ada"))
    assert drawn(RandomStreams(1).stream("mobility", "ada")) != drawn(RandomStreams(1).stream("mobility", "bob"))


def test_drawing_from_one_stream_leaves_the_others_alone() -> None:
    streams = RandomStreams(1)
    one, other = streams.stream("one"), streams.stream("other")
    drawn(one)
    assert drawn(other) == drawn(RandomStreams(1).stream("other"))


@given(st.lists(st.lists(st.text(max_size=3), max_size=3).map(tuple), min_size=2, max_size=5, unique=True))
def test_names_that_differ_in_any_way_name_different_streams(names: list[tuple[str, ...]]) -> None:
    assert len({RandomStreams(1).number(*name) for name in names}) == len(names)


def test_streams_are_not_correlated() -> None:
    """Of 2,000 products of two independent uniform numbers around 0, the mean has the standard error 1/12/sqrt(2000)."""
    streams, count = RandomStreams(3), 2_000
    one, other = streams.stream("host", "1"), streams.stream("host", "2")
    mean = sum((one.random() - 0.5) * (other.random() - 0.5) for _ in range(count)) / count
    assert abs(mean) < 4.5 / 12 / count**0.5


def test_streams_are_the_same_in_every_process() -> None:
    outputs = {run_python("-c", PRINT, hash_seed=seed, PYTHONUTF8="1").strip() for seed in ("0", "1", "4242")}
    here = [RandomStreams(7).stream("a", "é").random() for _ in range(2)]
    assert outputs == {str(here)}
