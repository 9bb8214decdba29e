"""Messages to whoever was somewhere at some time reach those whom the definition of delivery names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.pipeline.history.recorded import archive_of, cases

from nearcast.model.delivery import delivery, receivers
from nearcast.pipeline.history.messages import historical_receivers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = 60


def same_case(client: str, event: str) -> bool:
    return client.partition(" ")[0] == event.partition(".")[0]


def test_historical_messages_equal_the_oracle(spark: SparkSession) -> None:
    found = cases(CASES, temporal=True)
    as_of = max(case.now for case in found)
    rows = historical_receivers(archive_of(spark, found[0]), as_of).collect()
    # All cases are in one archive, and topics keep them apart; but not for clients that accept whatever is addressed to them.
    answers = {row["event"]: [name for name in row["receivers"] if same_case(name, row["event"])] for row in rows}
    wanted = {
        event.id: sorted(receivers(case.history, event, as_of))
        for case in found
        for event in case.history.events()
        if event.when is not None
    }
    assert answers == wanted
    assert sum(map(len, wanted.values())) > CASES / 4, "messages without receivers would prove nothing"
    copies = [
        (event, delivery(case.history, event, client, as_of))
        for case in found
        for event in case.history.events()
        for client in receivers(case.history, event, as_of)
    ]
    assert any(copy is not None and not copy.subscriptions for _, copy in copies), (
        "nobody accepts without a subscription"
    )
