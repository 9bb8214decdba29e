"""``nearcast bench routing``: behind which neighbours is somebody?  The table of a router, and the scan that it replaces."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

from nearcast.benchmark.report import OURSELVES, Measurement, Missing, Report, machine
from nearcast.benchmark.timing import Course, take_turns
from nearcast.errors import BenchmarkError
from nearcast.matching.entries import EntryTable, Judge, questions, surely
from nearcast.model.area import Box
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.values import Path, Range
from nearcast.overlay.values.possible import possibly

Progress = Callable[[str], None]

ENTRIES: Final = 100_000
NEIGHBOURS: Final = 4
SCAN: Final = "scan"
_MESSAGES: Final = 64
_CHECKED: Final = 2


def run(*, quick: bool = False, peers: bool = True, progress: Progress = lambda _: None) -> Report:
    """Measure exact entries, and coarse ones: areas and ranges."""
    entries = ENTRIES // 10 if quick else ENTRIES
    rounds, seconds = (1, 0.1) if quick else (2, 0.5)
    results: list[Measurement] = []
    ratios: dict[str, float] = {}
    for kind in ("exact", "coarse"):
        progress(f"filling a table with {entries:,} {kind} entries")
        # As routers ask that tell each other coarse contexts: what is possible.
        judge = possibly if kind == "coarse" else surely
        contexts, table = _table(entries, judge, coarse=kind == "coarse")
        events = _events(_MESSAGES)
        _check(contexts, table, events[:_CHECKED], judge)
        parameters = {"entries": entries, "contexts": kind}
        courses = [Course(OURSELVES, "messages_per_second", "1/s", _asking(table, events), dict(parameters))]
        if peers:
            courses.append(
                Course(SCAN, "messages_per_second", "1/s", _scanning(contexts, events, judge), dict(parameters))
            )
        take_turns(courses, rounds, seconds, progress)
        found = [course.measurement() for course in courses]
        results += found
        if peers:
            ratios[f"{OURSELVES}/{SCAN} messages_per_second {kind}"] = round(found[0].value / found[1].value, 1)
    missing = () if peers else (Missing(SCAN, "left out on request"),)
    return Report("routing", machine(), tuple(results), missing, ratios)


Entries = list[tuple[int, dict[str, Any]]]


def _table(entries: int, judge: Judge, *, coarse: bool) -> tuple[Entries, EntryTable[int]]:
    random = Random(1)
    ways = [Path.parse(f"/vehicle/kind{number}") for number in range(20)]
    cells = [
        Box(8.0 + x / 50, 49.0 + y / 50, 8.0 + (x + 1) / 50, 49.0 + (y + 1) / 50) for x in range(20) for y in range(20)
    ]
    contexts: Entries = []
    table: EntryTable[int] = EntryTable(judge)
    for key in range(entries):
        age = random.randrange(10, 90)
        context: dict[str, Any] = {
            "position": random.choice(cells)
            if coarse
            else Point(49 + random.random() * 0.4, 8 + random.random() * 0.4),
            "age": Range(age, age + random.randrange(10)) if coarse else age,
            "transport": random.choice(ways),
        }
        contexts.append((key % NEIGHBOURS, context))
        table.put(key, key % NEIGHBOURS, context)
    return contexts, table


def _events(count: int) -> list[Event]:
    """For few: half of them for nobody, so that neither way ends with the first entry."""
    random = Random(2)
    events = []
    for number in range(count):
        lon, lat = 8 + random.random() * 0.4, 49 + random.random() * 0.4
        to = f"S_WITHIN(position, BBOX({lon}, {lat}, {lon + 0.02}, {lat + 0.02})) AND age > {random.randrange(60, 99)}"
        if number % 2:
            to += " AND transport = '/vehicle/none'"
        events.append(Event(f"e{number}", "news", 0, to=to))
    return events


def _asking(table: EntryTable[int], events: list[Event]) -> Callable[[Any], int]:
    def step(index: int) -> int:
        # What is found out about a message once is found out here each time: as at the first router that it meets.
        table.groups(questions(events[index % len(events)].conjuncts))
        return 1

    return step


def _scanning(contexts: Entries, events: list[Event], judge: Judge) -> Callable[[Any], int]:
    def step(index: int) -> int:
        scan(contexts, events[index % len(events)], judge)
        return 1

    return step


def scan(contexts: Entries, event: Event, judge: Judge) -> set[int]:
    """Alg. 3.2 as it is written: entry by entry, without those of neighbours that get the message already."""
    forwarded: set[int] = set()
    nobody: frozenset[str] = frozenset()
    for neighbour, context in contexts:
        if neighbour not in forwarded and any(
            all(judge(literal, context, nobody) for literal in conjunct) for conjunct in event.conjuncts
        ):
            forwarded.add(neighbour)
            if len(forwarded) == NEIGHBOURS:
                break
    return forwarded


def _check(contexts: Entries, table: EntryTable[int], events: list[Event], judge: Judge) -> None:
    for event in events:
        found = table.groups(questions(event.conjuncts))
        if found != scan(contexts, event, judge):
            raise BenchmarkError(f"table and scan disagree about event {event.id}")
