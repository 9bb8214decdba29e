"""From a recording to its ``Measures``: every number as ``nearcast.metrics`` defines it, for each part of the run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from nearcast.errors import InvalidRecord
from nearcast.experiment.control import ControlTraffic
from nearcast.experiment.measures import Bands, Delivery, Followed, Mark, Measures, Phase, Rate, Series
from nearcast.experiment.places import places_of, recall_map, transition_map
from nearcast.experiment.runs import WINDOW, Run
from nearcast.experiment.schedule import PROXY, Change, broker_changes, mechanisms, timelines, told_changes
from nearcast.metrics.columns import Floats, column, instants, is_name, mean_or_none, ratio, reals, wholes
from nearcast.metrics.delay import delay_per_event, delay_totals
from nearcast.metrics.delivery import application_totals, per_client, per_client_and_window, per_event, totals
from nearcast.metrics.distribution import box_plot
from nearcast.metrics.gaps import aligned_recall
from nearcast.metrics.matching import increases, match_operations
from nearcast.metrics.pairs import Pairs, pairs
from nearcast.metrics.spread import Executions, executions, spread
from nearcast.metrics.windows import Windows, bands
from nearcast.model.time import MICROSECONDS, Instant, TimeFrame
from nearcast.records.reader import dataset, read

LAST: Final = 2.0
"""Seconds: what is published at the very end may still be on its way when the run is over."""

EDGE: Final = 1.0
"""Seconds: what is published right before a transition meets the scheme that follows, or nobody at all."""

BIN: Final = 50_000
"""Microseconds of a bin around a transition: with 297 clients that publish once a second it holds 15 events."""

MULTICAST: Final = ("messages to clients", "messages to clients, by multicast")
"""Counters of the broker: of what it sent, and of what it would have sent with one transmission for each channel."""

BEFORE, AFTER = 5, 10
"""Seconds around a transition that are looked at closely."""


def measure(run: Run, folder: Path) -> Measures:
    """Measure the recording of that run."""
    recording = _Recording(run, folder)
    changes = recording.changes
    borders = [0.0, *(change.at for change in changes)] if run.transitions else [0.0, *run.cuts]
    if len(borders) != len(run.phases):
        raise InvalidRecord(
            f"run {run.name} changed its scheme {len(borders) - 1} times instead of {len(run.phases) - 1}; "
            f"its phases cannot be told apart"
        )
    ends = [*(border - EDGE for border in borders[1:]), recording.seconds - LAST]
    phases = [
        recording.phase(label, since + run.settling, until)
        for label, since, until in zip(run.phases, borders, ends, strict=True)
    ]
    return Measures(
        seconds=recording.seconds,
        whole=recording.phase("whole", 0.0, recording.seconds - LAST),
        phases=phases,
        marks=[recording.mark(number) for number in range(len(changes))],
        series=recording.series(),
        recall_map=recall_map(recording.pairs, recording.positions) if run.maps else None,
        transition_map=transition_map(recording.transitions, recording.positions, run.proxy) if run.maps else None,
        timelines=timelines(recording.transitions, recording.clients, recording.start, run.proxy),
        folder=str(folder),
        numbers={} if run.numbers is None else dict(run.numbers(run.scenario, folder)),
    )


def restricted(found: Pairs, frame: TimeFrame) -> Pairs:
    """The pairs of the events that were published within the frame."""
    kept = np.ones(len(found.times), np.bool_)
    if frame.since is not None:
        kept &= found.times >= frame.since
    if frame.until is not None:
        kept &= found.times < frame.until
    rows = np.cumsum(kept) - 1
    inside = kept[found.event]
    return replace(
        found,
        events=found.events.filter(kept),
        times=found.times[kept],
        truth_known=found.truth_known[kept],
        event=rows[found.event[inside]],
        **{name: getattr(found, name)[inside] for name in ("client", "own", "due", "notified", "handed", "delay")},
    )


@dataclass(frozen=True)
class _Recording:
    run: Run
    folder: Path

    @property
    def start(self) -> Instant:
        return self.run.scenario.run.start

    @property
    def seconds(self) -> float:
        return float(self.run.scenario.run.duration)

    @cached_property
    def pairs(self) -> Pairs:
        events = self._some("events", "time", "event", "publisher", "lat", "lon", "workload", "receivers")
        notifications = self._some("notifications", "event", "client", "outcome", "delay")
        return pairs(events, notifications, frame=self._frame(0.0, self.seconds - LAST))

    @cached_property
    def transitions(self) -> Any:
        return read(self.folder, "transitions")

    @cached_property
    def clients(self) -> Any:
        return read(self.folder, "clients")

    @cached_property
    def positions(self) -> Any:
        return self._some("positions", "time", "client", "lat", "lon")

    @cached_property
    def metrics(self) -> Any:
        return read(self.folder, "metrics")

    @cached_property
    def control(self) -> ControlTraffic:
        return ControlTraffic.of(self.folder)

    @cached_property
    def changes(self) -> list[Change]:
        if not self.run.transitions:
            return []
        if self.run.proxy == PROXY:
            return broker_changes(self.transitions, self.start)
        return told_changes(self.run.scenario)

    def phase(self, label: str, since: float, until: float) -> Phase:
        if not since < until:
            raise InvalidRecord(
                f"run {self.run.name}: phase {label} ends after {until:g} s, before it has settled at {since:g} s"
            )
        frame = self._frame(since, until)
        found = restricted(self.pairs, frame)
        window = Windows(self._at(since), self._at(until), self._at(until) - self._at(since))
        operations = match_operations(self.metrics, window)
        clients = float(self._clients(window)[0])
        # The documents' windows whatever those of the run; what is left over at the end would count for less.
        length = WINDOW if until - since >= WINDOW else until - since
        windows = Windows(
            self._at(since), self._at(since + (until - since) // length * length), round(length * MICROSECONDS)
        )
        recall = per_client_and_window(found, windows)
        values = reals(recall, "recall")
        known = values[~np.isnan(values)]
        sent, by_multicast = (float(increases(self.metrics, name, window)[0]) for name in MULTICAST)
        return Phase(
            label=label,
            since=since,
            until=until,
            delivery=_delivery(found),
            rates=self._rates(window, clients),
            operations_counted=operations["counted_per_event"][0].as_py(),
            operations_done=operations["done_per_event"][0].as_py(),
            clients=clients,
            windows_below_one=float((known < 1.0).mean()) if len(known) else None,
            window_recall_p25=_mean_p25(windows, recall),
            multicast_saving=1.0 - by_multicast / sent if sent else None,
        )

    def mark(self, number: int) -> Mark:
        change = self.changes[number]
        at = self._at(change.at)
        # Far enough around it to cover what is looked at, and no further: a full run has millions of pairs.
        near = restricted(self.pairs, TimeFrame(at - (BEFORE + 1) * MICROSECONDS, at + (AFTER + 1) * MICROSECONDS))
        aligned = aligned_recall(
            per_event(near), at, before=BEFORE * MICROSECONDS, after=AFTER * MICROSECONDS, length=BIN
        )
        executed = self._executed(number)
        followed = spread(executed) if executed else None

        def later(instant: Instant | None) -> float | None:
            return None if instant is None else (instant - at) / MICROSECONDS

        return Mark(
            label=f"T{number + 1}",
            at=change.at,
            source=change.source,
            target=change.target,
            bin=BIN / MICROSECONDS,
            before=BEFORE,
            due=aligned.due.tolist(),
            correct=aligned.correct.tolist(),
            control=self.control.messages(at - BEFORE * MICROSECONDS, BEFORE + AFTER),
            executed=followed.hosts if followed else 0,
            median=later(followed.median) if followed else None,
            ninety_percent=later(followed.ninety_percent) if followed else None,
            last=later(followed.last) if followed else None,
            first=later(followed.first) if followed else None,
            followed=self._followed(executed, at) if executed and self.run.proxy != PROXY else None,
        )

    def _executed(self, number: int) -> Executions | None:
        """Who followed a transition, and when: by its plan, or, as self-healing knows none, until the next transition."""
        change, clients = self.changes[number], frozenset(self.pairs.clients)
        if self.run.proxy == PROXY:
            return executions(self.transitions, plan=change.plan, hosts=clients) if change.plan else None
        until = self.changes[number + 1].at if number + 1 < len(self.changes) else self.seconds
        frame = self._frame(change.at, until)
        return executions(self.transitions, proxy=self.run.proxy, target=change.target, hosts=clients, frame=frame)

    def _followed(self, executed: Executions, at: Instant) -> Followed:
        x, y = places_of(executed, self.positions)
        up = self._clients(Windows(at, at + MICROSECONDS))[0]
        return Followed(
            clients=max(round(float(up)), len(executed.hosts)),
            after=((executed.times - at) / MICROSECONDS).tolist(),
            x=x,
            y=y,
        )

    def series(self) -> Series:
        # Whole windows only: reports every few seconds would make a shorter one look busier, or idle.
        whole = (self.seconds - LAST) // self.run.window * self.run.window
        windows = self._windows(0.0, whole or self.seconds - LAST)
        found = per_client_and_window(self.pairs, windows)
        index = wholes(found, "window")
        operations = match_operations(self.metrics, windows)
        clients = self._clients(windows)
        rates = self._bytes(windows)
        scale = np.nan_to_num(ratio(np.full(windows.count, 8.0 / 1000.0), windows.seconds * clients))
        return Series(
            length=self.run.window,
            starts=((windows.starts - self.start) / MICROSECONDS).tolist(),
            recall=_bands(bands(windows, index, reals(found, "recall"))),
            precision=_bands(bands(windows, index, reals(found, "precision"))),
            rates={name: (size * scale).tolist() for name, (_, size) in rates.items()},
            operations_counted=operations["counted_per_event"].to_pylist(),
            clients=clients.tolist(),
            mechanisms=mechanisms(self.transitions, self.clients, windows, self.run.proxy),
            delay=bands(windows, windows.index(self.pairs.times), delay_per_event(self.pairs))["mean"].to_pylist(),
        )

    def _rates(self, window: Windows, clients: float) -> dict[str, Rate]:
        scale = 8.0 / 1000.0 / (float(window.seconds[0]) * clients) if clients else 0.0
        return {
            name: Rate(int(messages[0]), int(size[0]), float(size[0]) * scale)
            for name, (messages, size) in self._bytes(window).items()
        }

    def _bytes(self, windows: Windows) -> dict[str, tuple[Floats, Floats]]:
        """Messages and bytes in each window, by direction and class.

        Events by way of the broker are counted from publications and notifications, times the mean size of such a message: they
        are nearly all of ``messages``, which is by far the largest table.  Unless they come other ways, too.
        """
        found = self.control.windows(windows)
        if self.control.complete:
            return found
        published, reached = (
            np.bincount(kept, minlength=windows.count).astype(np.float64)
            for kept in (self._event_windows(windows, name) for name in ("events", "notifications"))
        )
        found["upload event"] = (published, published * self.control.event_size("sent"))
        found["download event"] = (reached, reached * self.control.event_size("received"))
        return found

    def _event_windows(self, windows: Windows, table: str) -> Any:
        index = windows.index(self._times[table])
        return index[index >= 0]

    @cached_property
    def _times(self) -> dict[str, Any]:
        return {name: instants(self._some(name, "time"), "time") for name in ("events", "notifications")}

    def _clients(self, windows: Windows) -> Floats:
        """Mean number that was up in each window; between two samples where a window has none."""
        samples = self.metrics.filter(is_name(column(self.metrics, "metric"), "clients up"))
        times, values = instants(samples, "time"), reals(samples, "value")
        if not len(times):
            return np.zeros(windows.count)
        index = windows.index(times)
        kept = index >= 0
        count = np.bincount(index[kept], minlength=windows.count)
        total = np.bincount(index[kept], weights=values[kept], minlength=windows.count)
        middles = windows.starts + windows.seconds * MICROSECONDS / 2
        return np.where(count > 0, ratio(total, count), np.interp(middles, times, values))

    def _some(self, table: str, *columns: str) -> Any:
        return dataset(self.folder, table).to_table(columns=list(columns))

    def _windows(self, since: float, until: float) -> Windows:
        return Windows(self._at(since), self._at(until), round(self.run.window * MICROSECONDS))

    def _frame(self, since: float, until: float) -> TimeFrame:
        return TimeFrame(self._at(since), self._at(until))

    def _at(self, seconds: float) -> Instant:
        return self.start + round(seconds * MICROSECONDS)


def _delivery(found: Pairs) -> Delivery:
    of_all, of_clients, delays = totals(found), per_client(found), delay_totals(found)
    return Delivery(
        events=of_all.events,
        due=of_all.due,
        notified=of_all.notified,
        correct=of_all.correct,
        recall=of_all.mean_event_recall,
        precision=of_all.mean_event_precision,
        client_recall=box_plot(reals(of_clients, "recall")),
        client_precision=box_plot(reals(of_clients, "precision")),
        doubled=application_totals(found).doubled,
        mean_delay=delays.mean,
        median_delay=delays.p50,
        p95_delay=delays.p95,
    )


def _mean_p25(windows: Windows, found: Any) -> float | None:
    spread_of = bands(windows, wholes(found, "window"), reals(found, "recall"))
    return mean_or_none(reals(spread_of, "p25"))


def _bands(table: Any) -> Bands:
    return Bands(*(table[name].to_pylist() for name in ("mean", "p5", "p25", "p50", "p75", "p95")))
