"""What an attacker found in presence."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.broker.talker import broker, talking
from tests.broker.test_observation import BEYOND, INSIDE, OBSERVABLE, OUTSIDE, move, told, watched

from nearcast.broker.observation import stays
from nearcast.broker.server import Server


def test_there_is_one_timer_for_stays_however_many_there_were(tmp_path: Path) -> None:
    """Each visit that was due before the others left one more behind, which armed itself again for ever."""

    async def scenario(server: Server) -> None:
        kept = server.broker.observation._stays
        loop, timers = asyncio.get_running_loop(), list[asyncio.TimerHandle]()

        def later(seconds: float, function: Callable[[], None]) -> asyncio.TimerHandle:
            timers.append(loop.call_later(seconds, function))
            return timers[-1]

        kept.later = later
        async with talking(server, "ada") as ada, talking(server, "bob") as bob:
            await ada.subscribe("$nearcast/presence/stay/+", properties=watched(stay="1h", name="long"))
            await ada.subscribe("$nearcast/presence/stay/+", properties=watched(stay="1ms", name="short"))
            await bob.tell(OBSERVABLE, b"true")
            for _ in range(10):
                await move(bob, INSIDE)
                assert (await told(ada))["fence"] == "short"
                await move(bob, OUTSIDE)
        assert len(timers) >= 10
        assert sum(not timer.cancelled() and timer.when() > loop.time() for timer in timers) <= 1

    broker(tmp_path, scenario)


def test_visits_that_are_over_are_not_expected_until_a_stay_would_have_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever went in and out of an area that somebody watches for years filled the memory."""
    monkeypatch.setattr(stays, "FEW", 8)

    async def scenario(server: Server) -> None:
        kept = server.broker.observation._stays
        kept._most = 8
        async with talking(server, "ada") as ada, talking(server, "bob") as bob, talking(server, "eve") as eve:
            await ada.subscribe("$nearcast/presence/stay/+", properties=watched(stay="10000d"))
            for walker in (bob, eve):
                await walker.tell(OBSERVABLE, b"true")
            await move(eve, INSIDE)
            await move(bob, *[OUTSIDE, INSIDE, BEYOND] * 10)
        assert len(kept._due) <= 9

    broker(tmp_path, scenario)
