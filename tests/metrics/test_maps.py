"""Values by place: every placed thing is in exactly one cell, whose middle is near."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.worlds import Row, World, as_table, event, notification, worlds

from nearcast.errors import InvalidInput
from nearcast.metrics import (
    VISIT_CELL,
    Grid,
    Tracks,
    cell_sums,
    pairs,
    per_event,
    recall_by_place_of_client,
    recall_by_place_of_event,
    visits,
)
from nearcast.model.geometry import Point, distance
from nearcast.runtime.simulation.plane import Plane

ORIGIN = Point(49.87, 8.65)
metres = st.floats(-2_000, 2_000)


def place(x: float, y: float) -> Point:
    return Plane(ORIGIN).to_point(x, y)


def position(client: str, time: int, x: float, y: float) -> Row:
    at = place(x, y)
    return {"client": client, "time": time, "lat": at.lat, "lon": at.lon, "speed": 0.0, "heading": None}


@given(st.lists(st.tuples(metres, metres, st.integers(0, 9)), max_size=20), st.sampled_from([10.0, 20.0, 333.3]))
def test_cells_hold_what_lies_in_them(things: list[tuple[float, float, int]], size: float) -> None:
    at = [place(x, y) for x, y, _ in things]
    lat, lon = np.array([each.lat for each in at]), np.array([each.lon for each in at])
    grid = Grid(ORIGIN, size)
    weights = np.array([weight for *_, weight in things], np.int64)
    table = cell_sums(grid, np.append(lat, np.nan), np.append(lon, 8.0), weight=np.append(weights, 99)).to_pylist()
    assert [(row["row"], row["column"]) for row in table] == sorted({(row["row"], row["column"]) for row in table})
    assert sum(row["count"] for row in table) == len(things)
    columns, rows = grid.cells(lat, lon)
    for row in table:
        inside = (columns == row["column"]) & (rows == row["row"])
        assert row["count"] == inside.sum()
        assert row["weight"] == weights[inside].sum()
        for which in np.flatnonzero(inside):
            # Half a diagonal away at most.
            assert distance(at[which], Point(row["lat"], row["lon"])) <= size * 0.70711 + 0.01


def test_cells_are_counted_from_the_south_west() -> None:
    some = [place(5, 5), place(19.9, 0.1), place(-0.1, 5), place(5, 20.1)]
    columns, rows = Grid(ORIGIN, 20.0).cells(np.array([p.lat for p in some]), np.array([p.lon for p in some]))
    assert list(zip(columns.tolist(), rows.tolist(), strict=True)) == [(0, 0), (0, 0), (-1, 0), (0, 1)]


def test_visits_count_samples() -> None:
    rows = [position("ada", 0, 5, 5), position("ada", 1, 6, 6), position("bob", 0, 25, 5)]
    table = visits(as_table("positions", rows), Grid(ORIGIN, VISIT_CELL))
    assert table["count"].to_pylist() == [2, 1]


@given(worlds())
def test_recall_by_place_adds_the_events_of_a_place(world: World) -> None:
    events = per_event(pairs(*world.tables()))
    table = recall_by_place_of_event(events, Grid(Point(49.87, 8.65), 50.0)).to_pylist()
    by_lat: dict[int, list[Row]] = {}
    for row in events.to_pylist():
        if row["lat"] is not None:
            by_lat.setdefault(round((row["lat"] - 49.87) * 100), []).append(row)
    assert len(table) == len(by_lat)
    for found, (_, rows) in zip(table, sorted(by_lat.items()), strict=True):
        due, notified, correct = (sum(row[name] for row in rows) for name in ("due", "notified", "correct"))
        assert (found["count"], found["due"], found["notified"], found["correct"]) == (
            len(rows),
            due,
            notified,
            correct,
        )
        assert found["recall"] == (correct / due if due else None)
        assert found["precision"] == (correct / notified if notified else None)


def test_recall_by_place_of_the_client_asks_where_it_was_at_publication() -> None:
    # Ada walks east at 1 m/us: at 10 she is in the first cell, at 30 in the second.
    walk = [position("ada", 0, 0.0, 5.0), position("ada", 40, 40.0, 5.0)]
    events = [event("early", 10, "bob", ["ada"]), event("late", 30, "bob", ["ada", "ghost"])]
    found = pairs(as_table("events", events), as_table("notifications", [notification("early", "ada", time=35)]))
    table = recall_by_place_of_client(found, as_table("positions", walk), Grid(ORIGIN, 20.0)).to_pylist()
    assert [(row["column"], row["row"], row["due"], row["recall"]) for row in table] == [(0, 0, 1, 1.0), (1, 0, 1, 0.0)]
    nowhere = recall_by_place_of_client(found, as_table("positions", []), Grid(ORIGIN, VISIT_CELL))
    assert nowhere.num_rows == 0


samples = st.dictionaries(st.integers(0, 50), st.tuples(st.floats(-80, 80), st.floats(-170, 170)), max_size=5)


@given(st.lists(samples, min_size=3, max_size=3), st.lists(st.tuples(st.integers(0, 2), st.integers(-10, 60))))
def test_tracks_are_straight_between_samples(walks: list[dict[int, Any]], asked: list[tuple[int, int]]) -> None:
    names = ("ada", "bob", "cid")
    rows = [
        {"client": names[who], "time": time, "lat": lat, "lon": lon, "speed": 0.0, "heading": None}
        for who, walk in enumerate(walks)
        for time, (lat, lon) in walk.items()
    ]
    tracks = Tracks.of(as_table("positions", rows), names)
    who, when = np.array(asked, np.int64).reshape(-1, 2).T
    for (client, time), lat, lon in zip(asked, *tracks.at(who, when), strict=True):
        walk = sorted(walks[client].items())
        if not walk:
            assert np.isnan(lat)
            assert np.isnan(lon)
            continue
        times, places = [at for at, _ in walk], np.array([where for _, where in walk])
        assert lat == pytest.approx(np.interp(time, times, places[:, 0]))
        assert lon == pytest.approx(np.interp(time, times, places[:, 1]))


def test_cells_have_a_size() -> None:
    with pytest.raises(InvalidInput, match="positive size"):
        Grid(ORIGIN, 0.0)
