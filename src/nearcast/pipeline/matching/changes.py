"""All that changes what is known of clients, in one form: reports, subscriptions, contexts, and sessions that end.

A row says when (``time``, microseconds; ``offset`` in the journal where there is one), of whom (``client``), what
(``kind``), and the rest: a position for reports, and for all others ``detail``, a JSON object that is decoded once for each
distinct text.  ``name`` tells apart what a client has several of, and is part of ``detail`` where it is needed.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

from nearcast.errors import InvalidRecord
from nearcast.model.history import IMPLICIT_CONTEXT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Kinds of rows, in the order in which they count at one instant without offsets
ENDED: Final = 0
REPORT: Final = 1
CONTEXT: Final = 2
SUBSCRIPTION: Final = 3
EVENT: Final = 4

ACCEPTANCE: Final = ("accepting", "declining")
"""States of clients that say whether they take what is addressed to them without a subscription."""

ACCEPTING: Final = "\0accepting"
"""The id under which that is kept among the subscriptions of a client; none of its own can be called so."""

COLUMNS: Final = ("time", "offset", "client", "kind", "lat", "lon", "detail")
REPORT_COLUMNS: Final = ("time", "offset", "client", "lat", "lon")
OTHER_COLUMNS: Final = ("time", "offset", "client", "kind", "detail")

_NEEDED: Final = {
    "events": ("event", "time", "topic", "lat", "lon"),
    "reports": ("time", "client", "lat", "lon"),
    "subscriptions": ("time", "client", "subscription", "action", "topic_filter", "radius"),
    "contexts": ("time", "client", "name", "attributes"),
    "clients": ("time", "client", "state"),
}


@dataclass(frozen=True, eq=False, slots=True)
class Changes:
    """What changes, as frames of ``COLUMNS`` and ``name``; ``None`` where there is no table.

    Reports, which are many, have ``REPORT_COLUMNS`` only: all numbers, so that they are aggregated without objects.
    """

    reports: DataFrame
    subscriptions: DataFrame
    contexts: DataFrame | None
    ended: DataFrame | None
    """Sessions that are over, with all that was known of the client."""
    ordered: bool
    """Whether some table has journal offsets, which decide between equal times."""

    def others(self) -> list[DataFrame]:
        """All but the reports: few, next to them."""
        frames = (self.subscriptions, self.contexts, self.ended)
        return [frame for frame in frames if frame is not None]


def check_columns(table: str, frame: DataFrame) -> None:
    missing = [name for name in _NEEDED[table] if name not in frame.columns]
    if missing:
        raise InvalidRecord(f"the frame of {table} has no column {missing[0]!r}; it has {', '.join(frame.columns)}")


def changes_of(
    reports: DataFrame, subscriptions: DataFrame, contexts: DataFrame | None, clients: DataFrame | None
) -> Changes:
    """The tables in the common form."""
    from pyspark.sql import functions as F

    given = {"reports": reports, "subscriptions": subscriptions, "contexts": contexts, "clients": clients}
    for name, frame in given.items():
        if frame is not None:
            check_columns(name, frame)
    nowhere = F.lit(None).cast("double")
    nothing = F.lit(None).cast("string")
    ended = [] if contexts is None else [contexts.where(_is_end())]
    # A broker that was killed had no time to record the end of the session before.
    ended += [] if clients is None else [clients.where(F.col("state") == "joined")]
    held = [
        _common(
            subscriptions, SUBSCRIPTION, nowhere, nowhere, F.col("subscription"), _subscription_detail(subscriptions)
        )
    ]
    if clients is not None:
        said = clients.where(F.col("state").isin(*ACCEPTANCE))
        held.append(_common(said, SUBSCRIPTION, nowhere, nowhere, F.lit(ACCEPTING), _acceptance_detail()))
    return Changes(
        reports=_common(reports, REPORT, F.col("lat"), F.col("lon"), nothing, nothing).select(*REPORT_COLUMNS),
        subscriptions=union(held),
        contexts=None
        if contexts is None
        else _common(
            contexts.where(~_is_end()),
            CONTEXT,
            nowhere,
            nowhere,
            F.col("name"),
            F.to_json(F.struct("name", "attributes")),
        ),
        ended=None
        if not ended
        else union([_common(frame, ENDED, nowhere, nowhere, nothing, nothing) for frame in ended]),
        ordered=any(frame is not None and "offset" in frame.columns for frame in given.values()),
    )


def _is_end() -> Column:
    """Whether a row of contexts says that the session of the client is over: as in the broker's journal, it has no name."""
    from pyspark.sql import functions as F

    return (F.col("name") == IMPLICIT_CONTEXT) & F.col("attributes").isNull()


def union(frames: list[DataFrame]) -> DataFrame:
    return reduce(lambda one, other: one.unionByName(other), frames)


def in_common_form(reports: DataFrame) -> DataFrame:
    """Reports with the columns that they share with all other changes."""
    from pyspark.sql import functions as F

    return reports.withColumns({"kind": F.lit(REPORT).cast("tinyint"), "detail": F.lit(None).cast("string")})


def optional(frame: DataFrame, name: str, kind: str) -> Column:
    """A column that older tables do not have."""
    from pyspark.sql import functions as F

    return F.col(name) if name in frame.columns else F.lit(None).cast(kind)


def micros(frame: DataFrame, name: str) -> Column:
    """An instant as microseconds; null stays null."""
    from pyspark.sql import functions as F

    return F.unix_micros(optional(frame, name, "timestamp"))


def _common(frame: DataFrame, kind: int, lat: Column, lon: Column, name: Column, detail: Column) -> DataFrame:
    from pyspark.sql import functions as F

    return frame.where(_are_there("client", "time")).select(
        F.unix_micros("time").alias("time"),
        optional(frame, "offset", "bigint").alias("offset"),
        F.col("client"),
        F.lit(kind).cast("tinyint").alias("kind"),
        lat.alias("lat"),
        lon.alias("lon"),
        name.alias("name"),
        detail.alias("detail"),
    )


def _are_there(*names: str) -> Column:
    """Without these a row says nothing; further on it would count for somebody else, or for another topic."""
    from pyspark.sql import functions as F

    return reduce(operator.and_, (F.col(name).isNotNull() for name in names))


def _subscription_detail(frame: DataFrame) -> Column:
    """Everything that makes a subscription; of an unsubscription, only its id."""
    from pyspark.sql import functions as F

    held = F.struct(
        F.col("subscription"),
        F.col("topic_filter"),
        F.col("radius"),
        optional(frame, "area", "string").alias("area"),
        optional(frame, "condition", "string").alias("condition"),
        micros(frame, "frame_since").alias("frame_since"),
        micros(frame, "frame_until").alias("frame_until"),
        F.when(optional(frame, "no_local", "bigint") == 1, F.lit(True)).alias("no_local"),
    )
    return F.when(F.col("action") == "subscribed", F.to_json(held)).otherwise(F.to_json(F.struct("subscription")))


def _acceptance_detail() -> Column:
    """Like a subscription to everything, which then is for what is addressed to the client only; or the end of it."""
    from pyspark.sql import functions as F

    accepting = F.to_json(F.struct(F.lit(ACCEPTING).alias("subscription"), F.lit("#").alias("topic_filter")))
    return F.when(F.col("state") == ACCEPTANCE[0], accepting).otherwise(
        F.to_json(F.struct(F.lit(ACCEPTING).alias("subscription")))
    )


# Events

_RARE: Final = ("reach", "reach_area", "addressing", "attributes", "tags", "publisher")
"""Columns of events that most have nothing in."""


def with_needed(events: DataFrame, subscriptions: DataFrame) -> DataFrame:
    """Events with their publisher only if there may be subscriptions that are not for the client's own ones: it costs."""
    return events if "no_local" in subscriptions.columns else events.drop("publisher")


def is_rich(events: DataFrame) -> bool:
    """Whether events may say more than their topic."""
    return any(name in events.columns for name in _RARE)


def event_rows(events: DataFrame) -> DataFrame:
    """Events with what a matcher needs of them; ``detail`` is the topic, or JSON if any of them may say more."""
    from pyspark.sql import functions as F

    rare = [name for name in _RARE if name in events.columns]
    detail = F.to_json(F.struct("topic", *rare)) if rare else F.col("topic")
    events = events.where(_are_there("event", "time", "topic"))
    return events.select("event", micros(events, "time").alias("time"), "lat", "lon", detail.alias("detail"))


def type_of(frame: DataFrame, name: str) -> str:
    return frame.schema[name].dataType.simpleString()
