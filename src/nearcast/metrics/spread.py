"""How a transition spreads: when and where each host exchanged its mechanism (BYPASS.KOM 6.1.4, 6.3.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nearcast.errors import InvalidInput
from nearcast.metrics.columns import Flags, Floats, Wholes, column, instants, is_name, names_in, numbers, reals
from nearcast.model.time import EVER, Instant, TimeFrame


@dataclass(frozen=True, eq=False)
class Executions:
    """When and where hosts first did what was asked for; in the order of time."""

    hosts: tuple[str, ...]
    times: Wholes
    lat: Floats
    """NaN: the host has no place, as the broker."""

    lon: Floats


@dataclass(frozen=True, slots=True)
class Spread:
    """By when so many of the hosts had done it; none if so many never did."""

    hosts: int
    """That did it."""

    of: int
    """That should have."""

    first: Instant | None
    median: Instant | None
    ninety_percent: Instant | None
    last: Instant | None
    """The last that did; not all need have."""


def executions(
    transitions: Any,
    *,
    plan: str | None = None,
    proxy: str | None = None,
    target: str | None = None,
    hosts: frozenset[str] | None = None,
    frame: TimeFrame = EVER,
) -> Executions:
    """The first matching row of each host in the table ``transitions``.

    What is not given may be anything.  Self-healing hosts have no plan: to follow a spread, ask for the target and a frame.
    """
    times = instants(transitions, "time")
    chosen = np.ones(len(times), np.bool_)
    for name, value in (("plan", plan), ("proxy", proxy), ("target", target)):
        if value is not None:
            chosen &= is_name(column(transitions, name), value)
    if frame.since is not None:
        chosen &= times >= frame.since
    if frame.until is not None:
        chosen &= times < frame.until
    if hosts is not None:
        import pyarrow as pa

        chosen &= numbers(column(transitions, "host"), pa.array(sorted(hosts), pa.string())) >= 0
    return _first_of_each_host(transitions, chosen, times)


def _first_of_each_host(transitions: Any, chosen: Flags, times: Wholes) -> Executions:
    rows = np.flatnonzero(chosen)
    rows = rows[np.argsort(times[rows], kind="stable")]
    host = column(transitions, "host")
    names = names_in(host)
    number = numbers(host, names)[rows]
    _, first = np.unique(number, return_index=True)
    kept = rows[np.sort(first)]
    return Executions(
        hosts=tuple(names.take(numbers(host, names)[kept]).to_pylist()),
        times=times[kept],
        lat=reals(transitions, "lat")[kept],
        lon=reals(transitions, "lon")[kept],
    )


def spread(executed: Executions, of: int | None = None) -> Spread:
    """First, median, 90 % and last of the ``of`` hosts that should; unless said, of those that did.

    The moment by which a share has done it is that of the host that completes the share; nothing is interpolated.
    """
    done = len(executed.times)
    of = done if of is None else of
    if of < done:
        raise InvalidInput(
            f"{done} hosts executed a transition that only {of} should; give the number of all concerned"
        )

    def by(percent: int) -> Instant | None:
        place = -(-percent * of // 100)
        return int(executed.times[place - 1]) if 0 < place <= done else None

    return Spread(
        hosts=done,
        of=of,
        first=int(executed.times[0]) if done else None,
        median=by(50),
        ninety_percent=by(90),
        last=int(executed.times[-1]) if done else None,
    )


def spreads(transitions: Any) -> Any:
    """A row for each plan, proxy and target: ``plan, proxy, target, hosts, first, median, ninety_percent, last``.

    In the order of their first execution; rows without a plan (self-healing) are taken together by proxy and target.
    """
    import pyarrow as pa

    keys, index = _groups(transitions)
    times = instants(transitions, "time")
    found = [(key, spread(_first_of_each_host(transitions, index == number, times))) for number, key in enumerate(keys)]
    found.sort(key=lambda pair: (pair[1].first or 0, *(part or "" for part in pair[0])))
    text, whole, instant = pa.string(), pa.int64(), pa.timestamp("us", tz="UTC")
    columns: dict[str, Any] = {
        name: pa.array([key[place] for key, _ in found], text) for place, name in enumerate(("plan", "proxy", "target"))
    }
    columns["hosts"] = pa.array([each.hosts for _, each in found], whole)
    for name in ("first", "median", "ninety_percent", "last"):
        columns[name] = pa.array([getattr(each, name) for _, each in found], whole).cast(instant)
    return pa.table(columns)


def _groups(transitions: Any) -> tuple[list[tuple[str | None, ...]], Wholes]:
    """The different (plan, proxy, target), and for each row which of them it is."""
    columns = [column(transitions, name) for name in ("plan", "proxy", "target")]
    names = [names_in(values) for values in columns]
    codes = np.stack([numbers(values, known) for values, known in zip(columns, names, strict=True)])
    different, index = np.unique(codes, axis=1, return_inverse=True)
    keys = [
        tuple(known[int(code)].as_py() if code >= 0 else None for code, known in zip(row, names, strict=True))
        for row in different.T
    ]
    return keys, index.reshape(-1)
