"""Messages to whoever was somewhere at some time reach those whom the definition of delivery names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.pipeline.history.recorded import archive_of, cases

from nearcast.model.delivery import receivers
from nearcast.pipeline.history.messages import historical_receivers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = 60


def test_historical_messages_equal_the_oracle(spark: SparkSession) -> None:
    found = cases(CASES, temporal=True)
    as_of = max(case.now for case in found)
    rows = historical_receivers(archive_of(spark, found[0]), as_of).collect()
    answers = {row["event"]: row["receivers"] for row in rows}
    wanted = {
        event.id: sorted(receivers(case.history, event, as_of))
        for case in found
        for event in case.history.events()
        if event.when is not None
    }
    assert answers == wanted
    assert sum(map(len, wanted.values())) > CASES / 4, "messages without receivers would prove nothing"
