"""The headline numbers of a recording."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from nearcast.errors import InvalidRecord
from nearcast.metrics.columns import column, instants, names_in, reals
from nearcast.metrics.delay import DelayTotals, delay_totals
from nearcast.metrics.delivery import ApplicationTotals, DeliveryTotals, application_totals, per_client, totals
from nearcast.metrics.distribution import BoxPlot, box_plot
from nearcast.metrics.matching import match_operations
from nearcast.metrics.pairs import pairs
from nearcast.metrics.traffic import carried
from nearcast.metrics.windows import Windows
from nearcast.model.time import MICROSECONDS, Instant, TimeFrame
from nearcast.records.reader import dataset, read
from nearcast.records.summary import read_summary

SETTLING: Final = 2 * MICROSECONDS
"""What is published in the last two seconds of a run may still be on its way at its end, and then has no notification."""


@dataclass(frozen=True, slots=True)
class TrafficTotal:
    """What clients sent or received over an interface for one purpose."""

    interface: str
    direction: str
    kind_class: str
    messages: int
    bytes: int
    share: float | None
    """Of the bytes of that interface and direction."""

    kilobits_per_second: float | None
    """Mean of a client, over the whole run and all clients that ever were."""


@dataclass(frozen=True, slots=True)
class RunMetrics:
    """One recording.  Delivery and delay speak of the events published in ``[since, until)``, all else of the whole run."""

    about: dict[str, str | int | float]
    """Title, digest of the scenario and seed, as recorded."""

    seconds: float
    """Length of the run."""

    since: Instant
    until: Instant
    clients: int
    """That ever joined."""

    delivery: DeliveryTotals
    application: ApplicationTotals
    delay: DelayTotals
    client_recall: BoxPlot | None
    """Over clients."""

    client_precision: BoxPlot | None
    traffic: tuple[TrafficTotal, ...]
    match_operations_counted: float | None
    """Per event, as the documents count them; none if not sampled."""

    match_operations_done: float | None
    transitions: int
    """How often a host exchanged a mechanism."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def run_metrics(folder: Path | str, *, frame: TimeFrame | None = None, workload: str | None = None) -> RunMetrics:
    """Measure a recording; ``frame`` and ``workload`` choose events.

    Unless a frame is given it is the whole run without its last two seconds (``SETTLING``).
    """
    traffic, metrics = read(folder, "traffic"), read(folder, "metrics")
    events = _some(folder, "events", "time", "event", "publisher", "lat", "lon", "workload", "receivers")
    run = _run(traffic, events)
    if frame is None:
        frame = TimeFrame(run.since, max(run.since + 1, run.until - SETTLING))
    notifications = _some(folder, "notifications", "event", "client", "outcome", "delay")
    found = pairs(events, notifications, frame=frame, workload=workload)
    of_clients = per_client(found)
    clients = len(names_in(column(_some(folder, "clients", "client"), "client")))
    seconds = (run.until - run.since) / MICROSECONDS
    operations = match_operations(metrics, run)
    return RunMetrics(
        about=dict(read_summary(folder).about),
        seconds=seconds,
        since=run.since if frame.since is None else frame.since,
        until=run.until if frame.until is None else frame.until,
        clients=clients,
        delivery=totals(found),
        application=application_totals(found),
        delay=delay_totals(found),
        client_recall=box_plot(reals(of_clients, "recall")),
        client_precision=box_plot(reals(of_clients, "precision")),
        traffic=traffic_totals(carried(traffic).to_pylist(), seconds * clients),
        match_operations_counted=operations["counted_per_event"][0].as_py(),
        match_operations_done=operations["done_per_event"][0].as_py(),
        transitions=dataset(folder, "transitions").count_rows(),
    )


def _some(folder: Path | str, table: str, *columns: str) -> Any:
    return dataset(folder, table).to_table(columns=list(columns))


def _run(traffic: Any, events: Any) -> Windows:
    """The whole run as one window: the time frame of its traffic; without any, from the first event to the last."""
    if traffic.num_rows:
        since, until = int(instants(traffic, "since").min()), int(instants(traffic, "until").max())
    elif events.num_rows:
        times = instants(events, "time")
        since, until = int(times.min()), int(times.max()) + 1
    else:
        raise InvalidRecord("the recording holds neither traffic nor events: there is nothing to measure")
    return Windows(since, until, max(1, until - since))


def traffic_totals(rows: Iterable[Mapping[str, Any]], client_seconds: float) -> tuple[TrafficTotal, ...]:
    """Of the rows that ``carried`` makes."""
    return tuple(
        TrafficTotal(
            interface=row["interface"],
            direction=row["direction"],
            kind_class=row["class"],
            messages=row["messages"],
            bytes=row["bytes"],
            share=row["share"],
            kilobits_per_second=row["bytes"] * 8 / 1000 / client_seconds if client_seconds else None,
        )
        for row in rows
    )
