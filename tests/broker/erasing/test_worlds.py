"""Whoever is erased, whenever: what others recorded is as it was, and nothing of the erased is anywhere."""

from __future__ import annotations

import copy
import shutil
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.broker.erasing.markers import found_below
from tests.broker.erasing.worlds import PEOPLE, World, in_lake, mark, stored
from tests.documents import ROOT
from tests.effort import THOROUGH, examples

from nearcast.broker.publishing.retained import RETAINED
from nearcast.journal import UnpublishEntry
from nearcast.journal.rows import ROWS
from nearcast.records.tables import table

KINDS = (
    "event",
    "retained",
    "delivery",
    "unpublish",
    "context",
    "subscription",
    "client",
    "transition",
    "late",
    "report",
)
ACTS = st.tuples(
    st.sampled_from(PEOPLE), st.sampled_from(KINDS), st.lists(st.sampled_from(PEOPLE), unique=True).map(tuple)
)
STEPS = st.one_of(
    ACTS, ACTS, ACTS, st.just("export"), st.tuples(st.just("erase"), st.sampled_from(PEOPLE)), st.just("reopen")
)


@given(st.lists(STEPS, max_size=40))
@examples(12)
def test_what_others_recorded_is_as_it_was(tmp_path_factory: pytest.TempPathFactory, steps: list[object]) -> None:
    world = World(tmp_path_factory.mktemp("world") / "data")
    world.prepare()
    erased = set()
    opened = world.opened()
    erasure = opened.__enter__()
    try:
        for step in steps:
            match step:
                case "export":
                    world.export(erasure)
                    world.exported = erasure.journal.head
                case "reopen":
                    opened.__exit__(None, None, None)
                    opened = world.opened()
                    erasure = opened.__enter__()
                case ("erase", str(person)):
                    gone = (mark(person), *world.identities.get(person, ()))
                    world.erase(erasure, person)
                    erased.add(person)
                    assert found_below(world.folder / "lake", gone) == {}
                    assert found_below(world.folder / "journal", gone) == {}
                case (str(person), str(kind), tuple(others)):
                    world.act(erasure, person, kind, others)
        erasure._on_disk()
        assert stored(erasure) == world.records()
        assert set(erasure.journal.load(RETAINED)) == set(world.retained)
        _check_lake(world)
    finally:
        opened.__exit__(None, None, None)


def _check_lake(world: World) -> None:
    lake = in_lake(world.folder)
    withdrawn = {each.of for each in world.done.values() if isinstance(each.record, UnpublishEntry)}
    records = {offset: record for offset, record in world.records().items() if offset < world.exported}
    for offset, record in records.items():
        if offset not in lake:
            assert offset in withdrawn, "only what was taken back is not in the lake"
            continue
        name, row = ROWS[type(record)]
        expected = dict(zip(table(name).column_names, row(offset, record), strict=False))
        found = lake[offset]
        assert found.pop("table") == name
        for column, value in expected.items():
            if not isinstance(found[column], datetime):
                assert found[column] == (list(value) if isinstance(value, tuple) else value), (column, record)
    assert lake.keys() <= records.keys()


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Everything once, half of it in the lake."""
    world = World(tmp_path_factory.mktemp("planted") / "data")
    world.prepare()
    with world.opened() as erasure:
        for half in range(2):
            for kind in KINDS:
                for person in PEOPLE:
                    world.act(erasure, person, kind, ("ada", "eve") if half else ("bob", "ada"))
            if not half:
                world.export(erasure)
        erasure._on_disk()
    return world


def test_killed_at_any_step_it_comes_to_the_same_end(planted: World, tmp_path: Path) -> None:
    every = 1 if THOROUGH else 13
    identities = [mark("ada"), *planted.identities["ada"]]
    shutil.copytree(planted.folder, tmp_path / "planted")
    command = [
        sys.executable,
        "-m",
        "tests.broker.erasing.killed",
        tmp_path / "planted",
        tmp_path / "work",
        mark("ada"),
        every,
        *identities,
    ]
    told = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=900, cwd=ROOT)
    assert told.returncode == 0, told.stdout + told.stderr
    tried = int(told.stdout.split()[-1])
    assert tried * every > 50
    left = copy.deepcopy(planted)
    left.forget("ada")
    finished = World(tmp_path / "work")
    with finished.opened() as erasure:
        assert stored(erasure) == left.records()
