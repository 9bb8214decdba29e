"""Answers go back to the broker, which delivers them: the first n of x, and more on request."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.pipeline.history.recorded import Asked, questions_of
from tests.pipeline.source.live_broker import LiveBroker, live_broker
from tests.pipeline.source.test_writer import Client, hand_in

from nearcast.journal import EventEntry, ReportEntry
from nearcast.model.area import Circle
from nearcast.model.subscription import Subscription
from nearcast.model.time import MICROSECONDS
from nearcast.pipeline.history.archive import Archive
from nearcast.pipeline.history.past import notifications, past
from nearcast.pipeline.source import register

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START = 1_790_000_000 * MICROSECONDS
ANSWERS = "the question of ada"


def archive_of(spark: SparkSession, broker: LiveBroker) -> Archive:
    given = {"broker": broker.url, "lake": str(broker.lake)}
    return Archive.of(lambda name: spark.read.format("nearcast").options(table=name, **given).load())


def test_who_asks_what_happened_around_it_is_told_in_batches(spark: SparkSession, tmp_path: Path) -> None:
    register(spark)
    with live_broker(tmp_path / "data") as broker:
        ada = Client(broker, "ada")
        near = [
            EventEntry(f"e{n}", "city/jam", START + n, b"%d" % n, lat=49.8728, lon=8.6512 + n * 1e-5) for n in range(5)
        ]
        far = EventEntry("far", "city/jam", START + 2, b"far", lat=50.0, lon=8.0)
        broker.written(*near, far, ReportEntry(START + 10, ada.identity, 49.8729, 8.6513))
        archive = archive_of(spark, broker)
        asked = Asked(ada.identity, Subscription("city/#", area=Circle(500.0), id="city/#"), START + 20, 3)

        def answers(cursor: str | None) -> DataFrame:
            return past(spark.createDataFrame(questions_of([asked], lambda _: cursor)), archive).cache()

        first = answers(None)
        for _ in range(2):  # as a task that is done again would
            hand_in(notifications(first), broker, query=ANSWERS)
        assert ada.heard(3) == [(b"0", None), (b"1", None), (b"2", "3 of 5")]
        (row,) = first.collect()
        assert (row["total"], row["given"]) == (5, 3)
        second = answers(row["next"])
        hand_in(notifications(second), broker, query=ANSWERS)
        assert ada.heard(2) == [(b"3", None), (b"4", "5 of 5")]
        assert second.collect()[0]["next"] is None
        for frame in (first, second):
            frame.unpersist()
        ada.leave()
