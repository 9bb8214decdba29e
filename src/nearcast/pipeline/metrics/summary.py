"""The headline numbers of a recording, as ``nearcast.metrics.run_metrics`` gives them, computed by Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nearcast.errors import InvalidRecord
from nearcast.metrics.delay import DelayTotals
from nearcast.metrics.delivery import ApplicationTotals, DeliveryTotals
from nearcast.metrics.distribution import BoxPlot
from nearcast.metrics.summary import SETTLING, RunMetrics, TrafficTotal, traffic_totals
from nearcast.metrics.windows import Windows
from nearcast.model.time import MICROSECONDS, TimeFrame
from nearcast.pipeline.metrics.columns import micros
from nearcast.pipeline.metrics.delay import delay_totals
from nearcast.pipeline.metrics.delivery import application_totals, per_client, totals
from nearcast.pipeline.metrics.distribution import box_plot
from nearcast.pipeline.metrics.matching import match_operations
from nearcast.pipeline.metrics.pairs import chosen, pairs, strays
from nearcast.pipeline.metrics.traffic import carried


def run_metrics(
    tables: Mapping[str, DataFrame],
    *,
    about: Mapping[str, str | int | float] | None = None,
    frame: TimeFrame | None = None,
    workload: str | None = None,
) -> RunMetrics:
    """Measure the record tables ``events, notifications, traffic, metrics, clients, transitions``.

    Unless a frame is given it is the whole run without its last two seconds.
    """
    run = _run(tables["traffic"], tables["events"])
    if frame is None:
        frame = TimeFrame(run.since, max(run.since + 1, run.until - SETTLING))
    events, notifications = tables["events"], tables["notifications"]
    found = pairs(events, notifications, frame=frame, workload=workload).cache()
    wanted = chosen(events, frame=frame, workload=workload)
    try:
        of_clients = per_client(found).cache()
        delivery = _only(totals(wanted, found, strays(events, notifications)))
        recall, precision = (_only(box_plot(of_clients, name)) for name in ("recall", "precision"))
        application, delay = _only(application_totals(found)), _only(delay_totals(found))
        of_clients.unpersist()
    finally:
        found.unpersist()
    clients = tables["clients"].select("client").distinct().count()
    operations = _only(match_operations(tables["metrics"], run))
    seconds = (run.until - run.since) / MICROSECONDS
    return RunMetrics(
        about=dict(about or {}),
        seconds=seconds,
        since=run.since if frame.since is None else frame.since,
        until=run.until if frame.until is None else frame.until,
        clients=clients,
        delivery=_fields(DeliveryTotals, delivery),
        application=_fields(ApplicationTotals, application),
        delay=_fields(DelayTotals, delay),
        client_recall=_fields(BoxPlot, recall) if recall else None,
        client_precision=_fields(BoxPlot, precision) if precision else None,
        traffic=_traffic(tables["traffic"], seconds * clients),
        match_operations_counted=operations["counted_per_event"],
        match_operations_done=operations["done_per_event"],
        transitions=tables["transitions"].count(),
    )


def _run(traffic: DataFrame, events: DataFrame) -> Windows:
    """The whole run as one window: the time frame of its traffic; without any, from the first event to the last."""
    since, until = traffic.agg(F.min(micros("since")), F.max(micros("until"))).collect()[0]
    if since is None:
        since, until = events.agg(F.min(micros("time")), F.max(micros("time")) + 1).collect()[0]
    if since is None:
        raise InvalidRecord("the tables hold neither traffic nor events: there is nothing to measure")
    return Windows(since, until, max(1, until - since))


def _traffic(traffic: DataFrame, client_seconds: float) -> tuple[TrafficTotal, ...]:
    rows = carried(traffic).orderBy("interface", "direction", "class").collect()
    return traffic_totals([row.asDict() for row in rows], client_seconds)


def _only(frame: DataFrame) -> dict[str, Any]:
    """The one row; empty if there is none."""
    return next((row.asDict() for row in frame.collect()), {})


def _fields(kind: Any, row: Mapping[str, Any]) -> Any:
    return kind(**{name: row[name] for name in kind.__dataclass_fields__})
