"""Subscriptions into the past, as they are asked: many of them, but few next to what has happened.

So they are gathered on the driver, which then knows where and when to look, and sent to wherever events are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from nearcast.errors import InvalidInput, InvalidSubscription
from nearcast.model.geometry import Point, circle_bounds
from nearcast.model.subscription import Subscription
from nearcast.model.time import Instant, TimeFrame
from nearcast.pipeline.cells import NO_CELL, cells_within
from nearcast.pipeline.history.archive import CLIENT, CONTEXT, NO_LOCAL, REPORT, Archive, presence
from nearcast.pipeline.history.known import with_whole_instants
from nearcast.pipeline.rows import point_of, subscription_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

QUESTION: Final = "question"
"""The column with the number of a question."""

_MOST_CELLS: Final = 10_000
"""Beyond, naming the cells takes longer than looking into all of them."""

Place = tuple[Instant, int, str]
"""Where an event stands in the order of the answer: time, offset (-1: none), id."""

BEFORE_ALL: Final[Place] = (-(2**63), -(2**63), "")


@dataclass(frozen=True, slots=True)
class Question:
    """One subscription into the past."""

    number: int
    client: str
    subscription: Subscription
    asked: Instant
    first: int | None
    """So many events, and no more; none: all."""

    after: Place
    """The last event that was given before."""

    position: Point | None = None
    """Where the client was when it asked."""

    @property
    def frame(self) -> TimeFrame | None:
        """The time of which it speaks: what came afterwards is not the past; none if nothing is left."""
        frame = self.subscription.frame
        until = self.asked if frame.until is None else min(frame.until, self.asked)
        return None if frame.since is not None and frame.since >= until else TimeFrame(frame.since, until)


SCHEMA: Final = (
    "client string, subscription string, topic_filter string, condition string, area string, frame_since timestamp, "
    "frame_until timestamp, asked timestamp, first int, cursor string, no_local boolean"
)


def read_questions(spark: SparkSession, path: Path) -> DataFrame:
    """The questions of a file: Parquet, or a JSON object on each line, whose instants are RFC 3339."""
    if path.suffix == ".parquet":
        return spark.read.schema(SCHEMA).parquet(str(path))
    return spark.read.schema(SCHEMA).option("mode", "FAILFAST").json(str(path))


def gathered(questions: pa.Table, archive: Archive) -> list[Question]:
    """The questions, numbered, each with where its client was; ``InvalidSubscription`` names one that cannot be read."""
    read = [_question(number, row) for number, row in enumerate(with_whole_instants(questions).to_pylist())]
    relative = [each for each in read if each.subscription.area is not None and each.subscription.area.is_relative]
    if not relative:
        return read
    found = positions(relative, archive)
    return [replace(each, position=found.get(each.number)) for each in read]


def _question(number: int, row: dict[str, Any]) -> Question:
    try:
        names = ("topic_filter", "condition", "area", "frame_since", "frame_until", "subscription")
        topic_filter, condition, area, since, until, name = (row[each] for each in names)
        subscription = subscription_of(topic_filter, condition, area, None, since, until, name, row.get(NO_LOCAL))
        first, cursor = row.get("first"), row.get("cursor")
        if first is not None and first < 1:
            raise InvalidSubscription(
                f"the first {first} of many are none; ask for one at least, or leave it null for all"
            )
        after = BEFORE_ALL if cursor is None else place_in(cursor)
    except InvalidInput as error:
        raise InvalidSubscription(
            f"the question {row['subscription']!r} of client {row['client']!r}: {error}"
        ) from None
    return Question(number, row["client"], subscription, row["asked"], first, after)


def place_in(cursor: str) -> Place:
    """The place of a cursor, which is its time, its offset and its id."""
    time, _, rest = cursor.partition(" ")
    offset, space, event = rest.partition(" ")
    if not space or not _is_whole(time) or not _is_whole(offset):
        raise InvalidSubscription(f"{cursor!r:.60} is no cursor; give the `next` of the answer before")
    return int(time), int(offset), event


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


def positions(questions: Iterable[Question], archive: Archive) -> dict[int, Point | None]:
    """Where the clients were when they asked, as far as was known."""
    import pyarrow as pa
    import pyarrow.compute as pc

    those = list(questions)
    asked = pa.table(
        {
            QUESTION: pa.array([each.number for each in those], pa.int64()),
            "client": pa.array([each.client for each in those], pa.string()),
            "asked": pc.cast(pa.array([each.asked for each in those], pa.int64()), pa.timestamp("us", "UTC")),
        }
    )
    told = presence(archive, max(each.asked for each in those) + 1)
    # Reports, and what makes them void: the end of a session and the begin of another.
    over = (F.col("kind") == CONTEXT) & (F.col("name") == "") & F.col("attributes").isNull()
    begun = (F.col("kind") == CLIENT) & (F.col("state") == "joined")
    told = told.where((F.col("kind") == REPORT) | over | begun)
    frame = F.broadcast(told.sparkSession.createDataFrame(asked))
    before = told.join(frame, "client").where(F.col("time") <= F.col("asked"))
    latest = F.max_by(F.struct("lat", "lon"), F.struct("time", F.coalesce("offset", F.lit(-1)), "kind"))
    rows = before.groupBy(QUESTION).agg(latest.alias("at")).select(QUESTION, "at.lat", "at.lon").collect()
    return {row[QUESTION]: point_of(row["lat"], row["lon"]) for row in rows}


def time_of(questions: Sequence[Question]) -> TimeFrame | None:
    """The time of which any of them speaks; none if of none."""
    frames = [frame for each in questions if (frame := each.frame) is not None]
    if not frames:
        return None
    starts = [frame.since for frame in frames]
    ends = [frame.until for frame in frames if frame.until is not None]
    since = None if None in starts else min(start for start in starts if start is not None)
    return TimeFrame(since, max(ends))


def cells_of(questions: Sequence[Question]) -> set[str] | None:
    """The coarse cells in which what they ask for may lie, with that of events without a place; none: everywhere."""
    cells = {NO_CELL}
    for each in questions:
        area = each.subscription.area
        if area is None:
            return None
        center = each.position if area.is_relative else area.fixed_center()
        if center is not None:  # else: nothing that has a place
            try:
                # The box of a circle that holds the area, poles and antimeridian thought of.
                cells.update(cells_within(*circle_bounds(center, area.bounding_radius())))
            except InvalidInput:  # it is too large
                return None
        if len(cells) > _MOST_CELLS:
            return None
    return cells
