"""The pipeline of the demo: an embedded Spark in a process of its own, beside the broker, which it reads and writes through the data source.

Questions come and answers go as lines of JSON.  Whoever starts it says on the command line where it may put its files.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from nearcast.cli.demo.city import HASTE, KINDS
from nearcast.cli.demo.places import CENTER
from nearcast.errors import NearcastError
from nearcast.metrics.maps import Grid
from nearcast.model.time import MICROSECONDS, to_datetime
from nearcast.runtime.live.clock import LiveClock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COURTESY: Final = 5
"""Of 19: by so much the broker and people's phones go first."""

WINDOW: Final = 4.0
"""Seconds over which density is taken."""

LATELY: Final = 8.0
"""Seconds from which attraction points are found."""

CELL: Final = 100.0
POINT_CELL: Final = 120.0
JUDGED_CELL: Final = 50.0
"""Metres."""

ON_FOOT: Final = 1.3 * HASTE * next(kind.speed for kind in KINDS if kind.name == "walker")
"""Metres per second: whoever is faster does not linger.  (In this city nobody ever stands still.)"""

SPEAKER: Final = r"^talk-(\d+-\d+)-"
"""Of the id of something said: day and number of who says it."""

LAST_MINUTES: Final = 600 * MICROSECONDS

SETTINGS: Final = {
    "spark.driver.memory": "768m",
    # There is little data, and each task is a walk through Python.
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
}


class Analysis:
    """What can be asked."""

    def __init__(self, spark: SparkSession, broker: str, lake: str) -> None:
        self._spark: Final = spark
        self._broker: Final = broker
        self._where: Final = {"broker": broker, "lake": lake}
        self._tables: Final[dict[str, DataFrame]] = {}
        self._points: DataFrame | None = None
        self._since = 0
        self._clock: Final = LiveClock()

    def observe(self, people: int) -> dict[str, Any]:
        """The density of the last window, and where people linger; so many there are in all at the most."""
        from pyspark.sql import functions as F

        from nearcast.pipeline.observation.attraction import Lingering, attraction_points
        from nearcast.pipeline.observation.density import density
        from nearcast.pipeline.plans import over

        now = self._clock.now()
        self._since = now - round(LATELY * MICROSECONDS)
        # Also not after now: while Spark gets going, people report on.
        recent = (F.col("time") >= F.lit(to_datetime(self._since))) & (F.col("time") < F.lit(to_datetime(now)))
        reports = self._table("reports").where(recent).where("lat is not null").cache()
        cells = over(density(reports, Grid(CENTER, CELL), WINDOW), now)
        newest = F.max(F.struct("since", "clients", "lat", "lon")).alias("newest")
        densest = cells.agg(newest).select("newest.clients", "newest.lat", "newest.lon").first()
        least = people / 100
        crowd = Lingering(least, ON_FOOT, LATELY)
        found = attraction_points(reports, Grid(CENTER, POINT_CELL), crowd, LATELY)
        rows = found.where(F.col("clients") >= least).toArrow()
        self._points = self._spark.createDataFrame(rows)
        reports.unpersist()
        assert densest is not None, "an aggregate is one row"
        seen = densest.asDict() if densest["clients"] is not None else None
        return {"densest": seen, "points": rows.to_pylist()}

    def judge(self, truth: str, out: str) -> dict[str, Any]:
        """Recall and precision of all that was said, by place: for the dashboard, which finds them in that folder.

        ``truth`` is a file of JSON lines: ``by_place``.
        """
        from pyspark.sql import functions as F

        from nearcast.pipeline.tables.store import put_in_place

        known = self._spark.read.schema("event string, receivers array<string>").json(truth)
        judged = by_place(self._table("events"), known).cache()
        put_in_place(judged.coalesce(1), Path(out))
        total = judged.agg(*(F.sum(name).alias(name) for name in ("due", "notified", "correct"))).first()
        judged.unpersist()
        assert total is not None, "an aggregate is one row"
        return {name: int(value or 0) for name, value in total.asDict().items()}

    def plan(self, scheme: str, elsewhere: str) -> dict[str, Any]:
        """Have the broker run that scheme at the points that were found last."""
        from nearcast.pipeline.plans import orders_at_points

        assert self._points is not None, "observe first"
        ordered = orders_at_points(self._points, self._since, scheme, elsewhere).cache()
        row = ordered.first()
        assert row is not None, "there are points"
        self._write(ordered, "plans")
        ordered.unpersist()
        return row.asDict(recursive=True)

    def carried_out(self, plan: str) -> dict[str, Any]:
        """What the broker has recorded of a plan: the people that it brought to their region's scheme."""
        moved = self._table("transitions").where(f"plan = '{plan}' and host <> 'broker'")
        return {"people": moved.select("host").distinct().count()}

    def answer(self, question: str, asked: int, first: int, cursor: str | None) -> dict[str, Any]:
        """What a client has subscribed to under that id, of the minutes before: the broker delivers the first, or next, so many events."""
        from pyspark.sql import functions as F

        from nearcast.pipeline.history.archive import Archive
        from nearcast.pipeline.history.past import notifications, past

        this = (F.col("subscription") == question) & (F.col("action") == "subscribed")
        asking = (
            self._table("subscriptions")
            .where(this)
            .select(
                *("client", "subscription", "topic_filter", "condition", "area"),
                F.lit(to_datetime(asked - LAST_MINUTES)).alias("frame_since"),
                F.lit(None).cast("timestamp").alias("frame_until"),
                F.lit(to_datetime(asked)).alias("asked"),
                F.lit(first).alias("first"),
                F.lit(cursor).cast("string").alias("cursor"),
            )
        )
        answered = past(asking, Archive.of(self._table)).cache()
        self._write(notifications(answered), "notifications")
        (row,) = answered.select("total", "given", "next").collect()
        answered.unpersist()
        return row.asDict()

    def _table(self, name: str) -> DataFrame:
        """What is in it is looked up for each query; what columns it has, once."""
        if name not in self._tables:
            self._tables[name] = self._spark.read.format("nearcast").options(table=name, **self._where).load()
        return self._tables[name]

    def _write(self, frame: DataFrame, table: str) -> None:
        frame.write.format("nearcast").options(table=table, broker=self._broker).mode("append").save()


def by_place(events: DataFrame, truth: DataFrame) -> DataFrame:
    """Recall and precision by cell: ``truth`` says of an ``event`` who had to get it, and the broker has recorded whom it sent it to.

    Copies that a client's last check drops are among those.  The broker records people under virtual identities, the demo knows them by
    day and number, as in the id of what they say: so everybody is judged who has said something.
    """
    from pyspark.sql import functions as F

    from nearcast.pipeline.observation.audit import audit_by_place

    speaker = F.regexp_extract("event", SPEAKER, 1)
    people = (
        events.select(F.col("publisher").alias("identity"), speaker.alias("client")).where("client <> ''").distinct()
    )
    due = (
        truth.select("event", F.explode("receivers").alias("client"))
        .join(people, "client")
        .groupBy("event")
        .agg(F.collect_list("client").alias("receivers"))
    )
    nobody = F.array().cast("array<string>")
    judged = events.join(truth.select("event"), "event", "left_semi").drop("receivers").join(due, "event", "left")
    sent = (
        events.join(truth.select("event"), "event", "left_semi")
        .select("event", F.explode("receivers").alias("identity"))
        .join(people, "identity")
        .select("event", "client", F.lit("delivered").alias("outcome"), F.lit(0).alias("delay"))
    )
    return audit_by_place(
        judged.withColumn("receivers", F.coalesce("receivers", nobody)), sent, Grid(CENTER, JUDGED_CELL)
    )


def main() -> None:
    """Serve until nothing more is asked; the first line says where the broker is."""
    # The JVM, and whatever is loaded into it, may print what it likes: that is no answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    os.nice(COURTESY)
    folder = Path(sys.argv[1])
    try:
        spark = _session(folder)
    except NearcastError as error:
        _say(answers, {"error": str(error)})
        return
    _say(answers, {"ready": True})
    analysis: Analysis | None = None
    for line in sys.stdin:
        asked = json.loads(line)
        if analysis is None:
            analysis = Analysis(spark, **asked)
        else:
            _say(answers, _answered(getattr(analysis, asked.pop("do")), asked))
    spark.stop()


def _session(folder: Path) -> SparkSession:
    from nearcast.pipeline.session import FAST_START, spark_session
    from nearcast.pipeline.source import register

    java = f"{FAST_START} -XX:-UsePerfData -Djava.io.tmpdir={folder}"
    places = {"spark.local.dir": str(folder), "spark.sql.warehouse.dir": str(folder / "warehouse")}
    settings = {**SETTINGS, **places, "spark.driver.extraJavaOptions": java}
    spark = spark_session("nearcast demo", master="local[2]", settings=settings)
    register(spark)
    return spark


def _answered(act: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    from nearcast.pipeline.session import spark_failures

    try:
        with spark_failures():
            return {"found": act(**given)}
    except NearcastError as error:
        return {"error": str(error)}


def _say(answers: TextIO, answer: Mapping[str, Any]) -> None:
    print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
