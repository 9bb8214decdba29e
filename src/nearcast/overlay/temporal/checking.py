"""What may be believed to have been said by a router at all; the rest is refused before it is confirmed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from nearcast.errors import InvalidInput
from nearcast.model.time import MICROSECONDS, Instant, instant
from nearcast.overlay.routing.wire import event_in
from nearcast.overlay.temporal.messages import (
    Answer,
    Confirmed,
    Deposit,
    IndexAnswer,
    Indexed,
    IndexQuestion,
    Question,
    Resolution,
)
from nearcast.overlay.temporal.settings import DAY

_MOST_PATIENT: Final = round(DAY * MICROSECONDS)


def check(message: Confirmed) -> None:
    """Raises ``InvalidInput`` for what cannot be read, or is no time."""
    match message:
        case Question():
            event_in(message.message)
            _check_question(message)
        case Resolution():
            event_in(message.message)
            _check_times((span.start, span.end) for span in message.spans)
        case IndexQuestion():
            event_in(message.message)
        case Deposit():
            event_in(message.delivery.message)
        case Answer() | IndexAnswer():
            _check_times((span.start, span.end) for span in message.spans)
        case Indexed():
            _check_times((start, end) for _, start, end, _ in message.pieces)


def _check_question(question: Question) -> None:
    if question.depth < 1 or (question.points and question.branch is None):
        raise InvalidInput(f"nobody could answer the question for {question.message.id!r}")
    if not 0 <= question.patience <= _MOST_PATIENT:
        raise InvalidInput(f"nobody waits {question.patience} microseconds for an answer")


def _check_times(times: Iterable[tuple[Instant, Instant | None]]) -> None:
    for start, end in times:
        instant(start)
        if end is not None:
            instant(end)
