"""The live feed: what a page is told is what the broker knows."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tests.broker.talker import talking
from tests.dashboard.looking import looking, shown
from tests.dashboard.test_commands import on_ground
from tests.waiting import until

from nearcast.broker.server import Server
from nearcast.broker.settings import DashboardSettings
from nearcast.dashboard.crowd import LONGEST_KIND, MOST_KINDS, Kinds, role_of
from nearcast.dashboard.feed import Feed
from nearcast.dashboard.positions import FULL, NO_HEADING, RECORD, Positions
from nearcast.matching import Matcher
from nearcast.model.geometry import Point

HERE = "49.8728,8.6512"


def near(found: tuple[float, float] | None, lat: float, lon: float) -> bool:
    return found is not None and found == pytest.approx((lat, lon), abs=1e-6)


async def report(talker: Any, where: str) -> None:
    await talker.tell("$nearcast/position", where.encode())


def test_a_page_sees_clients_come_move_and_go(tmp_path: Path) -> None:
    async def story(server: Server, _: httpx.AsyncClient) -> None:
        async with talking(server, "ada") as ada:
            await report(ada, HERE)
            async with looking(server) as page:
                await page.until(lambda page: near(page.at("ada"), 49.8728, 8.6512))
                await report(ada, "49.8800,8.6512")
                await page.until(lambda page: near(page.at("ada"), 49.88, 8.6512))
                assert page.headings[next(iter(page.names))] == 0  # straight north
                async with talking(server, "bob") as bob:
                    await report(bob, "49.8700,8.6500")
                    await page.until(lambda page: near(page.at("bob"), 49.87, 8.65))
                await page.until(lambda page: "bob" not in page.names.values())
                assert page.hellos == 1
                assert len(page.where) == 1

    shown(tmp_path, story)


def test_an_event_is_shown_with_its_receivers(tmp_path: Path) -> None:
    async def story(server: Server, _: httpx.AsyncClient) -> None:
        async with talking(server, "near") as near_by, talking(server, "far") as far, talking(server, "src") as source:
            for talker, where in ((near_by, HERE), (far, "49.9900,8.6512")):
                await report(talker, where)
                await talker.subscribe("traffic/#", 0, [("nc-area", '{"circle": 500}')])
            async with looking(server) as page:
                await page.until(lambda page: page.of("tick"))
                await source.tell(
                    "traffic/jam", b"x", [("nc-place", HERE), ("nc-reach", '{"circle": 100, "at": [8.6512, 49.8728]}')]
                )
                await page.until(lambda page: page.of("event"))
                event = page.of("event")[0]
                assert (event["topic"], event["publisher"], event["count"]) == ("traffic/jam", "src", 1)
                assert [page.names[index] for index in event["receivers"]] == ["near"]
                assert (event["lat"], event["lon"]) == (49.8728, 8.6512)
                assert event["reach"]["type"] == "Polygon"
                await page.until(lambda page: any(tick["load"]["publishes_per_s"] > 0 for tick in page.of("tick")))
                tick = page.of("tick")[-1]
                assert (tick["clients"], tick["sessions"], tick["connections"], tick["viewers"]) == (2, 3, 3, 1)

    shown(tmp_path, story)


def test_nothing_is_computed_while_nobody_looks(tmp_path: Path) -> None:
    async def story(server: Server, _: httpx.AsyncClient) -> None:
        publishing = server.broker.publishing
        assert publishing.spectator is None
        async with looking(server) as page:
            await page.until(lambda page: page.of("tick"))
            await until(lambda: publishing.spectator is not None)
            await page.say(pause=True)
            await until(lambda: publishing.spectator is None)
            await page.say(pause=False)
            await until(lambda: publishing.spectator is not None)
            await page.until(lambda page: page.hellos == 2)
        await until(lambda: publishing.spectator is None)

    shown(tmp_path, story)


def test_ten_thousand_clients_are_encoded_in_milliseconds_and_only_changes_are_told() -> None:
    matcher, numbers = Matcher(), 10_000
    rng = np.random.default_rng(7)
    lat, lon = rng.uniform(49.8, 49.9, numbers), rng.uniform(8.6, 8.7, numbers)
    known = matcher.add_clients([f"c{number}" for number in range(numbers)], lat, lon)
    taken = []
    for _ in range(5):
        positions = Positions(matcher, Point(49.85, 8.65))
        begun = time.perf_counter()
        assert positions.look(1) is not None
        whole = positions.full()
        taken.append(time.perf_counter() - begun)
    assert min(taken) < 0.02  # it is one or two; a machine under load is slow
    assert len(whole) == 16 + 16 * numbers
    rows = np.frombuffer(whole, RECORD, offset=16)
    assert whole[1] == FULL
    assert np.allclose(rows["dy"] + 49.85, lat, atol=1e-7)
    assert np.allclose(rows["dx"] + 8.65, lon, atol=1e-7)
    assert (rows["heading"] == NO_HEADING).all()
    assert positions.look(2) is None
    matcher.move_many(known[:3], lat[:3], lon[:3] + 0.001)
    matcher.forget_position("c9")
    changed = positions.look(3)
    assert changed is not None
    rows = np.frombuffer(changed, RECORD, offset=16)
    assert rows["index"].tolist() == [0, 1, 2, 9]
    assert rows["heading"].tolist() == [90, 90, 90, NO_HEADING]
    assert np.isnan(rows["dx"]).tolist() == [False, False, False, True]


def test_a_slow_viewer_gets_the_newest_only_and_holds_up_nobody(tmp_path: Path) -> None:
    async def story(server: Server, _: httpx.AsyncClient) -> None:
        matcher, count = server.broker.presence.matcher, 50_000
        rng = np.random.default_rng(3)
        known = matcher.add_clients([f"x{number}" for number in range(count)])
        async with talking(server, "last") as last, looking(server, max_queue=1) as slow, looking(server) as quick:
            await report(last, "49.0,8.0")
            await quick.until(lambda page: near(page.at("last"), 49.0, 8.0))
            begun = quick.frames
            for _turn in range(10):  # 800 kB each, far more than sockets hold
                matcher.move_many(known, rng.uniform(49, 50, count), rng.uniform(8, 9, count))
                frames = quick.frames
                await quick.until(lambda page, frames=frames: page.frames > frames)  # type: ignore[misc]
            assert quick.frames - begun >= 10
            await report(last, "49.5,8.5")
            await quick.until(lambda page: near(page.at("last"), 49.5, 8.5))
            await slow.until(lambda page: near(page.at("last"), 49.5, 8.5))
            assert slow.frames < quick.frames
            assert quick.hellos == 1
            # What the slow one sees in the end is what the quick one sees.
            await slow.until(lambda page: page.where == quick.where)

    shown(tmp_path, story, dashboard={"period": 50_000})


def test_a_viewer_that_vanishes_leaves_its_seat(tmp_path: Path) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        for _ in range(3):  # more than there are seats
            async with looking(server) as page:
                await page.until(lambda page: page.of("tick"))
                page.connection.transport.abort()
            await until(lambda: server.broker.publishing.spectator is None)

    shown(tmp_path, story, dashboard={"viewers": 1})


def test_what_is_no_wish_ends_the_conversation(tmp_path: Path) -> None:
    async def story(server: Server, _: httpx.AsyncClient) -> None:
        async with looking(server) as page:
            await page.connection.send("no json")
            await page.connection.wait_closed()
            assert page.connection.close_code == 4400

    shown(tmp_path, story)


def test_somebody_in_the_place_of_somebody_who_has_just_gone_is_seen(tmp_path: Path) -> None:
    async def story(server: Server, _: httpx.AsyncClient) -> None:
        async with AsyncExitStack() as stack:
            async with talking(server, "ada") as ada:
                await report(ada, HERE)
                page = await stack.enter_async_context(looking(server))
                await page.until(lambda page: near(page.at("ada"), 49.8728, 8.6512))
            # All within one period: the same number, at the same place.
            bob = await stack.enter_async_context(talking(server, "bob"))
            await report(bob, HERE)
            await page.until(lambda page: near(page.at("bob"), 49.8728, 8.6512))
            assert page.at("ada") is None

    shown(tmp_path, story, dashboard={"period": 2_000_000})


def test_kinds_that_do_not_fit_are_not_remembered() -> None:
    kinds = Kinds()
    numbers = [kinds.number(f"role {number}") for number in range(10 * MOST_KINDS)]
    assert numbers[: MOST_KINDS - 1] == list(range(1, MOST_KINDS))
    assert set(numbers[MOST_KINDS - 1 :]) == {0}
    assert len(kinds.words) == len(kinds._numbers) == MOST_KINDS
    assert role_of({"": {"role": "x" * 10_000}}) == "x" * LONGEST_KIND


def test_words_that_nobody_has_are_forgotten() -> None:
    kinds = Kinds()
    of = [kinds.number(word) for word in ("a", "b", "c", "d")]
    assert of == [1, 2, 3, 4]

    def counts() -> list[int]:
        return [of.count(number) for number in range(len(kinds.words))]

    assert kinds.tidy(counts()) is None
    of[3] = 0  # the last goes at once
    assert kinds.tidy(counts()) is None
    assert kinds.words == ["", "a", "b", "c"]
    of[0] = 0  # in the place of one before comes the last
    assert kinds.tidy(counts()) == (3, 1)
    assert kinds.words == ["", "c", "b", "c"]  # until those who have it are told
    of[2] = kinds.number("c")
    assert of[2] == 1
    assert kinds.tidy(counts()) is None
    assert kinds.words == ["", "c", "b"]
    assert kinds.number("a") == 3


def test_a_client_that_changes_its_role_leaves_nothing_in_the_legend(tmp_path: Path) -> None:
    async def story(server: Server, _: httpx.AsyncClient) -> None:
        async with talking(server, "evil") as evil, talking(server, "ada") as ada, looking(server) as page:
            for talker in (evil, ada):
                await report(talker, HERE)
            for number in range(10):
                await evil.tell("$nearcast/context/me", json.dumps({"role": f"junk {number}"}).encode())
                await page.until(lambda page, number=number: page.kind_of("evil") == ("", f"junk {number}"))  # type: ignore[misc]
                if number == 4:
                    await ada.tell("$nearcast/context/me", b'{"role": "medic"}')
                    await page.until(lambda page: page.kind_of("ada") == ("", "medic"))
            await page.until(lambda page: sorted(page.roles) == ["", "junk 9", "medic"])
            await page.until(lambda page: page.kind_of("evil") == ("", "junk 9"))
            await page.until(lambda page: page.kind_of("ada") == ("", "medic"))

    shown(tmp_path, story, dashboard={"period": 50_000})


def test_who_begins_is_told_what_was_while_it_was_away(tmp_path: Path) -> None:
    async def story(server: Server, _: httpx.AsyncClient) -> None:
        live = server.broker.scheming.live
        async with looking(server) as first:
            await first.until(lambda page: len(page.of("tick")) == 2)
            assert first.hello["transitions"] == []
            life = first.hello["life"]
        live.transition("EGRID(factor=10)")
        async with looking(server) as page:
            await page.until(lambda page: page.hellos)
            [done] = page.hello["transitions"]
            assert (done["from"], done["to"], done["clients"]) == ("RADIAL", "EGRID(factor=10)", 0)
            assert abs(done["at_us"] - server.broker.clock.now()) < 60_000_000
            told = first.hello["ticks"] + [{"at_us": each["at_us"], "load": each["load"]} for each in first.of("tick")]
            assert page.hello["ticks"][: len(told)] == told
            assert page.hello["life"] == life

    shown(tmp_path, story, **on_ground())


def test_one_page_too_many_is_told_so(tmp_path: Path) -> None:
    async def story(server: Server, _: httpx.AsyncClient) -> None:
        async with looking(server) as page:
            await page.until(lambda page: page.of("tick"))
            async with looking(server) as other:
                await other.connection.wait_closed()
                assert other.connection.close_code == 4429
                assert "1 pages are open already" in (other.connection.close_reason or "")
            await page.until(lambda page: len(page.of("tick")) == 2)

    shown(tmp_path, story, dashboard={"viewers": 1})


def test_what_is_not_timed_says_nothing_of_delays(tmp_path: Path) -> None:
    async def story(server: Server, _: httpx.AsyncClient) -> None:
        async with talking(server, "ada") as ada, talking(server, "src") as source, looking(server) as page:
            await ada.subscribe("plain", 0)
            await page.until(lambda page: page.of("tick"))
            source.publish("plain", b"x")
            await page.until(lambda page: page.of("event"))
            page.messages.clear()
            await page.until(lambda page: page.of("tick"))
            load = page.of("tick")[0]["load"]
            assert load["publishes_per_s"] > 0
            assert load["delay_ms_p50"] is load["delay_ms_p99"] is None
            await source.tell("placed", b"x", [("nc-place", HERE)])
            await page.until(lambda page: page.of("tick")[-1]["load"]["delay_ms_p50"] is not None)

    shown(tmp_path, story)


def test_who_looks_at_a_client_hears_that_it_has_gone(tmp_path: Path) -> None:
    name = "a long name " * 80  # nearly as long as may be

    async def story(server: Server, client: httpx.AsyncClient) -> None:
        async with looking(server) as page:
            async with talking(server, name):
                await page.say(watch=name)
                await page.until(lambda page: page.of("client"))
                assert page.of("client")[0]["client"] == name
                answer = await client.get("/dashboard/api/client", params={"name": name})
                assert answer.json()["client"] == name
            await page.until(lambda page: page.of("gone"))
            assert page.of("gone")[0]["client"] == name

    shown(tmp_path, story)


def test_who_begins_costs_as_little_as_who_looks(tmp_path: Path) -> None:
    """Not more than one beginning is made for each picture, and no picture more because somebody pauses and goes on."""

    async def story(server: Server, _: httpx.AsyncClient) -> None:
        feed = Feed(server.broker, DashboardSettings(), lambda: Point(0.0, 0.0))
        first, second = feed.join(), feed.join()
        await until(lambda: feed.statistics().looks > 0)
        assert await first.parcels() is await second.parcels()
        feed.leave(second)
        looks = feed.statistics().looks
        for _turn in range(200):
            for paused in (True, False):
                first.pause(paused)
                await asyncio.sleep(0)
        assert feed.statistics().looks <= looks + 2  # it takes less than two periods
        await until(lambda: feed.statistics().looks > looks + 2)
        feed.leave(first)

    shown(tmp_path, story)
