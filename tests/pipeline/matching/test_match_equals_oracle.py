"""``match`` names exactly the receivers that ``model.delivery`` defines, however the work is cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.pipeline.matching.worlds import recording, scripts

from nearcast.pipeline.matching import MatchSettings, Strategy, match

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# Shrinking would ask Spark hundreds of times.
in_one_go = settings(max_examples=2, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate])


def received(found: DataFrame) -> dict[str, set[str]]:
    rows = found.collect()
    for row in rows:
        assert len(row.receivers) == len(set(row.receivers)), "somebody is named twice"
    answers = {row.event: set(row.receivers) for row in rows}
    assert len(answers) == len(rows), "an event has two rows"
    return answers


WAYS = (
    MatchSettings(strategy=Strategy.SLICES, slices=1, parallelism=2),
    MatchSettings(strategy=Strategy.SLICES, slices=7, parallelism=2),
    MatchSettings(strategy=Strategy.SLICES, slices=3, parallelism=6, group_rows=20),  # several carriers, two parts
    MatchSettings(strategy=Strategy.BLOCKS, slices=1, blocks=3, cells=200),
    MatchSettings(strategy=Strategy.BLOCKS, slices=3, blocks=5, cells=30),
)


@pytest.mark.parametrize(
    "way", WAYS, ids=lambda way: f"{way.strategy} {way.slices} x {way.blocks or way.parallelism // 2}"
)
@given(several=st.lists(scripts, min_size=20, max_size=30))
@in_one_go
def test_every_answer_is_that_of_the_definition(
    spark: SparkSession, way: MatchSettings, several: list[list[Any]]
) -> None:
    made = recording(several)
    assert received(match(**made.frames(spark), settings=way)) == made.expected
