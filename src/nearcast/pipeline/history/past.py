"""What happened: many subscriptions into the past against the archive, in one pass over its events.

The questions, few next to the events, are sent to where events are read; there the matcher of the broker holds them as if they were
subscribers, each where it was when it asked, and takes the events batch by batch.  Events that are bound to a reach or to a context
are then compared with what was known of the client when they were published (``known``).

All is as ``model.delivery`` defines it for a subscription that reaches into the past: the area lies around the position at the time of
asking, relevance is that of the publication, and what has expired or was unpublished by then does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from nearcast.model.delivery import relevant
from nearcast.model.history import ClientHistory
from nearcast.pipeline.history.archive import Archive, bucket, part, presence, taken_back
from nearcast.pipeline.history.known import histories, with_whole_instants
from nearcast.pipeline.history.questions import QUESTION, Question, cells_of, gathered, time_of
from nearcast.pipeline.history.sifting import Sieve
from nearcast.pipeline.rows import event_of
from nearcast.records import table as record_table

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

_TOLD: Final = tuple(name for name in record_table("events").column_names if name not in {"receivers", "workload"})
"""Columns of events: who else got one is no business of whoever asks."""

MOST: Final = 10_000
"""Events in one answer, if the question does not say how many: an answer is one row."""

_DELIVERED: Final = (
    "event",
    "offset",
    "time",
    "topic",
    "payload",
    "lat",
    "lon",
    "tags",
    "attributes",
    "reach_area",
    "lifetime",
)
"""Of an event, what its receiver is told."""

_BOUND: Final = "reach is not null or reach_area is not null or addressing is not null"


def past(questions: DataFrame, archive: Archive) -> DataFrame:
    """The answers: all columns of the questions, then ``total``, ``events``, ``given`` and ``next``.

    ``questions`` has ``client, subscription, topic_filter, condition, area, frame_since, frame_until, asked``, and perhaps ``first``, how many
    events are wanted at most, ``cursor``, the ``next`` of the answer before, and ``no_local``: not what the client itself published.  Names and
    ``asked`` are never null.

    ``total`` is the number of all events that match, ``events`` an array of them, oldest first as the broker gives them, ``given`` how many
    of all have been given with this answer, and ``next`` the cursor to ask for more with; null when there are no more.
    """
    table = questions.toArrow()
    asked = gathered(table, archive)
    answers = questions.sparkSession.createDataFrame(_numbered(table, asked)).join(
        _answers(asked, archive), QUESTION, "left"
    )
    nothing = F.array().cast(answers.schema["events"].dataType)
    none = F.lit(0).cast("bigint")
    answers = answers.withColumns(
        {
            "total": F.coalesce("total", none),
            "left": F.coalesce("left", none),
            "events": F.slice(F.coalesce("events", nothing), 1, F.col("limit")),
        }
    )
    given = F.col("total") - F.col("left") + F.size("events")
    more = F.col("left") > F.size("events")
    cursor = _cursor(F.try_element_at("events", F.lit(-1)))
    return answers.select(
        *table.column_names, "total", "events", given.alias("given"), F.when(more, cursor).alias("next")
    )


def notifications(answers: DataFrame) -> DataFrame:
    """The rows that the source ``nearcast`` writes to the table ``notifications``, and a broker delivers: one for each event of an answer.

    The last of an answer says how many of the total have been given with it.
    """
    told = answers.select(
        "client",
        "subscription",
        "asked",
        "total",
        "given",
        F.size("events").alias("size"),
        F.posexplode("events").alias("place", "event"),
    )
    last = F.col("place") == F.col("size") - 1
    number, total = (
        F.when(last, F.col(name)).alias(alias) for name, alias in (("given", "number"), ("total", "total"))
    )
    columns = [F.col(f"event.{name}") for name in _DELIVERED]
    # The same answer counts once, however often it is written; whoever asks again later is told again.
    said = ("client", "subscription", "asked", "event.time", "event.offset", "event.event")
    key = F.sha2(F.concat_ws("\n", *(F.col(name).cast("string") for name in said)), 256).alias("key")
    return told.select("client", "subscription", *columns, number, total, key)


def _numbered(table: pa.Table, asked: Sequence[Question]) -> pa.Table:
    import pyarrow as pa

    numbers = pa.array([each.number for each in asked], pa.int64())
    limits = pa.array([each.first or MOST for each in asked], pa.int32())
    return table.append_column(QUESTION, numbers).append_column("limit", limits)


def _answers(asked: Sequence[Question], archive: Archive) -> DataFrame:
    """``question, total, left`` (how many lie ahead of the cursor), ``events``, for questions to which there is something to say."""
    found = matched(asked, archive)
    told = F.struct(*(name for name in found.columns if name not in {QUESTION, "client", "ahead"}))
    place = F.struct("time", F.coalesce("offset", F.lit(-1)), "event")
    most = max((each.first or MOST for each in asked), default=1)
    return found.groupBy(QUESTION).agg(
        F.count("*").alias("total"),
        F.count_if("ahead").alias("left"),
        F.min_by(told, F.when(F.col("ahead"), place), most).alias("events"),
    )


def matched(asked: Sequence[Question], archive: Archive) -> DataFrame:
    """A row for each question and event that matches it: ``question, client, ahead`` and the columns of the event."""
    events = taken_back(relevant_part(asked, archive), archive.unpublished)
    # Two passes over two kinds of events, so that none is matched twice and only the few bound ones are sent around.
    free = _sifted(events.where(f"not ({_BOUND})"), asked)
    bound = _sifted(events.where(_BOUND), asked)
    clients = bound.sparkSession.createDataFrame(_clients(asked))
    known = presence(archive, max((each.asked for each in asked), default=0)).join(
        F.broadcast(clients), "client", "left_semi"
    )
    judged = bound.groupBy(bucket()).cogroup(known.groupBy(bucket())).applyInArrow(_concerned, bound.schema)
    return free.unionByName(judged)


def relevant_part(asked: Sequence[Question], archive: Archive) -> DataFrame:
    """The events in which the answers lie, from as few partitions as possible."""
    time = time_of(asked)
    if time is None:
        return archive.events.where(F.lit(False)).select(*_TOLD)
    # A message to other times comes at its own moment, and finds a subscription or does not.
    return part(archive.events, time, cells_of(asked)).where(F.col("timing").isNull()).select(*_TOLD)


def _sifted(events: DataFrame, asked: Sequence[Question]) -> DataFrame:
    from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType

    added = [
        StructField(QUESTION, LongType()),
        StructField("client", StringType()),
        StructField("ahead", BooleanType()),
    ]
    schema = StructType([*added, *(field for field in events.schema if field.name != "gone")])
    return events.mapInArrow(_sifting(tuple(asked)), schema)


Batches = Iterator["pa.RecordBatch"]


@lru_cache(maxsize=1)
def _sieve(asked: tuple[Question, ...]) -> Sieve:
    """Kept from task to task of a worker: with thousands of questions, making it takes longer than a small file."""
    return Sieve(asked)


def _sifting(asked: tuple[Question, ...]) -> Callable[[Batches], Batches]:
    def sift(batches: Batches) -> Batches:
        sieve = _sieve(asked)
        for batch in batches:
            yield sieve.sifted(batch)

    return sift


def _clients(asked: Sequence[Question]) -> pa.Table:
    import pyarrow as pa

    return pa.table({"client": pa.array(sorted({each.client for each in asked}), pa.string())})


def _concerned(pairs: pa.Table, told: pa.Table) -> pa.Table:
    """Of the pairs, those whose event concerned the client when it was published."""
    import pyarrow as pa

    known = dict(histories(told)) if pairs.num_rows else {}
    nobody = ClientHistory()
    rows = with_whole_instants(pairs).to_pylist()
    kept = [relevant(event_of(row), known.get(row["client"], nobody), row["time"]) for row in rows]
    return pairs.filter(pa.array(kept, pa.bool_()))


def _cursor(event: Column) -> Column:
    offset = F.coalesce(event["offset"], F.lit(-1))
    return F.concat_ws(" ", F.unix_micros(event["time"]), offset, event["event"])
