"""Presence as an application sees it: it says who may observe it, and reads what others do."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from tests.broker.talker import broker

import nearcast
from nearcast.broker.server import Server
from nearcast.errors import InvalidInput, InvalidPosition, TimedOut


def url(server: Server) -> str:
    return "mqtt://{}:{}".format(*server.addresses["mqtt"])


def test_a_client_around_which_others_move_is_known_exactly_whatever_its_scheme(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with (
            nearcast.connect(url(server), client_id="ada") as ada,
            nearcast.connect(url(server), client_id="b/o b") as bob,
        ):
            await bob.observable(clients=["ada"])
            events = bob.subscribe("news", within=500)
            async with events, ada.presence("near", within=100, name="near") as near:
                await ada.update(lat=49.87, lon=8.65)
                await bob.update(lat=49.88, lon=8.65, role="friend")
                await bob.update(lat=49.8701, lon=8.65, accuracy=4)
                notice = await near.next(timeout=20)
                assert (notice.who, notice.kind, notice.what, notice.near) == ("b/o b", "near", "enter", "ada")
                await bob.observable()
                await bob.update(lat=49.88, lon=8.65)
                with pytest.raises(TimedOut):
                    await near.next(timeout=0.2)

    broker(tmp_path, scenario)


def test_the_broker_forgets_and_is_told_again_who_may_observe(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with (
            nearcast.connect(url(server), client_id="ada") as ada,
            nearcast.connect(url(server), client_id="bob", session_expiry=0) as bob,
        ):
            await bob.observable(True)
            stay = timedelta(milliseconds=50)
            async with ada.presence(within=100, at=(49.87, 8.65), who="bob", stay=stay, name="home") as home:
                await bob.update(lat=49.87, lon=8.65)
                assert [(await home.next(timeout=20)).kind for _ in range(2)] == ["enter", "stay"]
                conversation = server.broker.lifecycle.conversations["bob"]
                conversation.abandon()  # type: ignore[attr-defined]
                told = [await home.next(timeout=20) for _ in range(2)]
                assert [(notice.what, notice.reason) for notice in told] == [("leave", "gone"), ("enter", "appeared")]
                assert home.statistics().delivered == 4

    broker(tmp_path, scenario)


def test_what_makes_no_sense_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with nearcast.connect(url(server)) as ada:
            with pytest.raises(InvalidInput, match="there is no presence 'come'"):
                ada.presence("come", within=100, at=(49.87, 8.65))
            with pytest.raises(InvalidPosition, match="give lat and lon too"):
                await ada.update(accuracy=5)

    broker(tmp_path, scenario)
