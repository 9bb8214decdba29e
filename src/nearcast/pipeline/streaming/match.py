"""``match_stream``: the receivers of events that keep coming, by the definition of delivery."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nearcast.errors import InvalidSettings
from nearcast.model.time import MICROSECONDS
from nearcast.pipeline.matching.changes import (
    COLUMNS,
    EVENT,
    changes_of,
    event_rows,
    in_common_form,
    is_rich,
    type_of,
    union,
    with_needed,
)
from nearcast.pipeline.streaming.settings import StreamSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def match_stream(
    events: DataFrame,
    reports: DataFrame,
    subscriptions: DataFrame,
    contexts: DataFrame | None = None,
    clients: DataFrame | None = None,
    *,
    clock: DataFrame | None = None,
    settings: StreamSettings | None = None,
) -> DataFrame:
    """Who receives each event: one row per event, ``event``, ``time``, ``receivers`` and ``late``.

    The frames are streams of the record tables (``pipeline.matching.match`` says what of them is needed).  Rows may come in any
    order within ``settings.delay``: the answer is that of the batch match.  What comes later is *late*: a change then counts
    for events that are still to be answered, in its place among those before; an event is answered by what is known at the watermark, and
    its row says so.

    ``clock``: a stream with a column ``time`` that says how late it is.  Without one, the last events of a stream that falls
    silent wait for the next row, whatever it is.
    """
    from nearcast.pipeline.streaming.operator import StreamMatching
    from nearcast.pipeline.streaming.packing import Packing, unpacked

    chosen = settings or StreamSettings()
    if chosen.by_clock and clock is None:
        raise InvalidSettings(
            "by_clock asks for a clock, and there is none; hand over a stream that says how late it is"
        )
    events = with_needed(events, subscriptions)
    rows = stream_rows(events, reports, subscriptions, contexts, clients, clock=clock, parts=chosen.parts)
    client, event = type_of(rows, "client"), type_of(rows, "event")
    matching = StreamMatching(
        rich=is_rich(events),
        parts=chosen.parts,
        delay=round(chosen.delay * MICROSECONDS),
        forget_after=None if chosen.forget_after is None else round(chosen.forget_after * MICROSECONDS),
        client=_arrow_type(client),
        event=_arrow_type(event),
        by_clock=chosen.by_clock,
    )
    answers = f"event {_answered(event)}, time timestamp, receivers array<{_answered(client)}>, late boolean"
    packed = rows.mapInArrow(Packing(part_keys(events.sparkSession, chosen.parts)), "part int, rows binary")
    found = packed.groupBy("part").transformWithStateInPandas(matching, "answers binary", "append", "none")
    return found.mapInArrow(unpacked, answers)


def stream_rows(
    events: DataFrame,
    reports: DataFrame,
    subscriptions: DataFrame,
    contexts: DataFrame | None = None,
    clients: DataFrame | None = None,
    *,
    clock: DataFrame | None = None,
    parts: int = 1,
) -> DataFrame:
    """All that happens, in one form; ``deal`` is the part that an event goes to, and null for whatever else there is."""
    from pyspark.sql import functions as F

    from nearcast.pipeline.streaming.operator import CLOCK
    from nearcast.pipeline.streaming.packing import DEAL

    changes = changes_of(reports, subscriptions, contexts, clients)
    types = {"client": type_of(changes.reports, "client"), "event": type_of(events, "event")}
    known = [in_common_form(changes.reports), *(frame.select(*COLUMNS) for frame in changes.others())]
    if clock is not None:
        known.append(clock.select(F.unix_micros("time").alias("time"), F.lit(CLOCK).cast("tinyint").alias("kind")))
    happened = event_rows(events).withColumn("kind", F.lit(EVENT).cast("tinyint"))
    everywhere = F.lit(None).cast("int")
    dealt = F.pmod(F.hash("event"), F.lit(parts)).cast("int")
    rows = [_without_nulls(frame, types).withColumn(DEAL, everywhere) for frame in known]
    return union([*rows, _without_nulls(happened, types).withColumn(DEAL, dealt)])


_PLACES: Final = 25_200
"""All numbers up to 10 divide it, and 200."""


def part_keys(spark: SparkSession, parts: int) -> tuple[int, ...]:
    """A key for each part.  Spark deals keys to tasks by their hash, and would give 0 and 1 to the same one of two.

    These go to different tasks, if there are enough and their number divides ``_PLACES``.  They do not depend on that
    number, which a checkpoint keeps but a session may change: under other keys nothing would be found of the state.
    """
    from pyspark.sql import functions as F

    place = F.pmod(F.hash(F.col("id").cast("int")), F.lit(_PLACES))
    # Each place comes up once in so many numbers, as chance will have it: in thirty times as many surely.
    found = spark.range(30 * _PLACES).select(F.col("id"), place.alias("place")).where(F.col("place") < parts).collect()
    keys: dict[int, int] = {}
    for row in sorted(found):
        keys.setdefault(row.place, row.id)
    return tuple(keys[place] for place in range(parts))


def _without_nulls(frame: DataFrame, types: dict[str, str]) -> DataFrame:
    """All columns of any row; where ids and offsets are null, something stands that can be compared."""
    from pyspark.sql import functions as F

    forms = {"offset": "bigint", "lat": "double", "lon": "double", "detail": "string", **types}
    columns = {
        name: F.col(name).cast(form) if name in frame.columns else F.lit(None).cast(form)
        for name, form in forms.items()
    }
    for name in ("offset", "client", "event"):
        instead = F.lit("" if forms[name] == "string" else -1).cast(forms[name])
        columns[name] = F.coalesce(columns[name], instead)
    return frame.select("time", "kind", *(column.alias(name) for name, column in columns.items()))


def _answered(name: str) -> str:
    """Whole numbers of any kind come out as large ones."""
    return "string" if name == "string" else "bigint"


def _arrow_type(name: str) -> str:
    return "string" if name == "string" else "int64"
