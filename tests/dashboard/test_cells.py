"""Cells on the map: where each lies is told once, then how many are in it; and regions, as long as a plan has them."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from tests.dashboard.looking import looking, shown
from tests.dashboard.test_commands import HERE, on_ground, sdk
from tests.waiting import until

from nearcast.broker.schemes.live import LiveSchemes
from nearcast.broker.schemes.text import scheme_in
from nearcast.broker.server import Server
from nearcast.dashboard import cell_watch
from nearcast.dashboard.cell_watch import EVERY, CellWatch, fullest
from nearcast.dashboard.contract import REGIONS, CellCounts, Cells
from nearcast.dashboard.turns import Turns
from nearcast.filtering.attraction import Zone
from nearcast.filtering.context import ClientContext
from nearcast.model.geometry import Point
from nearcast.planning.regional import Region

SCHEME = "EGRID(factor=100)"


class Told:
    """What a page knows after it was told that."""

    def __init__(self) -> None:
        self.layers: dict[str, dict[str, int]] = {}
        self.shapes = Counter[str]()
        """How often it was told where a cell is."""

    def hear(self, messages: Any) -> None:
        for each in messages:
            if isinstance(each, CellCounts):
                assert each.counts.keys() <= self.layers[each.scheme].keys()
                self.layers[each.scheme].update(each.counts)
                continue
            assert isinstance(each, Cells)
            features = json.loads(msgspec.json.encode(each.features))["features"]
            counts = {one["properties"]["label"]: one["properties"]["count"] for one in features}
            self.shapes.update(counts.keys())
            layer = {**self.layers.get(each.scheme, {}), **counts} if each.more else counts
            self.layers[each.scheme] = layer
            if not layer:
                del self.layers[each.scheme]

    def counts(self, scheme: str) -> dict[str, int]:
        return {label: count for label, count in self.layers.get(scheme, {}).items() if count}


async def ticks(watch: CellWatch) -> list[msgspec.Struct]:
    """What is told until a look that begins now has been told of."""
    told: list[msgspec.Struct] = []
    for _ in range(2 * EVERY):
        told += watch.changed()
        await until(lambda: watch.at_rest)
    return [*told, *watch.changed()]


def in_cells(*cells: str) -> ClientContext:
    return ClientContext(channels=cells)


@pytest.fixture(autouse=True)
def _without_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_watch, "SHARE", 1e9)


def test_where_a_cell_lies_is_told_once_and_then_how_many_are_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(server: Server, _: httpx.AsyncClient) -> None:
        people: list[ClientContext] = []
        spec = scheme_in(SCHEME)
        monkeypatch.setattr(LiveSchemes, "members", lambda _self: {spec: list(people)} if people else {})
        watch, early = CellWatch(server.broker), Told()
        watch.begin()
        world = random.Random(5)
        names = [f"100:{column},{row}" for column in range(20) for row in range(20)]
        for step in range(12):
            people[:] = [in_cells(*world.sample(names, 3)) for _ in range(0 if step == 8 else 150)]
            news = await ticks(watch)
            early.hear(news)
            late = Told()
            late.hear(watch.standing())
            right = Counter(cell for each in people for cell in each.channels)
            assert early.counts(SCHEME) == late.counts(SCHEME) == right
            # Who begins may be told of what it has just been told of.
            late.hear(news)
            assert late.counts(SCHEME) == right
            if step == 7:
                assert set(early.shapes.values()) == {1}
        watch.end()

    shown(tmp_path, story, **on_ground())


def test_of_many_cells_the_fullest_are_drawn_and_pages_forget_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = {f"c{number}": 1 + number % 7 for number in range(500)}
    chosen = asyncio.run(fullest(counts, Turns(), 100))
    assert sorted(chosen.values()) == sorted(counts.values())[-100:]
    assert asyncio.run(fullest(counts, Turns(), 500)) == counts
    monkeypatch.setattr(cell_watch, "MOST_KNOWN", 30)

    async def story(server: Server, _: httpx.AsyncClient) -> None:
        people: list[ClientContext] = []
        monkeypatch.setattr(LiveSchemes, "members", lambda _self: {scheme_in(SCHEME): list(people)})
        watch, page = CellWatch(server.broker), Told()
        watch.begin()
        for row in range(10):
            people[:] = [in_cells(f"100:{column},{row}") for column in range(12)]
            page.hear(await ticks(watch))
            assert page.counts(SCHEME) == Counter(each.channels[0] for each in people)
            assert len(page.layers[SCHEME]) <= 30
        watch.end()

    shown(tmp_path, story, **on_ground())


def test_who_begins_to_look_keeps_nothing_from_those_who_look_already(tmp_path: Path) -> None:
    async def story(server: Server, _: httpx.AsyncClient) -> None:
        live, watch = server.broker.scheming.live, CellWatch(server.broker)
        watch.begin()

        async def told() -> dict[str, bool]:
            """Of each scheme that something is told of in the next ticks, whether there are cells."""
            cells = [each for each in await ticks(watch) if isinstance(each, Cells)]
            return {each.scheme: bool(each.features["features"]) for each in cells}

        async with sdk(server, "ada") as ada, ada.subscribe("traffic/#", within=500):
            await ada.update(lat=HERE.lat, lon=HERE.lon)
            await until(lambda: live.takes_part("ada"))
            assert await told() == {}
            for scheme, expected in (
                ("EGRID(factor=10)", {"EGRID(factor=10)": True}),
                ("RADIAL", {"EGRID(factor=10)": False}),
            ):
                live.transition(scheme)
                await until(lambda: _settled(live))
                watch.standing()  # somebody else has come
                assert await told() == expected
                assert await told() == {}
        watch.end()

    shown(tmp_path, story, **on_ground())


def _settled(live: LiveSchemes) -> bool:
    return not live.status().waiting and not live.status().overlaps


def test_regions_of_plans_come_and_go_on_the_map(tmp_path: Path) -> None:
    def regions(told: Any) -> list[dict[str, Any]]:
        last = [each for each in told.of("cells") if each["scheme"] == REGIONS][-1:]
        return [feature["properties"] for each in last for feature in each["features"]["features"]]

    async def story(server: Server, _: httpx.AsyncClient) -> None:
        live = server.broker.scheming.live
        region = Region(Zone("square", Point(49.85, 8.65), 300.0), scheme_in("EGRID(factor=20)"), "evening")
        async with (
            sdk(server, "ada") as ada,
            sdk(server, "bob") as bob,
            ada.subscribe("traffic/#", within=500),
            bob.subscribe("traffic/#", within=500),
            looking(server) as page,
        ):
            await ada.update(lat=49.85, lon=8.65)
            await bob.update(lat=49.88, lon=8.75)
            await until(lambda: live.takes_part("ada") and live.takes_part("bob"))
            await page.until(lambda page: page.of("tick"))
            live.transition_in([region])
            await page.until(regions)
            [shown] = regions(page)
            assert (shown["region"], shown["scheme"], shown["plan"]) == ("square", "EGRID(factor=20)", "evening")
            assert (shown["lat"], shown["lon"], shown["radius"]) == (49.85, 8.65, 300.0)
            await page.until(lambda page: page.of("transition"))
            [told] = page.of("transition")
            assert (told["from"], told["to"]) == ("RADIAL", "EGRID(factor=20)")
            assert (told["region"], told["clients"]) == ("square", 1)
            async with looking(server) as late:
                await late.until(regions)
                assert regions(late) == [shown]
                live.transition_in([], "RADIAL")
                await late.until(lambda page: not regions(page))
            await page.until(lambda page: not regions(page))

    shown(tmp_path, story, **on_ground())
