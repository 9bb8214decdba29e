"""Who was there: events that speak of other times than their publication, against what is known of all clients.

A temporal predicate is judged on the maximal intervals during which a client met the addressing within the reach: the whole history
of a client is needed, and compared with a few events.  So the events are sent to where histories are put together, one group of
clients at a time; and where all of them have a reach, clients that were never within one are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from pyspark.sql import functions as F

from nearcast.errors import InvalidInput
from nearcast.matching.areas import covered
from nearcast.model.area import Area
from nearcast.model.delivery import (
    accepts_without_subscription,
    exists,
    interested,
    moment_of,
    relevant_moments,
)
from nearcast.model.event import Event
from nearcast.model.geometry import circle_bounds
from nearcast.model.history import ClientHistory, History
from nearcast.model.time import Instant, TimeFrame
from nearcast.model.topic import topic_matches
from nearcast.pipeline.cells import cells_within
from nearcast.pipeline.history.archive import Archive, bucket, part, presence_and_interest, taken_back
from nearcast.pipeline.history.known import histories, with_whole_instants
from nearcast.pipeline.rows import EVENT_COLUMNS, Row, event_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

MESSAGE: Final = "message"
"""The column with the number of a message."""

_MOST_CELLS: Final = 10_000
_DIRECTION: Final = "distance_decreases"


@dataclass(frozen=True, slots=True)
class Message:
    """An event with a temporal predicate."""

    number: int
    event: Event
    gone: Instant | None
    """When it was unpublished."""

    before: Event | None
    """What its publisher said on that topic before, for those who ask whether it comes nearer."""

    def surroundings(self) -> History:
        """All that delivery asks for of other events, and of what became of this one."""
        history = History()
        for event in (self.before, self.event):
            if event is not None:
                history.published(event)
        if self.gone is not None:
            history.unpublished(self.event.id, self.gone)
        return history


def historical_receivers(archive: Archive, as_of: Instant) -> DataFrame:
    """The columns of all events with a temporal predicate that were published by ``as_of``, and ``receivers``.

    These are the clients to which each has been delivered by then, in the order of the alphabet.
    """
    import pyarrow as pa

    published = part(archive.events, TimeFrame(until=as_of + 1)).where(F.col("timing").isNotNull())
    table = taken_back(published.select(*EVENT_COLUMNS), archive.unpublished).toArrow()
    messages = gathered(table, archive)
    numbers = pa.array(range(len(table)), pa.int64())
    told = archive.events.sparkSession.createDataFrame(table.drop_columns(["gone"]).append_column(MESSAGE, numbers))
    found = (
        _found(archive, messages, as_of).groupBy(MESSAGE).agg(F.sort_array(F.collect_list("client")).alias("receivers"))
    )
    nobody = F.array().cast("array<string>")
    answered = told.join(found, MESSAGE, "left").withColumn("receivers", F.coalesce("receivers", nobody))
    return answered.drop(MESSAGE)


def gathered(table: pa.Table, archive: Archive) -> list[Message]:
    rows = with_whole_instants(table).to_pylist()
    before = _previous(rows, archive)
    return [Message(number, event_of(row), row["gone"], before.get(number)) for number, row in enumerate(rows)]


def _previous(rows: Sequence[Row], archive: Archive) -> dict[int, Event]:
    """Of each message the event before; only if somebody's interest depends on it, since all events have to be looked at."""
    import pyarrow as pa

    asking = archive.subscriptions.where(F.lower("condition").contains(_DIRECTION))
    published = [(number, row) for number, row in enumerate(rows) if row["publisher"] is not None]
    if not published or asking.isEmpty():
        return {}
    keys = pa.table(
        {
            MESSAGE: pa.array([number for number, _ in published], pa.int64()),
            "publisher": pa.array([row["publisher"] for _, row in published], pa.string()),
            "topic": pa.array([row["topic"] for _, row in published], pa.string()),
            "published": pa.array([row["time"] for _, row in published], pa.int64()).cast(pa.timestamp("us", "UTC")),
        }
    )
    frame = F.broadcast(archive.events.sparkSession.createDataFrame(keys))
    latest = max(row["time"] for row in rows)
    events = part(archive.events, TimeFrame(until=latest)).select(*EVENT_COLUMNS)
    earlier = events.join(frame, ["publisher", "topic"]).where(F.col("time") < F.col("published"))
    before = earlier.groupBy(MESSAGE).agg(F.max_by(F.struct(*EVENT_COLUMNS), "time").alias("event"))
    found = with_whole_instants(before.select(MESSAGE, "event.*").toArrow()).to_pylist()
    # Under another name: a publisher may give the same id twice, and this one is not what was unpublished.
    return {row[MESSAGE]: event_of({**row, "event": f"before {row['event']}"}) for row in found}


def _found(archive: Archive, messages: list[Message], as_of: Instant) -> DataFrame:
    """``message, client`` for each that receives."""
    told = presence_and_interest(archive, as_of + 1)
    witnesses = _witnesses(archive, messages, as_of)
    if witnesses is not None:
        told = told.join(witnesses, "client", "left_semi")
    return told.groupBy(bucket()).applyInArrow(_judging(messages, as_of), f"{MESSAGE} bigint, client string")


def _witnesses(archive: Archive, messages: Sequence[Message], as_of: Instant) -> DataFrame | None:
    """The clients that were near one of the reaches at some time; none if a message has no reach."""
    reaches = [each.event.reach for each in messages]
    boxes = [_box(reach) for reach in reaches if reach is not None]
    if len(boxes) < len(reaches):
        return None
    reports = part(archive.reports, TimeFrame(until=as_of + 1), _cells(boxes))
    near = F.lit(False)
    for box in set(boxes):
        near = near | _in_box(box)
    return reports.where(near).select("client").distinct()


Box = tuple[float, float, float, float]


def _box(area: Area) -> Box:
    """South, west, north, east of a circle that holds the area, poles and antimeridian thought of."""
    return circle_bounds(area.fixed_center(), area.bounding_radius())


def _in_box(box: Box) -> Column:
    south, west, north, east = box
    lat, lon = F.col("lat"), F.col("lon")
    beside = lon.between(west, east) if west <= east else (lon >= west) | (lon <= east)
    # 180 and -180 are one meridian, and both are written.
    return lat.between(south, north) & (beside | (F.abs(lon) == 180.0))


def _cells(boxes: Sequence[Box]) -> set[str] | None:
    cells: set[str] = set()
    for box in set(boxes):
        try:
            cells.update(cells_within(*box))
        except InvalidInput:  # it is too large
            return None
        if len(cells) > _MOST_CELLS:
            return None
    return cells


def _judging(messages: list[Message], as_of: Instant) -> Callable[[pa.Table], pa.Table]:
    def judge(told: pa.Table) -> pa.Table:
        import pyarrow as pa

        pairs = list(_receiving(told, messages, as_of))
        numbers = pa.array([number for number, _ in pairs], pa.int64())
        return pa.table({MESSAGE: numbers, "client": pa.array([client for _, client in pairs], pa.string())})

    return judge


def _receiving(told: pa.Table, messages: Sequence[Message], as_of: Instant) -> Iterator[tuple[int, str]]:
    inside = {each.number: _ever_inside(told, each.event.reach) for each in messages}
    surroundings = {each.number: each.surroundings() for each in messages}
    for client, known in histories(told):
        for message in messages:
            near = inside[message.number]
            if (near is None or client in near) and receives(
                surroundings[message.number], message.event, client, known, as_of
            ):
                yield message.number, client


def _ever_inside(told: pa.Table, reach: Area | None) -> frozenset[str] | None:
    """The clients with a report from within the reach: no others need be looked at.  None: all of them."""
    if reach is None:
        return None
    lat, lon = (told[name].fill_null(np.nan).to_numpy() for name in ("lat", "lon"))
    return frozenset(
        told["client"].take(np.flatnonzero(covered(reach, lat, np.where(lon == 180.0, -180.0, lon)))).to_pylist()
    )


def receives(history: History, event: Event, client: str, known: ClientHistory, as_of: Instant) -> bool:
    """``delivery.delivered``, of a client of which this is known."""
    # Most clients want something else altogether, and need not be looked at any closer.
    asking = [held for held in known.held if topic_matches(held.subscription.topic, event.topic)]
    accepting = event.to is not None and bool(known.accepts_addressed.changes())
    for moment in relevant_moments(history, event, known, as_of) if asking or accepting else ():
        if accepts_without_subscription(event, known, moment):
            return True
        for held in asking:
            at = moment_of(held, event, moment)
            if at is None or at > as_of or not exists(history, event, at):
                continue
            if interested(history, held, event, client, known, at):
                return True
    return False
