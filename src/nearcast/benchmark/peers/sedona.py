"""sedonadb: a spatial join of events and clients in the plane, on one thread like everybody else here.

It keeps no index between questions: a join of 1,024 events with a million clients walks over all of them
(3 k events/s).  So it is asked for as many events at once as the run has; 100 k events take 2 s (49 k events/s).
"""

from __future__ import annotations

import importlib.util
import warnings
from typing import Any

import numpy as np

from nearcast.benchmark.peers.peer import Pairs, Peer
from nearcast.benchmark.workload import RADIUS


class Sedona(Peer):
    name = "sedonadb"
    batch = 102_400

    @staticmethod
    def available() -> str | None:
        missing = [name for name in ("sedonadb", "pyarrow") if importlib.util.find_spec(name) is None]
        return f"the Python package {missing[0]} is not installed" if missing else None

    def start(self) -> None:
        import pyarrow as pa

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it misses PROJ and GDAL, which nothing here needs
            import sedonadb

            self.database = sedonadb.connect()
            self.database.sql("SET datafusion.execution.target_partitions = 1").execute()
        x, y, event_x, event_y = self.world.plane()
        for name, east, north in (("clients", x, y), ("events", event_x, event_y)):
            columns = {"number": np.arange(len(east), dtype=np.int32), "x": east, "y": north}
            self.database.create_data_frame(pa.table(columns)).to_view(f"{name}_plain", overwrite=True)
            points = self.database.sql(f"SELECT number, ST_Point(x, y) AS place FROM {name}_plain")  # noqa: S608
            points.to_memtable().to_view(name, overwrite=True)

    def prepare(self, start: int, stop: int) -> Any:
        return start, (
            "SELECT e.number AS event, c.number AS client FROM clients AS c "  # noqa: S608
            f"JOIN (SELECT * FROM events WHERE number >= {start} AND number < {stop}) AS e "
            f"ON ST_DWithin(c.place, e.place, {RADIUS})"
        )

    def query(self, request: Any) -> Any:
        import pyarrow as pa

        start, question = request
        return start, pa.table(self.database.sql(question))

    def pairs(self, reply: Any) -> Pairs:
        start, table = reply
        event, client = (table.column(name).to_numpy().astype(np.int64) for name in ("event", "client"))
        return Pairs(event - start, client)

    def version(self) -> str:
        from importlib.metadata import version

        return version("sedonadb")
