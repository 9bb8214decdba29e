"""The campaign in small: people roam between three brokers, one of which is killed, and nobody misses anything."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.effort import campaign

from nearcast.benchmark import federation


@pytest.mark.slow
def test_everybody_gets_everything_once_although_a_broker_is_killed() -> None:
    told: list[str] = []
    report = federation.run(campaign=replace(federation.QUICK, seconds=22.0), progress=told.append)
    found = {row.metric: row.value for row in report.results}
    kills = report.results[0].parameters["kills"]
    assert kills >= 1
    assert found["deliveries_expected"] > 0
    assert (found["deliveries_lost"], found["deliveries_doubled"]) == (0, 0), told


@campaign
@pytest.mark.parametrize("replicate", [False, True])
def test_so_it_is_with_more_of_everything(replicate: bool) -> None:
    told: list[str] = []
    wanted = replace(federation.Campaign(), people=300, seconds=120.0, replicate=replicate)
    found = {row.metric: row.value for row in federation.run(campaign=wanted, progress=told.append).results}
    assert (found["deliveries_lost"], found["deliveries_doubled"]) == (0, 0), told
