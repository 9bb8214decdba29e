"""Recall and precision (BYPASS.KOM 6.1.4), of events, of clients and of a whole run, and what applications saw of it.

With ``due`` the pairs (event, client) that should be by physical truth, ``notified`` those in which the event reached the
client, and ``correct`` those in both:

- *recall* is ``correct / due``, null where nothing was due;
- *precision* is ``correct / notified``, null where nobody was notified.

All three leave out the publisher of the event, events whose truth is not known (``receivers`` is null), and
notifications of events without a row; copies count once, whatever their outcome (see ``pairs``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nearcast.metrics.columns import Flags, Wholes, instant_column, mean_or_none, nullable, ratio
from nearcast.metrics.pairs import Pairs
from nearcast.metrics.windows import Windows


@dataclass(frozen=True, slots=True)
class DeliveryTotals:
    """Of all events that were chosen; none where there is nothing to divide by."""

    events: int
    """With known truth."""

    events_without_truth: int
    strays: int
    """Notifications of events that have no row."""

    due: int
    notified: int
    correct: int
    recall: float | None
    """Ratio of the sums (micro average): every pair weighs the same."""

    precision: float | None
    mean_event_recall: float | None
    """Mean over the events that were due to somebody (macro average): every event weighs the same."""

    mean_event_precision: float | None
    """Mean over the events of which somebody was notified."""

    mean_client_recall: float | None
    """Mean over the clients to which something was due: every client weighs the same."""

    mean_client_precision: float | None
    """Mean over the clients that were notified of something."""


@dataclass(frozen=True, slots=True)
class ApplicationTotals:
    """What was handed to applications, after the last check of the clients; in pairs (event, client)."""

    due: int
    delivered: int
    """Due, and handed over at least once."""

    lost: int
    """Due, but never handed over: the rest of ``due``."""

    extra: int
    """Handed over though not due: the client moved between publication and arrival."""

    own: int
    """Handed over to the publisher itself."""

    doubled: int
    """Handed over more than once; it needs no truth, so these are all pairs: own ones and those without truth too."""


def totals(pairs: Pairs) -> DeliveryTotals:
    counts, due, notified, correct = pairs.counted, pairs.due, pairs.notified, pairs.correct
    sums = [int((counts & flag).sum()) for flag in (due, notified, correct)]
    by_event = _Counts.of(pairs, pairs.event, len(pairs.times))
    by_client = _Counts.of(pairs, pairs.client, len(pairs.clients))
    return DeliveryTotals(
        events=int(pairs.truth_known.sum()),
        events_without_truth=int((~pairs.truth_known).sum()),
        strays=pairs.strays,
        due=sums[0],
        notified=sums[1],
        correct=sums[2],
        recall=sums[2] / sums[0] if sums[0] else None,
        precision=sums[2] / sums[1] if sums[1] else None,
        mean_event_recall=mean_or_none(by_event.recall),
        mean_event_precision=mean_or_none(by_event.precision),
        mean_client_recall=mean_or_none(by_client.recall),
        mean_client_precision=mean_or_none(by_client.precision),
    )


def application_totals(pairs: Pairs) -> ApplicationTotals:
    counts, due, handed = pairs.counted, pairs.due, pairs.handed > 0
    return ApplicationTotals(
        due=int((counts & due).sum()),
        delivered=int((counts & due & handed).sum()),
        lost=int((counts & due & ~handed).sum()),
        extra=int((counts & ~due & handed).sum()),
        own=int((pairs.own & handed).sum()),
        doubled=int((pairs.handed > 1).sum()),
    )


def per_event(pairs: Pairs) -> Any:
    """A row for each event: ``time, event, workload, lat, lon, due, notified, correct, recall, precision``.

    Of an event without known truth, recall and precision are null and the numbers 0.
    """
    import pyarrow as pa

    chosen = pairs.events.select(["event", "workload", "lat", "lon"])
    columns = {name: chosen[name] for name in chosen.column_names}
    counts = _Counts.of(pairs, pairs.event, len(pairs.times))
    return pa.table({"time": instant_column(pairs.times), **columns, **counts.columns()})


def per_client(pairs: Pairs) -> Any:
    """A row for each client, over its own pairs: ``client, due, notified, correct, recall, precision``."""
    import pyarrow as pa

    counts = _Counts.of(pairs, pairs.client, len(pairs.clients))
    return pa.table({"client": pa.array(pairs.clients, pa.string()), **counts.columns()})


def per_client_and_window(pairs: Pairs, windows: Windows) -> Any:
    """A row for each window and client that have a pair: ``window`` (its number), and as ``per_client``.

    A pair belongs to the window in which its event was published.
    """
    import pyarrow as pa

    width = max(1, len(pairs.clients))
    window = windows.index(pairs.times)[pairs.event]
    inside = window >= 0
    groups = windows.count * width
    counts = _Counts.of(pairs, np.where(inside, window * width + pairs.client, groups), groups + 1)
    used = np.flatnonzero((counts.due > 0) | (counts.notified > 0))
    used = used[used < groups]
    names = pa.array(pairs.clients, pa.string())
    return pa.table(
        {
            "window": pa.array(used // width, pa.int64()),
            "client": names.take(pa.array(used % width)),
            **counts.only(used).columns(),
        }
    )


@dataclass(frozen=True, slots=True)
class _Counts:
    due: Wholes
    notified: Wholes
    correct: Wholes

    @classmethod
    def of(cls, pairs: Pairs, group: Wholes, groups: int) -> _Counts:
        def number(flag: Flags) -> Wholes:
            return np.bincount(group[pairs.counted & flag], minlength=groups)

        return cls(number(pairs.due), number(pairs.notified), number(pairs.correct))

    def only(self, groups: Wholes) -> _Counts:
        return _Counts(self.due[groups], self.notified[groups], self.correct[groups])

    @property
    def recall(self) -> Any:
        return ratio(self.correct, self.due)

    @property
    def precision(self) -> Any:
        return ratio(self.correct, self.notified)

    def columns(self) -> dict[str, Any]:
        import pyarrow as pa

        counts = {"due": self.due, "notified": self.notified, "correct": self.correct}
        return {
            **{name: pa.array(values, pa.int64()) for name, values in counts.items()},
            "recall": nullable(self.recall),
            "precision": nullable(self.precision),
        }
