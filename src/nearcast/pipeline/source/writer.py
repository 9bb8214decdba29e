"""Answers and plans on their way into the broker.

Every row has a key that follows from what it says, and the broker remembers the keys that it has seen to: so a task, a micro-batch
or a whole query may be run again, and nobody gets anything twice.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from nearcast.errors import InvalidSettings
from nearcast.pipeline.source.link import ARROW, BrokerLink
from nearcast.pipeline.source.options import SourceOptions
from nearcast.planning.signed import Signer
from nearcast.records.answers import ANSWERS
from nearcast.records.arrow import plain_schema, stream_of
from nearcast.runtime.live.clock import LiveClock

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_KEY: Final = "key"
_TELLING: Final = ("client", "subscription", "offset")
"""What tells one answer to a question from another."""

_PLAN: Final = "plan"
_PLANNED: Final = ("scheme", "clients", "regions", "elsewhere", "gateways")
"""What a plan may say (``broker.schemes.plans``); the broker refuses what does not go together."""

_ROWS: Final = 2_000
_BYTES: Final = 4_000_000
"""So much is handed in at once."""


@dataclass
class HandedIn(WriterCommitMessage):
    """What became of the rows of one task."""

    outcomes: dict[str, int]


@dataclass(frozen=True)
class Handing:
    """How the rows of a task are handed in."""

    options: SourceOptions

    def write(self, iterator: Iterator[Any]) -> HandedIn:
        assert self.options.broker is not None
        link = BrokerLink(self.options.broker)
        outcomes: Counter[str] = Counter()
        for batch in iterator:
            for piece in _pieces(batch):
                if self.options.table == "plans":
                    outcomes.update(link.post("/plans", _plans(piece, self.options.signer), "application/json"))
                else:
                    outcomes.update(link.post("/notifications", _answers(piece, self.options.query), ARROW))
        return HandedIn(dict(outcomes))


class BatchWriter(Handing, DataSourceArrowWriter):
    """Once."""


class StreamWriter(Handing, DataSourceStreamArrowWriter):
    """Micro-batch by micro-batch."""


def check_columns(table: str, schema: StructType) -> None:
    """``InvalidSettings`` unless the rows say all that is needed, and nothing that nobody knows."""
    if table == "plans":
        required, known = {_PLAN}, {_PLAN, *_PLANNED}
    else:
        required = set(ANSWERS.column_names[: ANSWERS.required]) - {_KEY}
        known = set(ANSWERS.column_names)
    missing, unknown = sorted(required - set(schema.names)), sorted(set(schema.names) - known)
    if missing or unknown:
        raise InvalidSettings(
            f"{table} are written from the columns {', '.join(sorted(required))}, and perhaps "
            f"{', '.join(sorted(known - required))}"
            + (f"; missing: {', '.join(missing)}" if missing else "")
            + (f"; unknown: {', '.join(unknown)}" if unknown else "")
        )


def _pieces(batch: Any) -> Iterator[Any]:
    """Parts that the broker takes."""
    rows = max(1, min(_ROWS, batch.num_rows * _BYTES // max(1, batch.nbytes)))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _plans(batch: Any, signer: Signer | None) -> bytes:
    rows = batch.to_pylist()
    if signer is not None:
        rows = [signer.signed(row, LiveClock().now()) for row in rows]
    return msgspec.json.encode(rows)


def _answers(batch: Any, query: str) -> bytes:
    import pyarrow as pa

    schema = plain_schema(ANSWERS)
    columns = {name: batch.column(name) for name in batch.schema.names}
    if _KEY not in columns:
        told = [columns[name].to_pylist() if name in columns else [None] * batch.num_rows for name in _TELLING]
        columns[_KEY] = pa.array([_key(query, *row) for row in zip(*told, strict=True)])
    arrays = [
        columns[field.name].cast(field.type) if field.name in columns else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return stream_of(pa.RecordBatch.from_arrays(arrays, schema=schema))


def _key(*parts: object) -> str:
    said = msgspec.json.encode(parts)
    return urlsafe_b64encode(hashlib.sha256(said).digest()[:18]).decode()
