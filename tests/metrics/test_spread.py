"""By when so many hosts had exchanged their mechanism, and where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.worlds import Row, as_table

from nearcast.errors import InvalidInput
from nearcast.metrics import executions, spread, spreads
from nearcast.model.time import TimeFrame


def transition(host: str, time: int, **more: Any) -> Row:
    row: Row = {"time": time, "host": host, "proxy": "filter scheme", "source": "radial", "target": "grid"}
    return {**row, "lat": 49.87, "lon": 8.65, "plan": "p1", **more}


@given(st.lists(st.integers(0, 50), max_size=25), st.integers(0, 10))
def test_so_many_had_done_it_by_then_and_not_before(times: list[int], never: int) -> None:
    rows = [transition(f"c{place}", time) for place, time in enumerate(times)]
    result = spread(executions(as_table("transitions", rows)), of=len(times) + never)
    assert (result.hosts, result.of) == (len(times), len(times) + never)
    assert (result.first, result.last) == ((min(times), max(times)) if times else (None, None))
    for percent, moment in ((50, result.median), (90, result.ninety_percent)):
        if moment is None:
            assert 100 * len(times) < percent * result.of or not times
        else:
            assert 100 * sum(time <= moment for time in times) >= percent * result.of
            assert 100 * sum(time < moment for time in times) < percent * result.of


def test_a_host_counts_when_it_did_it_first() -> None:
    rows = [transition("bob", 9, lat=1.0), transition("ada", 3), transition("bob", 5, lat=2.0), transition("ada", 3)]
    found = executions(as_table("transitions", rows, pieces=2))
    assert found.hosts == ("ada", "bob")
    assert found.times.tolist() == [3, 5]
    assert found.lat.tolist() == [49.87, 2.0]


def test_executions_are_chosen_by_plan_proxy_target_host_and_time() -> None:
    rows = [
        transition("ada", 1),
        transition("bob", 2, plan=None),
        transition("cid", 3, target=None),
        transition("dan", 4, proxy="direct dissemination"),
        transition("broker", 5, lat=None, lon=None),
    ]
    table = as_table("transitions", rows)
    assert executions(table, plan="p1").hosts == ("ada", "cid", "dan", "broker")
    assert executions(table, target="grid").hosts == ("ada", "bob", "dan", "broker")
    assert executions(table, proxy="filter scheme", frame=TimeFrame(2, 5)).hosts == ("bob", "cid")
    assert executions(table, hosts=frozenset({"bob", "zoe"})).hosts == ("bob",)
    assert np.isnan(executions(table, hosts=frozenset({"broker"})).lat).all()


def test_every_plan_proxy_and_target_has_its_row() -> None:
    rows = [
        transition("ada", 30, plan="p2", target="ste"),
        transition("ada", 10),
        transition("bob", 12),
        transition("cid", 14, plan=None),
    ]
    found = [
        (row["plan"], row["target"], row["hosts"], row["last"].microsecond)
        for row in spreads(as_table("transitions", rows)).to_pylist()
    ]
    assert found == [("p1", "grid", 2, 12), (None, "grid", 1, 14), ("p2", "ste", 1, 30)]
    assert spreads(as_table("transitions", [])).num_rows == 0


def test_not_more_hosts_can_do_it_than_should() -> None:
    with pytest.raises(InvalidInput, match="1 hosts executed a transition that only 0 should"):
        spread(executions(as_table("transitions", [transition("ada", 1)])), of=0)
