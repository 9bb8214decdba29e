"""sedonadb, on all cores: a spatial join in the plane; where everybody moves, a join for every few seconds.

It joins by place alone, so that over an hour every event would meet all positions that anybody ever had within reach: the
reports are cut into buckets of time first, as one would, and each bucket is joined by itself with the intervals that reach
into it.
"""

from __future__ import annotations

import importlib.util
import warnings
from typing import Any, Final

import numpy as np

from nearcast.benchmark.pipeline_data import BEGINNING, PERIOD, Tables
from nearcast.benchmark.plane import to_plane
from nearcast.benchmark.workload import RADIUS

_BUCKET: Final = PERIOD // 2
"""Longer ones bring more positions of every client, shorter ones more joins; this is where it is quickest."""


def unavailable() -> str | None:
    missing = importlib.util.find_spec("sedonadb") is None
    return "the Python package sedonadb is not installed" if missing else None


def unavailable_on_spark() -> str | None:
    """Apache Sedona for Spark: whether its Python side imports."""
    if importlib.util.find_spec("sedona") is None:
        return "the Python package apache-sedona is not installed"
    try:
        importlib.import_module("sedona.spark")
    except Exception as error:  # noqa: BLE001 (whatever it is, it does not run here)
        return f"apache-sedona does not run here: {type(error).__name__}: {error}"
    return "apache-sedona needs its jars, which its package does not hold"


class SedonaTables:
    """The tables in memory, in the plane, before the clock starts."""

    def __init__(self, tables: Tables) -> None:
        import pyarrow.parquet as pq

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it misses PROJ and GDAL, which nothing here needs
            import sedonadb

            self._database = sedonadb.connect()
        self._moving = bool(tables.seconds)
        events, reports = (pq.read_table(tables.folder / name) for name in ("events", "reports"))
        self._events = self._columns(events.sort_by("time"), "event")
        self._reports = self._columns(reports, "client")
        self.events = len(self._events["number"])

    @staticmethod
    def _columns(table: Any, number: str) -> dict[str, Any]:
        x, y = to_plane(table.column("lat").to_numpy(), table.column("lon").to_numpy())
        time = table.column("time").to_numpy().astype("datetime64[us]").astype(np.int64) - BEGINNING
        return {"number": table.column(number).to_numpy(), "x": x, "y": y, "time": time}

    def pairs(self) -> Any:
        """All pairs of event and client, as Arrow tables, one for each bucket."""
        if not self._moving:
            self._show("events", self._events)
            self._show("clients", self._reports)
            return [self._joined("")]
        return list(self._buckets())

    def _buckets(self) -> Any:
        reports = self._reports
        order = np.lexsort((reports["time"], reports["number"]))
        client, since = reports["number"][order], reports["time"][order]
        until = np.append(since[1:], since[-1] + 2 * PERIOD)
        until[:-1][client[1:] != client[:-1]] = since[:-1][client[1:] != client[:-1]] + 2 * PERIOD
        starts = np.argsort(since, kind="stable")
        sorted_since = since[starts]
        time = self._events["time"]
        for first in range(int(time[0]) // _BUCKET * _BUCKET, int(time[-1]) + 1, _BUCKET):
            last = first + _BUCKET
            happened = slice(*np.searchsorted(time, (first, last)))
            if happened.start == happened.stop:
                continue
            # No interval is longer than two periods.
            near = starts[np.searchsorted(sorted_since, first - 2 * PERIOD) : np.searchsorted(sorted_since, last)]
            near = near[until[near] > first]
            rows = order[near]
            self._show("events", {name: column[happened] for name, column in self._events.items()})
            spans = {"number": client[near], "x": reports["x"][rows], "y": reports["y"][rows]}
            self._show("clients", {**spans, "since": since[near], "until": until[near]})
            yield self._joined(" AND e.time >= c.since AND e.time < c.until")

    def _show(self, name: str, columns: dict[str, Any]) -> None:
        import pyarrow as pa

        self._database.create_data_frame(pa.table(columns)).to_view(f"{name}_plain", overwrite=True)
        points = self._database.sql(f"SELECT *, ST_Point(x, y) AS place FROM {name}_plain")  # noqa: S608
        points.to_view(name, overwrite=True)

    def _joined(self, condition: str) -> Any:
        import pyarrow as pa

        return pa.table(
            self._database.sql(
                "SELECT e.number AS event, c.number AS client FROM events AS e JOIN clients AS c "  # noqa: S608
                f"ON ST_DWithin(e.place, c.place, {RADIUS}){condition}"
            )
        )
