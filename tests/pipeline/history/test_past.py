"""Many subscriptions into the past at once get what the definition of delivery says, first n of x, and more on request."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.pipeline.history.recorded import Asked, Case, archive_of, cases, questions_of

from nearcast.model.delivery import delivery
from nearcast.model.event import Event
from nearcast.model.history import Held, History
from nearcast.pipeline.history.past import past

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = 60


def expected(case: Case, asked: Asked) -> list[Event]:
    """What was published before, and is delivered at the moment of asking; oldest first."""
    alone = History()
    known = case.history.client(asked.client)
    alone._clients[asked.client] = replace(known, held=[Held(asked.subscription, asked.at)])
    alone._unpublished = case.history._unpublished
    before = [event for event in case.history.events() if event.published < asked.at]
    found = [(event, delivery(alone, event, asked.client, asked.at)) for event in before]
    # What a client takes without a subscription has come when it was published, and is no answer.
    return [event for event, copy in found if copy is not None and copy.subscriptions]


def test_past_subscriptions_equal_the_oracle(spark: SparkSession) -> None:
    found = cases(CASES, temporal=False)
    asked = [(case, each) for case in found for each in case.questions]
    questions = spark.createDataFrame(questions_of([each for _, each in asked]))
    answers = past(questions, archive_of(spark, found[0])).collect()
    by_question = {(row["client"], row["subscription"]): row for row in answers}
    assert len(by_question) == len(asked) == len(answers)
    hits = own = 0
    for case, each in asked:
        row = by_question[each.client, each.subscription.id]
        wanted = [event.id for event in expected(case, each)]
        told = f"{case.number}: {each}"
        assert row["total"] == len(wanted), told
        assert [event["event"] for event in row["events"]] == wanted[: each.first], told
        assert (row["next"] is not None) == (each.first is not None and each.first < len(wanted)), told
        hits += len(wanted)
        own += len(expected(case, replace(each, subscription=replace(each.subscription, no_local=False)))) - len(wanted)
    assert hits > CASES, "questions without answers would prove nothing"
    assert own > 0, "nobody has left out what it published itself"
    ask_on(spark, found[0], [(each, expected(case, each)) for case, each in asked], by_question)


def ask_on(spark: SparkSession, case: Case, asked: list[tuple[Asked, list[Event]]], answers: dict[Any, Any]) -> None:
    """The second batches."""
    more = [(each, wanted) for each, wanted in asked if answers[each.client, each.subscription.id]["next"] is not None]
    assert more
    table = questions_of([each for each, _ in more], lambda each: answers[each.client, each.subscription.id]["next"])
    rows = past(spark.createDataFrame(table), archive_of(spark, case)).collect()
    second = {(row["client"], row["subscription"]): row for row in rows}
    for each, wanted in more:
        row = second[each.client, each.subscription.id]
        assert each.first is not None
        assert row["total"] == len(wanted)
        assert [event["event"] for event in row["events"]] == [e.id for e in wanted[each.first : 2 * each.first]]
