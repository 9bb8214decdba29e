"""Presence of people on recorded ways, whose reports come late, twice and in another order: what the definition says, through a restart."""

from __future__ import annotations

import asyncio
import csv
import gzip
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from mqtt5 import PublishPacket
from tests.broker.test_observation_equals_oracle import OBSERVER, Oracle, Rig, payload, told_by
from tests.clocks import HandClock
from tests.documents import ROOT

from nearcast.model.area import Area, Box, Circle, Polygon
from nearcast.model.fixes import Fix
from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS

WAYS = ROOT / "tests" / "data" / "walks" / "walks.csv.gz"
SET_OUT = (0, 45, 150)
"""Seconds: so many people go each way, one after the other."""

FENCES: dict[str, Area] = {
    "village": Circle(150, Point(45.7677, 14.3557)),
    "shore": Box(14.3550, 45.7640, 14.3625, 45.7700),
    "spring": Circle(60, Point(45.459002, 14.007956)),
    "ridge": Polygon(
        ((((14.0070, 45.4600), (14.0150, 45.4595), (14.0140, 45.4640), (14.0080, 45.4635), (14.0070, 45.4600)),),)
    ),
    "east": Box(14.0290, 45.4500, 14.0330, 45.4560),
}
ANCHOR = "walker 1-1"
"""Others go before and behind."""

Report = tuple[int, str, Fix]
"""When it comes, by whom, and what it says."""


def reports(seed: int, begin: int) -> list[Report]:
    """In the order in which they come: of five one is late by up to a minute and a half, of ten one comes twice."""
    chance, found = random.Random(seed), list[Report]()
    with gzip.open(WAYS, "rt") as file:
        rows = list(csv.DictReader(file))
    for number, after in enumerate(SET_OUT):
        for row in rows:
            said = begin + (after + int(row["seconds"])) * MICROSECONDS
            fix = Fix(Point(float(row["lat"]), float(row["lon"])), said, chance.choice([None, 5.0, 5.0, 300.0]))
            for _ in range(2 if chance.random() < 0.1 else 1):
                late = chance.uniform(0, 90) if chance.random() < 0.2 else chance.uniform(0, 1)
                found.append((said + round(late * MICROSECONDS), f"walker {row['walk']}-{number}", fix))
    return sorted(found, key=lambda report: report[0])


@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_told_of_people_on_recorded_ways_is_what_the_definition_says(tmp_path: Path, seed: int) -> None:
    async def scenario() -> None:
        clock = HandClock()
        coming = reports(seed, clock.now())
        names = (ANCHOR, *sorted({name for _, name, _ in coming} - {ANCHOR}))
        oracle, packets = Oracle(names, FENCES), list[Any]()
        rig = Rig(tmp_path, clock, names, FENCES)
        try:
            await rig.everybody()
            rig.watch()
            for name in names:
                rig.clients[name].say(PublishPacket("$nearcast/observable", b"true"))
                oracle.agrees(name, True, clock.now())
            await rig.quiet()
            for number, (comes, name, fix) in enumerate(coming):
                clock.time = comes
                rig.broker.observation.tick()
                oracle.passes(comes)
                rig.clients[name].say(PublishPacket("$nearcast/position", payload(fix)))
                oracle.report(name, fix, comes)
                if number % 100 == 0:
                    await rig.quiet()
                if number == len(coming) // 2:
                    await rig.quiet()
                    packets += rig.clients[OBSERVER].got()
                    rig.broker.close()
                    oracle.falls()
                    rig = Rig(tmp_path, clock, names, FENCES)
                    await rig.everybody()
            await rig.quiet()
            packets += rig.clients[OBSERVER].got()
            assert told_by(packets, names) == oracle.told
            statistics = rig.broker.presence.statistics()
            assert min(statistics.late, statistics.duplicates, statistics.vague) > 20
            kinds = Counter(told[0] for of_one in oracle.told.values() for told in of_one)
            assert min(kinds[kind] for kind in ("enter", "leave", "stay", "near")) > 3, kinds
            assert {told[2] for of_one in oracle.told.values() for told in of_one} == {*FENCES, "beside"}
        finally:
            rig.broker.close()

    asyncio.run(scenario())
