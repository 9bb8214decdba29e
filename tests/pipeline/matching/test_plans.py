"""How the work is cut: chosen from what the frames are like, said in words, and without a Python call per row."""

from __future__ import annotations

import contextlib
import io
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as F
from tests.pipeline.frames import BEGINNING, frame

from nearcast.errors import HistoryNeeded, InvalidRecord, InvalidSettings
from nearcast.pipeline.matching import MatchSettings, Strategy, match, plan_match
from nearcast.pipeline.matching.blocks import Blocks, Cells, cut_into_blocks
from nearcast.pipeline.matching.changes import changes_of
from nearcast.pipeline.streaming.match import stream_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CLIENTS = 60
CHOICES = [Strategy.BROADCAST, Strategy.SLICES, Strategy.BLOCKS]


def instants(seconds: list[float]) -> pa.Array:
    return pa.array([BEGINNING + round(second * 1e6) for second in seconds], pa.timestamp("us", tz="UTC"))


def crowd(spark: SparkSession, *, walking: bool = False) -> tuple[DataFrame, DataFrame, DataFrame]:
    """Clients in a row of a kilometre, each with a circle of 100 m; an event at each of them, ten seconds apart."""
    steps = range(3) if walking else range(1)
    numbers = list(range(CLIENTS))
    lon = [8.0 + number * 0.0014 for number in numbers]
    reports = {
        "time": instants([-1.0 + 200 * step for step in steps for _ in numbers]),
        "client": numbers * len(steps),
        "lat": [50.0] * CLIENTS * len(steps),
        "lon": [place + 0.002 * step for step in steps for place in lon],
    }
    subscriptions = {
        "time": instants([-1.0] * CLIENTS),
        "client": numbers,
        "subscription": [""] * CLIENTS,
        "action": ["subscribed"] * CLIENTS,
        "topic_filter": ["#"] * CLIENTS,
        "radius": [100.0] * CLIENTS,
    }
    events = {
        "event": [1000 + number for number in numbers],
        "time": instants([10.0 * number for number in numbers]),
        "topic": ["a/b"] * CLIENTS,
        "lat": [50.0] * CLIENTS,
        "lon": lon,
    }
    return frame(spark, events), frame(spark, reports), frame(spark, subscriptions)


def shown(found: DataFrame) -> str:
    """The physical plan."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        found.explain("formatted")
    return text.getvalue()


@pytest.mark.parametrize("strategy", CHOICES)
def test_no_plan_calls_python_for_a_row_or_multiplies_tables(spark: SparkSession, strategy: Strategy) -> None:
    walking = strategy is not Strategy.BROADCAST
    found = match(*crowd(spark, walking=walking), settings=MatchSettings(strategy=strategy, slices=2, blocks=3))
    plan = shown(found)
    assert "MapInArrow" in plan
    for forbidden in ("CartesianProduct", "BroadcastNestedLoopJoin", "BatchEvalPython", "ArrowEvalPython"):
        assert forbidden not in plan


def with_holes(frame: DataFrame, *names: str) -> DataFrame:
    """All rows again without each of these values."""
    holes = (frame.withColumn(name, F.lit(None).cast(frame.schema[name].dataType)) for name in names)
    return reduce(lambda one, other: one.unionByName(other), holes, frame)


@pytest.mark.parametrize("walking", [False, True], ids=["broadcast", "slices"])
def test_rows_that_lack_what_makes_them_one_are_left_out(spark: SparkSession, walking: bool) -> None:
    events, *changes = crowd(spark, walking=walking)
    torn = with_holes(events, "event", "time", "topic"), *(with_holes(each, "client", "time") for each in changes)
    rows = match(*torn, settings=MatchSettings(slices=2 if walking else None)).collect()
    found = {row.event: sorted(row.receivers) for row in rows}
    assert len(rows) == len(found) == CLIENTS
    assert (found[1010], found[1030]) == ([10], [28, 29] if walking else [30])
    if walking:
        assert stream_rows(*torn).count() == sum(frame.count() for frame in (events, *changes))


def test_where_nothing_moves_events_stay_where_they_are(spark: SparkSession) -> None:
    found = match(*crowd(spark))
    assert "Exchange" not in shown(found)
    assert {row.event: sorted(row.receivers) for row in found.collect()}[1030] == [30]
    assert found.dtypes == [("event", "bigint"), ("time", "timestamp"), ("receivers", "array<bigint>")]


@pytest.mark.parametrize(
    "settings", [MatchSettings(slices=1), MatchSettings(slices=5), MatchSettings(strategy=Strategy.BLOCKS)]
)
def test_where_clients_move_an_event_meets_them_as_of_its_time(spark: SparkSession, settings: MatchSettings) -> None:
    found = {row.event: row.receivers for row in match(*crowd(spark, walking=True), settings=settings).collect()}
    assert found[1010] == [10]  # at 100 s, before the first step
    assert sorted(found[1030]) == [28, 29]  # at 300 s, when all have gone 143 m to the east
    assert len(found) == CLIENTS


def test_reports_are_read_once_although_their_slice_and_the_later_ones_need_them(spark: SparkSession) -> None:
    found = match(*crowd(spark, walking=True), settings=MatchSettings(slices=2))
    assert len(found.collect()) == CLIENTS
    assert "ReusedExchange" in shown(found)


def test_a_plan_says_what_it_does_and_why(spark: SparkSession) -> None:
    events, reports, subscriptions = crowd(spark)
    plan = plan_match(events, changes_of(reports, subscriptions, None, None))
    assert plan.strategy is Strategy.BROADCAST
    assert "match 60 events over 590.0 s, 0 reports" in plan.explain()
    assert "strategy: broadcast (nothing changes" in plan.explain()


def test_more_state_than_a_worker_should_hold_is_cut_into_blocks(spark: SparkSession) -> None:
    events, reports, subscriptions = crowd(spark)
    plan = plan_match(
        events, changes_of(reports, subscriptions, None, None), MatchSettings(broadcast_rows=50, parallelism=2)
    )
    assert plan.strategy is Strategy.BLOCKS
    assert plan.blocks is not None
    assert "blocks of" in plan.explain()


def test_a_hot_cell_is_dealt_to_several_tasks_and_all_blocks_cost_about_the_same() -> None:
    cells = Cells.over(49.0, 8.0, 50.0, 9.0, 400)
    costs = np.random.default_rng(1).uniform(0.5, 1.5, cells.rows * cells.columns)
    costs[[17, 40, 41]] = 100.0, 60.0, 80.0
    blocks = cut_into_blocks(cells, costs, np.zeros_like(costs), 16)
    load = loads(blocks, costs, np.zeros_like(costs))
    assert blocks.parts[17] > 1
    assert load.max() < 1.2 * np.median(load)


def test_what_every_part_has_to_know_counts_for_each_of_them() -> None:
    cells = Cells.over(49.0, 8.0, 50.0, 9.0, 400)
    events = np.ones(cells.rows * cells.columns)
    clients = np.zeros_like(events)
    events[17], clients[17] = 100.0, 30.0
    blocks = cut_into_blocks(cells, events, clients, 10)
    load = loads(blocks, events, clients)
    assert blocks.parts[17] > 1
    assert load.max() < 1.2 * np.median(load)


@given(
    st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6)), min_size=1, max_size=64),
    st.integers(1, 40),
)
def test_blocks_are_as_many_as_asked_for_and_none_is_much_dearer_than_it_must_be(
    costs: list[tuple[float, float]], count: int
) -> None:
    cells = Cells.over(49.0, 8.0, 50.0, 9.0, 40)
    events, clients = np.resize(np.array(costs), (cells.rows * cells.columns, 2)).T
    blocks = cut_into_blocks(cells, events, clients, count)
    assert 1 <= blocks.count <= count
    ends = np.array(blocks.first) + blocks.parts
    assert (np.array(blocks.first) >= 0).all()
    assert (ends <= blocks.count).all()
    # Nobody can do with less than an equal share, nor than the clients of the dearest cell.  Two blocks in a row hold more than the
    # bound together, and a part at least half of it: twice as much is enough for each of these needs.
    least = max((events.sum() + clients.sum()) / count, float(clients.max()))
    assert loads(blocks, events, clients).max() <= 4 * least + 1e-6


def loads(blocks: Blocks, events: npt.NDArray[np.float64], clients: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """What each block and part costs."""
    load = np.zeros(blocks.count)
    for dealt, known, first, parts in zip(events, clients, blocks.first, blocks.parts, strict=True):
        load[first : first + parts] += dealt / parts + known
    return load


def test_an_event_that_speaks_of_other_times_is_refused(spark: SparkSession) -> None:
    events, reports, subscriptions = crowd(spark)
    with pytest.raises(HistoryNeeded, match="60 events speak of other times"):
        match(events.withColumn("timing", F.lit("overlaps(time, '-10m', 'now')")), reports, subscriptions)


def test_a_frame_without_a_needed_column_is_refused(spark: SparkSession) -> None:
    events, reports, subscriptions = crowd(spark)
    with pytest.raises(InvalidRecord, match="the frame of reports has no column 'lat'"):
        match(events, reports.drop("lat"), subscriptions)


def test_sizes_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InvalidSettings, match="slices must be positive"):
        MatchSettings(slices=0)


def test_no_events_have_no_rows(spark: SparkSession) -> None:
    events, reports, subscriptions = crowd(spark)
    assert match(events.where("event < 0"), reports, subscriptions).count() == 0
