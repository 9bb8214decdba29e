"""Those who watch and may never change anything (BYPASS.KOM 5.1.1).

*Analyzers* are pushed: whatever happens is a row of one of the tables of ``records``, handed to everybody who watches that
table.  *Metrics* are pulled: functions that are sampled now and then.  A run with observers and one without are the same run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from nearcast.errors import ObserverActed, UnknownName

Analyzer = Callable[..., None]
Rows = Callable[[list[Any]], None]
"""Takes many rows at a time: their values, row after row."""

Metric = Callable[[], float]


def _nobody(*_row: Any) -> None:
    """Nobody watches."""


class Observers:
    """The analyzers of each table, and the metrics."""

    def __init__(self) -> None:
        self.watching: bool = False
        """An analyzer or a metric is at work: whatever would change the world must refuse."""

        self.analyzing: bool = False
        """There are analyzers: whatever happens is told when it happens."""

        self.metrics: Final[dict[str, Metric]] = {}
        self._analyzers: Final[dict[str, list[Analyzer]]] = {}
        self._trusted: Final[dict[str, Analyzer]] = {}
        self._trusted_rows: Final[dict[str, Rows]] = {}
        self._emitters: Final[dict[str, Analyzer]] = {}

    def analyze(self, table: str, analyzer: Analyzer) -> None:
        """Call ``analyzer(*row)`` for every row of that table; its result is ignored."""
        self._must_be_new(table)
        self._analyzers.setdefault(table, []).append(analyzer)
        self.analyzing = True

    def record(self, table: str, write: Analyzer, write_rows: Rows | None = None) -> None:
        """The recorder's way in: it only stores what it gets, so it is not guarded.  ``write_rows`` takes several at once."""
        self._must_be_new(table)
        self._trusted[table] = write
        if write_rows is not None:
            self._trusted_rows[table] = write_rows

    def measure(self, name: str, metric: Metric) -> None:
        """Sample ``metric()`` whenever the runtime samples; names are unique."""
        if name in self.metrics:
            raise UnknownName(f"there is a metric {name!r} already; give each its own name")
        self.metrics[name] = metric

    def watched(self, table: str) -> bool:
        """Whether anybody takes its rows: for those that are costly to make."""
        return table in self._trusted or table in self._analyzers

    def emitter(self, table: str) -> Analyzer:
        """The function to call with each row of that table; as cheap as can be when nobody watches."""
        if table not in self._emitters:
            self._emitters[table] = self._multiplexed(table)
        return self._emitters[table]

    def rows_emitter(self, table: str, width: int) -> Rows:
        """The function to call with many rows of so many values each, as one list."""
        emit = self.emitter(table)
        if table in self._trusted_rows and table not in self._analyzers:
            return self._trusted_rows[table]

        def emit_rows(values: list[Any]) -> None:
            for first in range(0, len(values), width):
                emit(*values[first : first + width])

        return _nobody if emit is _nobody else emit_rows

    def sample(self) -> dict[str, float]:
        """The present value of every metric."""
        before, self.watching = self.watching, True
        try:
            return {name: float(metric()) for name, metric in self.metrics.items()}
        finally:
            self.watching = before

    def refuse(self, what: str) -> None:
        """Called by the runtime in place of an action that an observer attempted."""
        raise ObserverActed(f"an observer tried to {what}: observers watch and never act")

    def _multiplexed(self, table: str) -> Analyzer:
        write: Analyzer = self._trusted.get(table, _nobody)
        analyzers = tuple(self._analyzers.get(table, ()))
        if not analyzers:
            return write

        def emit(*row: Any) -> None:
            write(*row)
            before, self.watching = self.watching, True
            try:
                for analyzer in analyzers:
                    analyzer(*row)
            finally:
                self.watching = before

        return emit

    def _must_be_new(self, table: str) -> None:
        # Emitters are bound once, where the rows arise: who comes later would miss some of them, and not know it.
        if table in self._emitters:
            raise UnknownName(f"rows of {table!r} are already being emitted; add observers before hosts start")
