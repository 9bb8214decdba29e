"""Recall and precision by place: what the broker has recorded, against what the witness knows."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from nearcast.cli.demo.analysis import JUDGED_CELL, by_place
from nearcast.cli.demo.analyst import Judgement
from nearcast.cli.demo.places import point_at
from nearcast.cli.demo.witness import Witness

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)


def test_copies_are_judged_by_place_under_whatever_names_the_broker_records_people(spark: "SparkSession") -> None:
    here, there = point_at(10.0, 10.0), point_at(10.0 + 3 * JUDGED_CELL, 10.0)
    said = [  # id, who says it, where, whom it was sent to; by virtual identities
        ("talk-1-1-1", "identity-of-1", here, ["identity-of-2", "identity-of-3"]),
        ("talk-1-2-1", "identity-of-2", there, []),
        ("talk-1-3-1", "identity-of-3", here, ["identity-of-1", "identity-of-2", "of somebody who says nothing"]),
        ("jam-1-1", "identity-of-control", here, ["identity-of-1"]),
    ]
    rows = [(event, NOON, "city/talk", who, place.lat, place.lon, None, to) for event, who, place, to in said]
    columns = "event string, time timestamp, topic string, publisher string, lat double, lon double, workload string, receivers array<string>"
    truth = [("talk-1-1-1", ["1-2"]), ("talk-1-2-1", ["1-1"]), ("talk-1-3-1", ["1-1", "1-2", "1-9"])]
    found = by_place(
        spark.createDataFrame(rows, columns), spark.createDataFrame(truth, "event string, receivers array<string>")
    )
    judged = {(row["column"], row["row"]): (row["due"], row["notified"], row["correct"]) for row in found.collect()}
    assert judged == {(0, 0): (3, 4, 3), (3, 0): (1, 0, 0)}


def test_what_was_due_is_known_as_soon_as_it_has_come_or_is_lost() -> None:
    now = 0.0
    witness = Witness(lambda: now)
    for person, east in ((1, 0.0), (2, 50.0), (3, 80.0), (4, 500.0)):
        witness.confirm(witness.reports(person, east, 0.0))
        witness.listens(person)
    now = 1.0
    witness.published(witness.publishes("event", 1, 0.0, 0.0))
    witness.gets(2, "event")
    assert dict(witness.truth()) == {}, "somebody may still get it"
    now = 100.0
    witness.give_up()
    assert dict(witness.truth()) == {"event": {2, 3}}


def test_a_judgement_of_nothing_is_no_failure() -> None:
    assert (Judgement(0, 0, 0).recall, Judgement(0, 0, 0).precision) == (1.0, 1.0)
    assert (Judgement(4, 8, 2).recall, Judgement(4, 8, 2).precision) == (0.5, 0.25)
