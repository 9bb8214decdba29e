"""Messages of which a station needs no further copies: they are counted where they arrive, and not reported."""

from nearcast.runtime.simulation.motion import standing
from nearcast.runtime.simulation.radio.engine import BROADCAST, RadioEngine
from nearcast.runtime.simulation.radio.profile import wifi_b

MILLISECOND = 1_000_000


def told(engine: RadioEngine, sender: int, copy: int, group: int, key: int) -> list[int]:
    """Who is told of such a frame, which goes out now."""
    engine.send(sender, BROADCAST, 100, key, engine.now, copy=copy, group=group)
    until, receivers = engine.now + 20 * MILLISECOND, list[int]()
    while engine.advance(until) < until:
        delivered, heard, completed = engine.news()
        assert delivered == (key if heard else 0)
        assert [row[0] for row in completed] == [key]
        receivers += heard
        assert not engine.reporting
        assert engine.news() == (0, [], [])
    return receivers


def test_of_its_group_a_station_is_told_once_of_each_message() -> None:
    engine = RadioEngine(wifi_b(), standing(4), 1)
    engine.once(1, 0, 5)
    assert told(engine, 0, copy=7, group=5, key=1) == [1, 2, 3]
    assert told(engine, 2, copy=7, group=5, key=2) == [0, 3]
    assert told(engine, 2, copy=8, group=6, key=3) == [0, 1, 3]
    assert told(engine, 3, copy=8, group=6, key=4) == [0, 1, 2]
    assert engine.unread[:, 0, 0].tolist() == [0, 1, 0, 0]
    engine.once(1, 0, 0)
    assert told(engine, 0, copy=9, group=5, key=5) == [1, 2, 3]
    assert told(engine, 2, copy=9, group=5, key=6) == [0, 1, 3]


def test_frames_without_copies_are_always_told_of() -> None:
    engine = RadioEngine(wifi_b(), standing(3), 1)
    engine.once(1, 0, 5)
    for key in (1, 2):
        assert told(engine, 0, copy=0, group=0, key=key) == [1, 2]
