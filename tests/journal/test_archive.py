"""Closed stretches become rows of the record tables in the lake: each once, whatever happens on the way."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from tests.clocks import START
from tests.journal.journal_calls import Opened, event, opened
from tests.waiting import PATIENCE

from nearcast.journal import (
    ClientEntry,
    ContextEntry,
    DeliveryEntry,
    EventEntry,
    ReportEntry,
    SubscriptionEntry,
    TransitionEntry,
    UnpublishEntry,
)
from nearcast.journal.archive import Archive
from nearcast.journal.rows import radius_of
from nearcast.model.geometry import Point, distance
from nearcast.model.time import instant, to_datetime
from nearcast.records import arrow_schema, table

DAY = 86_400_000_000


def rows(lake: Path, name: str) -> list[dict[str, Any]]:
    if not (lake / name).exists():
        return []
    found = ds.dataset(lake / name, partitioning="hive").to_table().sort_by("time")
    return list(found.to_pylist())


def without_date(lake: Path, name: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values())[:-1] for row in rows(lake, name)]


def archive_of(it: Opened, lake: Path) -> Archive:
    return Archive(it.journal, lake, 1_000.0)


def test_every_kind_of_record_becomes_a_row_of_its_table(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    at, later = to_datetime(START), to_datetime(START + 1)
    with opened(tmp_path, lake=lake) as it:
        it.written(
            EventEntry("e1", "city/jam", START, b"12345", "p", 1, ("r1", "r2"), 49.5, 8.5, "500"),
            ReportEntry(START, "p", 49.5, 8.5),
            ContextEntry(START, "p", "car", b'{"speed": 3}'),
            ContextEntry(START + 1, "p", "car"),
            SubscriptionEntry(START, "p", "s1", "subscribed", "city/#", "150"),
            SubscriptionEntry(
                START + 1,
                "p",
                "s2",
                "subscribed",
                "#",
                '{"box": [8, 49, 9, 50]}',
                "speed > 3",
                START,
                START + 9,
                no_local=True,
            ),
            ClientEntry(START, "p", "joined"),
            TransitionEntry(START, "broker", "filter scheme", None, "GRID"),
            UnpublishEntry(START, "e0", 77),
            DeliveryEntry(START, 0, event(1, receivers=("r3",))),
        )
        archive = archive_of(it, lake)
        assert archive.export() == 10
        assert archive.statistics().exported == it.journal.exported == it.journal.head
    assert rows(lake, "events") == [
        {
            "time": at,
            "event": "e1",
            "publisher": "p",
            "topic": "city/jam",
            "lat": 49.5,
            "lon": 8.5,
            "reach": 500.0,
            "bytes": 5,
            "workload": None,
            "receivers": ["r1", "r2"],
            "payload": b"12345",
            "tags": None,
            "attributes": None,
            "reach_area": "500",
            "addressing": None,
            "timing": None,
            "lifetime": None,
            "offset": 0,
            "date": str(at.date()),
        }
    ]
    assert without_date(lake, "reports") == [(at, "p", 49.5, 8.5, 1)]
    assert without_date(lake, "contexts") == [(at, "p", "car", '{"speed":3}', 2), (later, "p", "car", None, 3)]
    assert without_date(lake, "subscriptions") == [
        (at, "p", "s1", "subscribed", "city/#", 150.0, "150", None, None, None, 4, None),
        (
            later,
            "p",
            "s2",
            "subscribed",
            "#",
            None,
            '{"box": [8, 49, 9, 50]}',
            "speed > 3",
            at,
            to_datetime(START + 9),
            5,
            1,
        ),
    ]
    assert without_date(lake, "clients") == [(at, "p", "joined", 6)]
    assert without_date(lake, "transitions") == [(at, "broker", "filter scheme", None, "GRID", None, None, None, 7)]
    assert without_date(lake, "unpublished") == [(at, "e0", 77, 8)]
    assert without_date(lake, "deliveries") == [(at, "e1", 0, ["r3"], 9)]
    assert not (lake / "notifications").exists()
    assert not (lake / "_exporting").exists()


def test_files_have_the_schema_of_their_table_and_stand_in_the_folder_of_their_day(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with opened(tmp_path, lake=lake) as it:
        midnight = instant("2026-11-16T00:00:00Z")
        it.written(ClientEntry(midnight - 1, "a", "joined"), ClientEntry(midnight, "b", "joined"))
        archive_of(it, lake).export()
    name = "00000000000000000000-00000000000000000001.parquet"
    for day in ("2026-11-15", "2026-11-16"):
        file = lake / "clients" / f"date={day}" / name
        assert ds.dataset(file).schema.equals(arrow_schema(table("clients")), check_metadata=True)
    assert [row["client"] for row in rows(lake, "clients")] == ["a", "b"]


def test_each_export_takes_up_where_the_last_one_ended(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for start in range(0, 30, 10):
        with opened(tmp_path, lake=lake) as it:
            it.written(*(event(number) for number in range(start, start + 10)))
            assert archive_of(it, lake).export() == 10
            assert archive_of(it, lake).export() == 0
    assert [row["event"] for row in rows(lake, "events")] == [f"e{number}" for number in range(30)]


def test_much_is_exported_in_several_files_since_it_must_fit_into_memory(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with opened(tmp_path, lake=lake) as it:
        for number in range(100):
            it.write(event(number, size=1_000_000))
        it.settle()
        assert archive_of(it, lake).export() == 100
    assert len(list(lake.glob("events/*/*.parquet"))) == 2
    assert [row["event"] for row in rows(lake, "events")] == [f"e{number}" for number in range(100)]


def test_an_event_that_was_unpublished_before_its_export_has_no_row(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with opened(tmp_path, lake=lake) as it:
        it.written(event(1), event(2))
        it.written(UnpublishEntry(START + 5, "e1"))
        archive_of(it, lake).export()
        assert [row["event"] for row in rows(lake, "events")] == ["e2"]


def test_of_an_event_that_was_unpublished_after_its_export_the_lake_says_so(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with opened(tmp_path, lake=lake) as it:
        it.written(event(1))
        archive_of(it, lake).export()
        it.written(UnpublishEntry(START + 5, "e1", 0))
        archive_of(it, lake).export()
    assert [row["offset"] for row in rows(lake, "events")] == [0]
    assert [row["published_offset"] for row in rows(lake, "unpublished")] == [0]


def test_two_events_of_one_id_are_told_apart_when_one_is_unpublished(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with opened(tmp_path, lake=lake) as it:
        it.written(EventEntry("e", "of/ada", START), EventEntry("e", "of/eve", START))
        it.written(UnpublishEntry(START + 5, "e", offset=1))
        archive_of(it, lake).export()
        assert [row["topic"] for row in rows(lake, "events")] == ["of/ada"]


class PowerCut(BaseException):
    """Nobody catches it."""


def dies_at(monkeypatch: pytest.MonkeyPatch, moment: str, it: Opened) -> None:
    def dies(*_: object, **__: object) -> None:
        raise PowerCut

    moves: list[Path] = []
    move = Path.replace

    def dies_in_the_middle(path: Path, target: Path) -> Path:
        moves.append(path)
        if len(moves) == 2:
            raise PowerCut
        return move(path, target)

    if moment == "before the first file":
        monkeypatch.setattr(Path, "replace", dies)
    elif moment == "between two files":
        monkeypatch.setattr(Path, "replace", dies_in_the_middle)
    else:
        monkeypatch.setattr(it.journal, "set_exported", dies)


@pytest.mark.parametrize("moment", ["before the first file", "between two files", "after the last file"])
def test_a_crash_in_the_middle_of_an_export_neither_loses_nor_doubles_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    lake = tmp_path / "lake"
    with opened(tmp_path, lake=lake) as it:
        it.written(event(1), ClientEntry(START, "a", "joined"), event(2))
        dies_at(monkeypatch, moment, it)
        with pytest.raises(PowerCut):
            archive_of(it, lake).export()
        monkeypatch.undo()
        # More is written, so that an export which does not remember its end would take more.
        it.written(event(3), UnpublishEntry(START + 9, "e1"))
    with opened(tmp_path, lake=lake) as it:
        assert it.journal.exported == 0
        archive_of(it, lake).export()
        archive_of(it, lake).export()
    assert [row["event"] for row in rows(lake, "events")] == ["e2", "e3"]
    assert [row["client"] for row in rows(lake, "clients")] == ["a"]


def test_the_lake_says_how_far_it_is_complete_even_if_a_crash_came_in_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"

    def dies(*_: object) -> None:
        raise PowerCut

    with opened(tmp_path, lake=lake) as it:
        it.written(event(1), event(2))
        archive = archive_of(it, lake)
        archive.export()
        assert (lake / "_exported").read_text() == "2\n"
        it.written(event(3))
        monkeypatch.setattr("nearcast.journal.archive.mark_exported", dies)
        with pytest.raises(PowerCut):
            archive.export()
        assert (it.journal.exported, (lake / "_exported").read_text()) == (3, "2\n")
        monkeypatch.undo()
    with opened(tmp_path, lake=lake) as it:
        assert archive_of(it, lake).export() == 0
    assert (lake / "_exported").read_text() == "3\n"
    assert sorted(path.name for path in lake.iterdir()) == ["_exported", "events"]


def test_a_table_that_has_no_rows_any_more_after_a_crash_has_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"
    with opened(tmp_path, lake=lake) as it:
        it.written(event(1))
        dies_at(monkeypatch, "after the last file", it)
        with pytest.raises(PowerCut):
            archive_of(it, lake).export()
        assert len(rows(lake, "events")) == 1
        monkeypatch.undo()
        it.written(UnpublishEntry(START + 9, "e1"))
        archive_of(it, lake).export()
    assert not list(lake.glob("events/*/*.parquet"))


def test_a_lake_that_is_set_later_gets_what_retention_has_left(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with opened(tmp_path, keep_for=1) as it:
        it.written(event(0))
        it.written(event(10))
        it.now = START + 11
        it.journal.trim().result(PATIENCE)
    with opened(tmp_path, lake=lake) as it:
        archive_of(it, lake).export()
    assert [row["event"] for row in rows(lake, "events")] == ["e10"]


def test_the_thread_exports_by_itself_and_says_what_is_in_its_way(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake.touch()  # a file stands where the folder should be
    with opened(tmp_path, lake=lake) as it:
        it.written(event(1))
        archive = Archive(it.journal, lake, 0.001)
        archive.start()
        while archive.statistics().problem is None:
            it.settle()
        assert str(lake) in str(archive.problem)
        assert it.journal.exported == 0
        lake.unlink()
        while it.journal.exported == 0 or archive.problem is not None:
            it.settle()
        archive.close()
        assert archive.statistics().rows == 1
    assert len(rows(lake, "events")) == 1
    shutil.rmtree(lake)


HERE = Point(49.87, 8.65)
THERE = Point(49.88, 8.65)


@pytest.mark.parametrize(
    ("area", "expected"),
    [
        (None, None),
        ("500", 500.0),
        ('{"circle": 500}', 500.0),
        ('{"circle": 500, "at": [8.65, 49.88]}', 500.0 + distance(HERE, THERE)),
        ('{"rectangle": [30, 40]}', 25.0),
        ('{"outline": [[3, 4], [-6, 8], [0, 1], [3, 4]]}', 10.0),
        ('{"box": [8.65, 49.87, 8.65, 49.88]}', distance(HERE, THERE)),
        ('{"sphere": 3}', None),
        ("nonsense", None),
    ],
)  # fmt: skip
def test_the_extent_of_an_area_is_the_circle_around_the_place_that_holds_it(
    area: str | None, expected: float | None
) -> None:
    assert radius_of(area, HERE) == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    "area",
    [
        '{"box": [8.6, 49.87, 8.66, 49.9]}',
        '{"type": "Polygon", "coordinates": [[[8.6, 49.87], [8.66, 49.87], [8.66, 49.9], [8.6, 49.87]]]}',
    ],
)
def test_no_corner_of_an_area_lies_outside_its_extent(area: str) -> None:
    farthest = max(distance(HERE, Point(lat, lon)) for lon, lat in ((8.6, 49.87), (8.66, 49.87), (8.66, 49.9)))
    radius = radius_of(area, HERE)
    assert radius is not None
    assert farthest <= radius <= 2 * farthest


def test_without_a_place_only_relative_areas_have_an_extent() -> None:
    assert radius_of('{"circle": 7}', None) == 7.0
    assert radius_of('{"circle": 7, "at": [8.65, 49.88]}', None) is None
    assert radius_of('{"box": [8.65, 49.87, 8.65, 49.88]}', None) is None
