"""``match`` names exactly the receivers that ``model.delivery`` defines, however the work is cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.pipeline.matching.worlds import Recording, found_worlds

from nearcast.pipeline.matching import MatchSettings, Strategy, match

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WORLDS = 60


@pytest.fixture(scope="module")
def made() -> Recording:
    found = found_worlds(WORLDS)
    assert sum(map(len, found.expected.values())) > WORLDS, "events without receivers would prove nothing"
    return found


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
def test_every_answer_is_that_of_the_definition(spark: SparkSession, way: MatchSettings, made: Recording) -> None:
    assert received(match(**made.frames(spark), settings=way)) == made.expected
