"""A whole run in a small city: every figure is there, and nearcast's answers are the exact ones."""

import pytest

from nearcast.benchmark.agreement import Truth
from nearcast.benchmark.courses import BATCH
from nearcast.benchmark.match import run
from nearcast.benchmark.ours import Ours, batches
from nearcast.benchmark.report import Report
from nearcast.benchmark.workload import city


@pytest.fixture(scope="module")
def report() -> Report:
    return run(12_000, quick=True, peers=False)


def test_every_metric_of_the_contract_is_measured(report: Report) -> None:
    ours = {row.metric for row in report.results if row.system == "nearcast"}
    assert ours == {
        "batch_events_per_second",
        "single_event_microseconds",
        "interleaved_events_per_second",
        "position_updates_per_second",
        "bytes_per_client",
        "growth",
    }
    assert all(row.value > 0 for row in report.results)


def test_the_answers_are_exact_in_batches_one_by_one_and_after_moving(report: Report) -> None:
    checked = next(row for row in report.results if row.metric == "batch_events_per_second").parameters
    assert checked["differing_answers"] == 0
    assert checked["checked_answers"] > 100_000


def test_nearcast_is_compared_with_the_bare_kernel(report: Report) -> None:
    assert "nearcast/bare-kernel batch_events_per_second" in report.ratios
    assert "nearcast/bare-kernel growth" in report.ratios


def test_peers_that_were_left_out_are_named(report: Report) -> None:
    assert {absent.system for absent in report.missing} == {"strtree", "sedonadb", "redis", "postgis"}


def test_wrong_answers_of_nearcast_do_not_go_unnoticed() -> None:
    world = city(2_000, BATCH * 8)
    ours = Ours(world)
    ours.matcher.move_many(ours.numbers[:500], world.lat[:500] + 1.0, world.lon[:500])
    truth = Truth(world, BATCH)
    batch = batches(world.events, BATCH)[0]
    agreement = truth.check(ours.pairs(ours.matcher.match_batch(batch)), 0, BATCH, filtered=True)
    assert agreement.lacking > 1_000
