"""Every event with every client that it concerns: what recall, precision, delay and loss are counted from.

The pairs (event, client) of a recording are those in which the client is a receiver of the event by physical truth, or in
which the event reached the client.  Each pair stands once, however many copies arrived and whatever became of them:
recall and precision are counted *before* the receiving client's last check (product.md, "known, not true").
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from nearcast.errors import InvalidRecord
from nearcast.metrics.columns import Flags, Wholes, column, instants, is_name, names_in, numbers, wholes
from nearcast.model.time import EVER, TimeFrame

DELIVERED: Final = "delivered"
"""The outcome of a notification that was handed to the application."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs in the order of events, and of clients within an event; arrays are one value for each pair, unless said."""

    events: Any
    """The rows of ``events`` that were chosen."""

    times: Wholes
    """When each of these events was published."""

    truth_known: Flags
    """For each of these events: its receivers are not null."""

    clients: tuple[str, ...]
    """By number: everybody to whom an event was due or whom one reached, in order of the alphabet."""

    event: Wholes
    """Row in ``events``."""

    client: Wholes
    """Position in ``clients``."""

    own: Flags
    """The client is the event's publisher."""

    due: Flags
    """The client is a receiver by truth, and not the publisher."""

    notified: Flags
    """At least one copy reached the client."""

    handed: Wholes
    """How often the event was handed to the client's application (outcome ``delivered``)."""

    delay: Wholes
    """Microseconds from publication to the first copy that reached the client; -1 if none did."""

    strays: int
    """Notifications of events that have no row in ``events``: counted nowhere else."""

    @cached_property
    def counted(self) -> Flags:
        """Pairs that recall and precision know: not those of a publisher with its own event, nor without truth."""
        return ~self.own & self.truth_known[self.event]

    @cached_property
    def correct(self) -> Flags:
        """Pairs that should be and are."""
        return self.due & self.notified


def pairs(events: Any, notifications: Any, *, frame: TimeFrame = EVER, workload: str | None = None) -> Pairs:
    """Pairs of the events that were published within ``frame`` and made by ``workload``; by any unless said.

    ``events`` and ``notifications`` are the record tables.  An event takes all its notifications along, also those after the end
    of the frame.  A client that stands twice among the receivers counts once; a publisher among the receivers of
    its own event does not count.
    """
    ids = column(events, "event")
    chosen = _chosen(events, frame, workload)
    rows = np.full(len(ids), -1)
    rows[chosen] = np.arange(len(chosen))

    found = numbers(column(notifications, "event"), _distinct(ids))
    reached = np.full(len(found), -1)
    reached[found >= 0] = rows[found[found >= 0]]
    kept = np.flatnonzero(reached >= 0)

    selected = events.take(chosen)
    receivers, publisher = column(selected, "receivers"), column(selected, "publisher")
    told = column(notifications, "client")
    names = names_in(receivers.flatten(), told.take(kept))
    due_event = _parents(receivers)
    width = max(1, len(names))
    keys = np.concatenate(
        [
            due_event * width + numbers(receivers.flatten(), names),
            reached[kept] * width + numbers(told, names)[kept],
        ]
    )
    handed = is_name(column(notifications, "outcome"), DELIVERED)[kept]
    merged = _merged(keys, len(due_event), handed, wholes(notifications, "delay")[kept])
    event, client = np.divmod(merged.key, width)
    own = numbers(publisher, names)[event] == client
    return Pairs(
        events=selected,
        times=instants(selected, "time"),
        truth_known=receivers.is_valid().to_numpy(zero_copy_only=False),
        clients=tuple(names.to_pylist()),
        event=event,
        client=client,
        own=own,
        due=merged.due & ~own,
        notified=merged.notified,
        handed=merged.handed,
        delay=merged.delay,
        strays=int((found < 0).sum()),
    )


def _chosen(events: Any, frame: TimeFrame, workload: str | None) -> Wholes:
    times = instants(events, "time")
    chosen = np.ones(len(times), np.bool_)
    if frame.since is not None:
        chosen &= times >= frame.since
    if frame.until is not None:
        chosen &= times < frame.until
    if workload is not None:
        chosen &= is_name(column(events, "workload"), workload)
    return np.flatnonzero(chosen)


def _distinct(ids: Any) -> Any:
    first = numbers(ids, ids)
    again = np.flatnonzero(first != np.arange(len(first)))
    if len(again):
        raise InvalidRecord(
            f"event {ids[int(again[0])].as_py()!r} stands in two rows of events; ids are unique within a recording, "
            f"so measure one recording at a time"
        )
    return ids


def _parents(lists: Any) -> Wholes:
    """For each value in the lists, the number of its list."""
    import pyarrow.compute as pc

    parents: Wholes = pc.list_parent_indices(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    return parents


@dataclass(frozen=True, slots=True)
class _Merged:
    key: Wholes
    due: Flags
    notified: Flags
    handed: Wholes
    delay: Wholes


def _merged(keys: Wholes, dues: int, handed: Flags, delay: Wholes) -> _Merged:
    """One row for each key; the first ``dues`` of them are the truth, the others notifications."""
    if not len(keys):
        no_numbers, no_flags = np.zeros(0, np.int64), np.zeros(0, np.bool_)
        return _Merged(no_numbers, no_flags, no_flags, no_numbers, no_numbers)
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    is_due = order < dues
    copies = np.concatenate([np.zeros(dues, np.int64), handed.astype(np.int64)])
    # What is due has no delay of its own: it must not shorten that of the copies.
    delays = np.concatenate([np.full(dues, np.iinfo(np.int64).max), delay])
    shortest = np.minimum.reduceat(delays[order], starts)
    notified = np.logical_or.reduceat(~is_due, starts)
    return _Merged(
        key=ordered[starts],
        due=np.logical_or.reduceat(is_due, starts),
        notified=notified,
        handed=np.add.reduceat(copies[order], starts),
        delay=np.where(notified, shortest, -1),
    )
