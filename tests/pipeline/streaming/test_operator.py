"""Batch by batch, in whatever order rows come, the operator answers as ``model.delivery`` defines."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F
from pyspark.sql.streaming.tws_tester import TwsTester
from tests.pipeline.matching.worlds import Recording, found_worlds

from nearcast.errors import InvalidSettings
from nearcast.model.time import MICROSECONDS
from nearcast.pipeline.matching.changes import ENDED
from nearcast.pipeline.streaming import check_layout, state, store
from nearcast.pipeline.streaming.match import part_keys, stream_rows
from nearcast.pipeline.streaming.operator import CLOCK, StreamMatching
from nearcast.pipeline.streaming.packing import DEAL, Packing, unpacked
from nearcast.pipeline.streaming.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORLDS = 40
few = settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
PART = 0


def matching(delay: float = 0.0, forget_after: float | None = None, *, by_clock: bool = False) -> StreamMatching:
    forgotten = None if forget_after is None else round(forget_after * MICROSECONDS)
    return StreamMatching(
        parts=1,
        rich=True,
        delay=round(delay * MICROSECONDS),
        forget_after=forgotten,
        client="string",
        event="string",
        by_clock=by_clock,
    )


def rows_of(made: Recording, spark: SparkSession) -> pd.DataFrame:
    frames = made.frames(spark)
    rows = stream_rows(
        frames["events"], frames["reports"], frames["subscriptions"], frames["contexts"], frames["clients"]
    )
    return rows.toPandas()


@cache
def _random(spark: SparkSession) -> tuple[Recording, pd.DataFrame]:
    """Of Spark only once: it takes longer to bring rows into their form than the operator to answer them."""
    made = found_worlds(WORLDS)
    return made, rows_of(made, spark)


@pytest.fixture
def made(spark: SparkSession) -> Recording:
    return _random(spark)[0]


@pytest.fixture
def rows(spark: SparkSession) -> pd.DataFrame:
    """Those of ``made``."""
    return _random(spark)[1].copy()


def clock(rows: pd.DataFrame, instant: int) -> pd.DataFrame:
    """A row that says nothing but the time."""
    row = rows.iloc[[0]].copy()
    row["kind"], row["time"] = np.int8(CLOCK), instant
    return row


class FedPart:
    """A part of a stream, batch by batch: rows go in and answers come out packed, as Spark would have it."""

    def __init__(self, processor: StreamMatching) -> None:
        self._tester = TwsTester(processor)

    def batch(self, rows: pd.DataFrame) -> pd.DataFrame:
        table = pa.Table.from_pandas(rows, preserve_index=False)
        packed = [each.to_pandas() for each in Packing((PART,))(table.combine_chunks().to_batches())]
        found = self._tester.testInPandas(PART, pd.concat(packed).drop(columns="part"))
        tables = [pa.Table.from_batches(unpacked([pa.RecordBatch.from_pandas(found)]))] if len(found) else []
        return pd.concat([pd.DataFrame(), *(table.to_pandas() for table in tables)])


def answers(frames: list[Any]) -> tuple[dict[str, set[str]], set[str]]:
    """Receivers of each event, and which of them were late."""
    found = pd.concat([frame for frame in frames if len(frame)])
    assert not found["event"].duplicated().any(), "an event has two rows"
    late = set(found["event"][found["late"].astype(bool)])
    return {event: set(who) for event, who in zip(found["event"], found["receivers"], strict=True)}, late


def fed(tester: FedPart, rows: pd.DataFrame, arrival: Any, batches: int) -> list[Any]:
    """The rows in the order of their arrival, cut into batches, then the end of time."""
    order = np.argsort(arrival, kind="stable")
    pieces = [rows.iloc[piece] for piece in np.array_split(order, batches) if len(piece)]
    pieces.append(clock(rows, 2**60))
    return [tester.batch(piece) for piece in pieces]


@given(delay=st.sampled_from([0.0, 2.0, 100.0]), batches=st.sampled_from([1, 3, 20]), seed=st.integers(0, 2**32 - 1))
@few
def test_rows_may_come_in_any_order_within_the_delay(
    made: Recording, rows: pd.DataFrame, delay: float, batches: int, seed: int
) -> None:
    # Up to the delay, exclusive of its last microsecond, after what is newer: then nobody is late.
    jitter = np.random.default_rng(seed).uniform(0.0, delay, len(rows)) * MICROSECONDS * 0.999
    found, late = answers(fed(FedPart(matching(delay)), rows, rows["time"].to_numpy() + jitter, batches))
    assert not late
    assert found == made.expected


@given(
    batches=st.sampled_from([5, 20]),
    workers=st.sampled_from([2, 3, 1000]),
    least=st.sampled_from([0, 20, 500_000]),
    seed=st.integers(0, 2**32 - 1),
)
@few
def test_any_worker_goes_on_with_a_part(
    made: Recording, rows: pd.DataFrame, batches: int, workers: int, least: int, seed: int
) -> None:
    tester, found, random = FedPart(matching(1.0)), [], np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "LEAST_COMPACTED", least)
        patch.setattr(state, "MOST_SINCE", workers)
        kept: dict[int, dict[str, state.PartState]] = {}
        for piece in np.array_split(np.argsort(rows["time"].to_numpy(), kind="stable"), batches):
            patch.setattr(state, "_KEPT", kept.setdefault(int(random.integers(workers)), {}))
            found.append(tester.batch(rows.iloc[piece]))
        found.append(tester.batch(clock(rows, 2**60)))
    assert answers(found)[0] == made.expected


def test_what_comes_late_does_not_bring_back_what_has_ended(spark: SparkSession) -> None:
    rows = simple(spark)
    changes, events = rows[rows["event"] == ""], rows[rows["event"] != ""]
    subscribed = changes[changes["detail"].notna()]
    late = subscribed.assign(time=1_500_000)
    gone = changes[changes["lat"].notna() & (changes["client"] == "ann")].assign(
        time=2_000_000, kind=np.int8(ENDED), lat=np.nan, lon=np.nan
    )
    no_more = subscribed[subscribed["client"] == "bob"].assign(time=2_000_000, detail='{"subscription": "s"}')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "LEAST_COMPACTED", 0)
        patch.setattr(state, "MOST_SINCE", 0)
        part = FedPart(matching())
        pieces = [changes, pd.concat([gone, no_more]), clock(rows, 3_000_000), late, events, clock(rows, 60_000_000)]
        found, _ = answers([part.batch(piece) for piece in pieces])
    assert found == {"near ann": set(), "near bob": set()}


def test_an_attempt_that_failed_leaves_nothing_behind(spark: SparkSession) -> None:
    rows = simple(spark)
    changes, events = rows[rows["event"] == ""], rows[rows["event"] != ""]
    elsewhere = changes[changes["lat"].notna()].assign(time=5_000_000, lat=10.0)
    tester = FedPart(matching())
    found = [tester.batch(changes), tester.batch(clock(rows, 2_000_000))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state.PartState, "save", _no_disk)
        with pytest.raises(OSError, match="no space left"):
            tester.batch(pd.concat([elsewhere, clock(rows, 6_000_000)]))
    found += [tester.batch(events), tester.batch(clock(rows, 60_000_000))]
    assert answers(found)[0] == {"near ann": {"ann"}, "near bob": {"bob"}}


def _no_disk(*_: object) -> None:
    raise OSError("no space left")


def test_a_checkpoint_does_not_go_on_with_another_number_of_parts(spark: SparkSession) -> None:
    rows = simple(spark)
    kept: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "put_head", lambda _, head: kept.append(head))
        FedPart(matching()).batch(rows)
        patch.setattr(Store, "head", lambda _: msgspec.structs.replace(kept[0], parts=2))
        with pytest.raises(InvalidSettings, match="of 2 parts, not 1: go on with parts = 2"):
            FedPart(matching()).batch(rows)


def test_a_checkpoint_of_another_layout_is_refused(spark: SparkSession) -> None:
    rows, tester = simple(spark), FedPart(matching())
    tester.batch(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "LAYOUT", store.LAYOUT + 1)
        with pytest.raises(InvalidSettings, match=r"layout 1 of the state, not 2\); go on with that version"):
            tester.batch(rows)


def test_a_checkpoint_says_its_layout_even_if_no_state_is_found_in_it(tmp_path: Path) -> None:
    for _ in range(2):
        check_layout(tmp_path / "new")
        (tmp_path / "new" / "offsets").mkdir(exist_ok=True)
    (tmp_path / "old" / "offsets").mkdir(parents=True)
    with pytest.raises(
        InvalidSettings, match=r"old was written by another version of nearcast \(layout 0 of the state, not 1\)"
    ):
        check_layout(tmp_path / "old")


def test_every_part_hears_of_a_batch_whatever_is_in_it() -> None:
    deal = pa.array([1, 1], pa.int32())
    batch = pa.RecordBatch.from_arrays([pa.array([10, 11]), deal], ["time", DEAL])
    found = [each.to_pydict() for each in Packing((5, 6, 7))([batch])]
    assert [(key, len(blob) > 0) for each in found for key, blob in zip(each["part"], each["rows"], strict=True)] == [
        (5, False), (6, False), (7, False), (6, True),
    ]  # fmt: skip


def test_streams_that_are_not_in_step_go_by_the_clock_alone(spark: SparkSession) -> None:
    rows = simple(spark)
    changes, events = rows[rows["event"] == ""], rows[rows["event"] != ""]
    part = FedPart(matching(by_clock=True))
    found, late = answers([part.batch(piece) for piece in (events, changes, clock(rows, 60_000_000))])
    assert found == {"near ann": {"ann"}, "near bob": {"bob"}}
    assert not late


def test_parts_are_dealt_to_tasks_evenly(spark: SparkSession) -> None:
    keys = part_keys(spark, 8)
    assert part_keys(spark, 3) == keys[:3]
    frame = spark.createDataFrame([(key,) for key in keys], "part int")
    for tasks in (1, 2, 3, 4, 8, 16, 200):
        numbers = [
            row.task for row in frame.repartition(tasks, "part").select(F.spark_partition_id().alias("task")).collect()
        ]
        assert len(set(numbers)) == min(tasks, 8)
        assert max(map(numbers.count, numbers)) == -(-8 // tasks)


def test_a_state_that_is_written_anew_after_every_batch_says_the_same(made: Recording, rows: pd.DataFrame) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "LEAST_COMPACTED", 0)
        found, _ = answers(fed(FedPart(matching(3.0)), rows, rows["time"].to_numpy(), 20))
    assert found == made.expected


def simple(spark: SparkSession) -> pd.DataFrame:
    return _simple(spark).copy()


@cache
def _simple(spark: SparkSession) -> pd.DataFrame:
    """Two clients, each at its place and interested in what is near; an event at each place, ten seconds later."""
    made = Recording()
    made.tables["reports"] = [
        {"time": 0, "client": "ann", "lat": 49.0, "lon": 8.0},
        {"time": 1_000_000, "client": "bob", "lat": 50.0, "lon": 8.0},
    ]
    made.tables["subscriptions"] = [
        {"time": 0, "client": who, "subscription": "s", "action": "subscribed", "topic_filter": "#", "radius": 100.0}
        for who in ("ann", "bob")
    ]
    made.tables["events"] = [
        {"time": 10_000_000 + number, "event": name, "topic": "t", "lat": lat, "lon": 8.0, "bytes": 0}
        for number, (name, lat) in enumerate([("near ann", 49.0), ("near bob", 50.0)])
    ]
    return rows_of(made, spark)


def test_a_late_event_is_answered_by_what_is_known_and_its_row_says_so(spark: SparkSession) -> None:
    rows = simple(spark)
    event = rows["event"] == "near ann"
    tester = FedPart(matching())
    first = [tester.batch(piece) for piece in (rows[~event], clock(rows, 60_000_000))]
    found, late = answers([*first, tester.batch(rows[event])])
    assert found == {"near ann": {"ann"}, "near bob": {"bob"}}
    assert late == {"near ann"}


def test_a_late_report_counts_only_if_no_newer_one_is_known(spark: SparkSession) -> None:
    rows = simple(spark)
    changes, events = rows[rows["event"] == ""], rows[rows["event"] != ""]
    stale, fresh = (changes[(changes["client"] == "ann") & changes["lat"].notna()].copy() for _ in range(2))
    stale["time"], stale["lat"] = -5, 50.0
    fresh["time"], fresh["lat"] = 5, 50.0
    for late, expected in ((stale, {"bob"}), (fresh, {"ann", "bob"})):
        tester = FedPart(matching())
        pieces = [changes, clock(rows, 5_000_000), late, events, clock(rows, 60_000_000)]
        assert answers([tester.batch(piece) for piece in pieces])[0]["near bob"] == expected


def test_who_was_not_heard_of_for_long_is_forgotten(spark: SparkSession) -> None:
    rows = simple(spark)
    changes, events = rows[rows["event"] == ""], rows[rows["event"] != ""]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "LEAST_COMPACTED", 0)
        tester = FedPart(matching(forget_after=4.5))
        # Ann was last heard of at second 0, Bob at second 1, often enough that the state is written anew.
        again = pd.concat([changes[changes["time"] > 0]] * 10)
        pieces = [changes, again, clock(rows, 5_000_000), events, clock(rows, 60_000_000)]
        found, _ = answers([tester.batch(piece) for piece in pieces])
    assert found == {"near ann": set(), "near bob": {"bob"}}
