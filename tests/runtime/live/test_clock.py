"""Real time, which never jumps."""

import time

from hypothesis import given
from hypothesis import strategies as st

from nearcast.runtime.live import LiveClock


def test_the_clock_tells_the_time_of_day() -> None:
    before = time.time_ns() // 1_000
    shown = LiveClock().now()
    assert before <= shown <= time.time_ns() // 1_000 + 1


@given(st.integers(0, 10**18), st.lists(st.integers(0, 10**12), min_size=1), st.lists(st.integers(-(10**15), 10**15)))
def test_setting_the_clock_of_the_machine_changes_nothing(wall: int, passed: list[int], jumps: list[int]) -> None:
    settings = [wall, *(max(0, wall + jump) for jump in jumps)]
    moment = [17]
    clock = LiveClock(wall=lambda: settings.pop(0), monotonic=lambda: moment[0])
    start, elapsed = clock.now(), 0
    assert start == wall // 1_000
    for nanoseconds in passed:
        moment[0] += nanoseconds
        elapsed += nanoseconds
        assert clock.now() == (wall + elapsed) // 1_000
