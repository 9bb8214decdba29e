"""Erasing from the journal while it is in use: a few stretches at a time, so that nobody's write waits for long."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from nearcast.errors import JournalFailed, OffsetTrimmed
from nearcast.journal.entries import BITS, Record, decode_records, encoder
from nearcast.journal.erasure.subject import Subject
from nearcast.journal.journal import Journal
from nearcast.journal.reading import Stretch
from nearcast.journal.store import Rewritten, Store

_BYTES_AT_ONCE: Final = 1_000_000
"""Of stretches that are looked through, and rewritten, at once."""

_PATIENCE: Final = 60.0
"""Seconds for which the log may be in use by readers before it is given up to empty it."""

Step = Callable[[int, int], None]
"""Told how far it is: what is done, and of how much."""


@dataclass(frozen=True, slots=True)
class Erased:
    """How much went."""

    records: int = 0
    """Altogether."""

    receivers: int = 0
    """Records of others that no longer name it among their receivers."""

    def __add__(self, other: Erased) -> Erased:
        return Erased(self.records + other.records, self.receivers + other.receivers)


def learn(journal: Journal, subject: Subject, step: Step) -> None:
    """Look through the journal for what the subject has published."""
    for found, reached in _all(journal):
        step(reached, journal.stored)
        for stretch in found:
            for offset, record in _numbered(stretch):
                if record is not None:
                    subject.learn(offset, record)


def erase(journal: Journal, subject: Subject, step: Step, *, dry: bool = False) -> Erased:
    """Put nothing in place of the subject's records; ``dry``: only count them."""
    erased = Erased()
    for found, reached in _all(journal):
        rewritten = []
        for stretch in found:
            body, gone = _without(stretch, subject)
            erased += gone
            if gone != Erased():
                rewritten.append(body)
        if rewritten and not dry:
            _rewrite(journal, rewritten)
        step(reached, journal.stored)
    return erased


def _rewrite(journal: Journal, rewritten: list[Rewritten]) -> None:
    journal.ask(lambda store: store.rewrite(rewritten)).result()


def overwrite(journal: Journal, step: Step) -> None:
    """See that the file holds nothing any more that is not part of the journal."""
    journal.ask(Store.renew_state).result()
    left = True

    def give_back(store: Store) -> None:
        nonlocal left
        left = store.give_back_some()

    while left:
        journal.ask(give_back).result()
    _empty_log(journal)
    step(1, 1)


def _empty_log(journal: Journal) -> None:
    done = False

    def empty(store: Store) -> None:
        nonlocal done
        done = store.empty_log()

    until = time.monotonic() + _PATIENCE
    while not done:
        journal.ask(empty).result()
        if not done:
            if time.monotonic() > until:
                raise JournalFailed("the journal's log cannot be emptied while it is being read; erase again later")
            time.sleep(0.05)


def _all(journal: Journal) -> Iterator[tuple[list[Stretch], int]]:
    """All stretches, some at a time, and the offset behind them; what retention deletes meanwhile is passed over."""
    first = journal.oldest
    while first < journal.stored:
        try:
            found, _ = journal.stretches(first, journal.stored, most_bytes=_BYTES_AT_ONCE)
        except OffsetTrimmed as trimmed:
            first = trimmed.oldest
            continue
        if not found:
            return
        first = found[-1].first + found[-1].count
        yield found, first


def _numbered(stretch: Stretch) -> Iterator[tuple[int, Record | None]]:
    try:
        return enumerate(decode_records(stretch.body), stretch.first)
    except (msgspec.MsgspecError, ValueError) as error:
        last = stretch.first + stretch.count - 1
        raise JournalFailed(
            f"the records {stretch.first} to {last} cannot be read ({error}), so nobody can be erased from them; "
            "put a backup in place of the journal"
        ) from error


def _without(stretch: Stretch, subject: Subject) -> tuple[Rewritten, Erased]:
    left: list[Record | None] = []
    records = receivers = kinds = 0
    for offset, record in _numbered(stretch):
        kept = None if record is None else subject.without(offset, record)
        if kept is not record:
            if kept is None:
                records += 1
            else:
                receivers += 1
        if kept is not None:
            kinds |= BITS[type(kept)]
        left.append(kept)
    return Rewritten(stretch.first, kinds, encoder.encode(left)), Erased(records, receivers)
