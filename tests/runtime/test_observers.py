from typing import Any

import pytest

from nearcast.errors import ObserverActed, UnknownName
from nearcast.runtime.observers import Observers


def test_every_row_reaches_the_recorder_first_and_then_all_analyzers_in_their_order() -> None:
    observers, seen = Observers(), list[tuple[str, int, str]]()
    observers.analyze("drops", lambda number, word: seen.append(("one", number, word)))
    observers.analyze("drops", lambda number, word: seen.append(("two", number, word)))
    observers.analyze("other", lambda *_: seen.append(("never", 0, "")))
    observers.record("drops", lambda number, word: seen.append(("recorder", number, word)))
    observers.emitter("drops")(1, "a")
    assert seen == [("recorder", 1, "a"), ("one", 1, "a"), ("two", 1, "a")]


def test_what_nobody_watches_costs_no_more_than_a_call() -> None:
    observers = Observers()
    observers.emitter("drops")(1, "a")
    assert observers.emitter("drops") is observers.emitter("messages")


def test_analyzers_and_metrics_are_at_work_only_while_they_are_called() -> None:
    observers, states = Observers(), list[bool]()

    def look(*_: Any) -> float:
        states.append(observers.watching)
        return 1.0

    observers.analyze("drops", look)  # type: ignore[arg-type]
    observers.measure("load", look)
    observers.emitter("drops")(1)
    states.append(observers.watching)
    assert observers.sample() == {"load": 1.0}
    states.append(observers.watching)
    assert states == [True, False, True, False]


def test_an_analyzer_that_samples_is_still_an_analyzer_afterwards() -> None:
    observers, states = Observers(), list[bool]()
    observers.measure("load", lambda: 1)

    def analyzer(*_: Any) -> None:
        observers.sample()
        states.append(observers.watching)

    observers.analyze("drops", analyzer)
    observers.emitter("drops")(1)
    assert states == [True]
    assert not observers.watching


def test_an_observer_that_fails_does_not_leave_the_door_shut() -> None:
    observers = Observers()

    def fails(*_: Any) -> float:
        raise ZeroDivisionError

    observers.analyze("drops", fails)  # type: ignore[arg-type]
    observers.measure("load", fails)
    with pytest.raises(ZeroDivisionError):
        observers.emitter("drops")(1)
    assert not observers.watching
    with pytest.raises(ZeroDivisionError):
        observers.sample()
    assert not observers.watching


def test_the_recorder_is_trusted() -> None:
    observers, states = Observers(), list[bool]()
    observers.record("drops", lambda *_: states.append(observers.watching))
    observers.emitter("drops")(1)
    assert states == [False]


def test_who_comes_late_would_miss_rows_and_is_told() -> None:
    observers = Observers()
    observers.emitter("drops")
    with pytest.raises(UnknownName, match="'drops' are already being emitted"):
        observers.analyze("drops", print)
    with pytest.raises(UnknownName, match="before hosts start"):
        observers.record("drops", print)
    observers.analyze("messages", print)


def test_two_metrics_of_one_name_are_refused() -> None:
    observers = Observers()
    observers.measure("load", lambda: 1)
    with pytest.raises(UnknownName, match="'load' already"):
        observers.measure("load", lambda: 2)
    assert observers.sample() == {"load": 1.0}


def test_the_refusal_names_what_was_tried() -> None:
    with pytest.raises(ObserverActed, match="tried to send a message"):
        Observers().refuse("send a message")
