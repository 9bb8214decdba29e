"""Events come in the order of time, then of kind, then of number, whenever they were scheduled; draws are fair."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runtime.simulation.radio.stations import on_a_line

from nearcast.runtime.simulation.radio.draws import uniform
from nearcast.runtime.simulation.radio.heap import SUBJECT, SUBJECT_BITS, pop, push
from nearcast.runtime.simulation.radio.profile import wifi_b
from nearcast.runtime.simulation.radio.state import new_world

events = st.tuples(st.integers(0, 20), st.integers(0, 5), st.integers(0, 3))


@settings(max_examples=50)
@given(st.lists(st.one_of(events, st.none()), max_size=60))
def test_the_earliest_event_comes_first(steps: list[tuple[int, int, int] | None]) -> None:
    """None takes the first event off; the others are put in."""
    world = new_world(wifi_b(), on_a_line(0), seed=1, start_us=0, report_losses=False)
    waiting: list[tuple[int, int, int]] = []
    for step in [*steps, *[None] * len(steps)]:
        if step is not None:
            push(world, *step, version=7)
            waiting.append(step)
        elif waiting:
            first = world.heap[0]
            assert (first["time"], first["order"] >> SUBJECT_BITS, first["order"] & SUBJECT) == min(waiting)
            assert first["version"] == 7
            waiting.remove(min(waiting))
            pop(world)
        assert world.control["heap_size"][0] == len(waiting)


def test_draws_are_uniform_and_do_not_follow_from_their_neighbours() -> None:
    """Numbers that are asked for in a row differ in one argument by one: neither may be seen in the draws."""
    size = 128
    draws = np.array([[uniform(np.uint64(1), first, second) for second in range(size)] for first in range(size)])
    cells = np.bincount((draws.ravel() * 64).astype(int), minlength=64)
    expected = size * size / 64
    # Chi-squared with 63 degrees of freedom, four standard deviations.
    assert ((cells - expected) ** 2 / expected).sum() < 63 + 4 * (2 * 63) ** 0.5
    for other in (np.roll(draws, 1, axis=0), np.roll(draws, 1, axis=1)):
        # The correlation of independent draws has the standard deviation 1 / sqrt(n).
        assert abs(np.corrcoef(draws.ravel(), other.ravel())[0, 1]) < 4 / size
