from collections.abc import Callable
from typing import Any

import pytest

from nearcast.errors import UnknownName
from nearcast.runtime.state import Information, StateInformation

BATTERY = Information("battery", float)
NEIGHBOURS = Information("neighbours", tuple)


class Others:
    """Stands for all other hosts: writes down what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None]] = []
        self.answers: list[Callable[[Any], None]] = []

    def __call__(self, information: Information[Any], about: str | None, answer: Callable[[Any], None]) -> None:
        self.asked.append((information.name, about))
        self.answers.append(answer)


def test_what_nobody_provides_is_not_known() -> None:
    state = StateInformation()
    assert state.get(BATTERY) is None
    with pytest.raises(UnknownName, match="'battery'"):
        state.need(BATTERY)


def test_the_newest_provider_that_knows_answers() -> None:
    state = StateInformation()
    state.provide(BATTERY, lambda: 0.5)
    newer = state.provide(BATTERY, lambda: 0.7)
    newest = state.provide(BATTERY, lambda: None)
    assert state.get(BATTERY) == 0.7  # the newest does not know just now
    newest.cancel()
    newer.cancel()
    newer.cancel()
    assert state.need(BATTERY) == 0.5


def test_zero_and_nothing_are_answers_too() -> None:
    state = StateInformation()
    state.provide(BATTERY, lambda: 0.0)
    state.provide(NEIGHBOURS, tuple)
    assert state.need(BATTERY) == 0.0
    assert state.need(NEIGHBOURS) == ()


def test_a_question_is_answered_on_this_host_if_anyone_here_can() -> None:
    others, answers = Others(), list[float]()
    state = StateInformation(others)
    state.provide(BATTERY, lambda: 0.5)
    assert state.request(BATTERY, answers.append, remote=True)
    assert answers == [0.5]
    assert not others.asked


def test_a_question_leaves_the_host_only_if_the_asker_allows_it() -> None:
    others, answers = Others(), list[float]()
    state = StateInformation(others)
    assert not state.request(BATTERY, answers.append)
    assert not others.asked
    assert state.request(BATTERY, answers.append, remote=True)
    assert others.asked == [("battery", None)]
    assert not answers
    others.answers[0](0.9)
    assert answers == [0.9]


def test_a_question_about_another_host_is_never_answered_with_our_own_knowledge() -> None:
    others, answers = Others(), list[float]()
    state = StateInformation(others)
    state.provide(BATTERY, lambda: 0.5)
    assert not state.request(BATTERY, answers.append, about="bob")
    assert state.request(BATTERY, answers.append, about="bob", remote=True)
    assert others.asked == [("battery", "bob")]
    assert not answers


def test_a_host_that_cannot_ask_others_says_so() -> None:
    assert not StateInformation().request(BATTERY, print, remote=True)


def test_consumers_are_told_in_their_order_until_they_cancel() -> None:
    state, told = StateInformation(), list[tuple[str, float]]()
    first = state.consume(BATTERY, lambda value: told.append(("first", value)))
    state.consume(BATTERY, lambda value: told.append(("second", value)))
    state.consume(NEIGHBOURS, lambda _: told.append(("never", 0)))
    state.announce(BATTERY, 0.4)
    first.cancel()
    state.announce(BATTERY, 0.3)
    assert told == [("first", 0.4), ("second", 0.4), ("second", 0.3)]


def test_a_consumer_may_cancel_while_it_is_told() -> None:
    state, told = StateInformation(), list[float]()
    registrations = [state.consume(BATTERY, lambda value: (told.append(value), registrations[0].cancel())[0])]  # type: ignore[func-returns-value]
    state.announce(BATTERY, 0.4)
    state.announce(BATTERY, 0.3)
    assert told == [0.4]


def test_statistics_count_who_is_registered_and_what_was_asked() -> None:
    state = StateInformation(Others())
    state.provide(BATTERY, lambda: 0.5).cancel()
    state.provide(BATTERY, lambda: 0.5)
    state.consume(BATTERY, print)
    state.get(BATTERY)
    state.get(NEIGHBOURS)
    state.request(NEIGHBOURS, print, remote=True)
    statistics = state.statistics()
    assert (statistics.providers, statistics.consumers) == (1, 1)
    assert (statistics.answered, statistics.asked_others) == (1, 1)
