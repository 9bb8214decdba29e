"""What is in the broker's way is told to operators, wherever they look, and no longer when it is gone."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.broker.talker import talking
from tests.broker.test_http import by_http

from nearcast.broker.logs import ProblemLog
from nearcast.broker.server import Server


async def metric(client: httpx.AsyncClient, name: str) -> float:
    text = (await client.get("/metrics")).text
    return next(family for family in text_string_to_metric_families(text) if family.name == name).samples[0].value


def test_a_lake_that_cannot_be_written_is_told_until_it_can(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    lake = tmp_path / "lake"
    lake.touch()  # a file stands where the folder should be

    async def story(server: Server, client: httpx.AsyncClient) -> None:
        broker = server.broker

        async def export() -> list[str]:
            """What the log says of it."""
            caplog.clear()
            await asyncio.to_thread(broker.archive.attempt)
            broker._tick()
            return [message for name, _, message in caplog.record_tuples if name == "nearcast.broker.logs"]

        async with talking(server, "writer") as writer:
            await writer.tell("a", b"1")
            (said,) = await export()
            assert str(lake) in said
            assert await export() == []  # once is enough
            ready = await client.get("/readyz")
            assert (ready.status_code, ready.text) == (200, f"ready, but degraded: {said}\n")
            assert (await client.get("/status")).json()["archive"] == {"exported": 0, "rows": 0, "problem": said}
            assert await metric(client, "nearcast_lake_writable") == 0

            lake.unlink()
            assert await export() == ["the lake can be written again"]
            assert (await client.get("/readyz")).text == "ready\n"
            assert (await client.get("/status")).json()["archive"]["problem"] is None
            assert await metric(client, "nearcast_lake_writable") == 1
            assert await metric(client, "nearcast_lake_exported") == broker.journal.head

    by_http(tmp_path / "data", story, journal={"lake": lake})


def test_what_comes_and_goes_between_two_looks_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    problems: dict[str, str | None] = {"journal": None, "lake": None}
    told = ProblemLog({name: lambda name=name: problems[name] for name in problems})  # type: ignore[misc]
    told.look()
    problems["journal"] = "the disk is full"
    told.look()
    problems["journal"] = "the disk is still full"
    told.look()
    problems["lake"] = "no room"
    told.look()
    problems["journal"] = None
    told.look()
    told.look()
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("ERROR", "the disk is full"),
        ("ERROR", "no room"),
        ("WARNING", "the journal can be written again"),
    ]


def test_the_status_has_the_statistics_of_whoever_lets_clients_in(tmp_path: Path) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        async with talking(server, "writer"):
            status = (await client.get("/status")).json()
        assert status["admission"]["connections"] == 2  # by HTTP, too
        assert status["access"]["refused"] == 0
        assert status["answering"] == {"outcomes": {}}

    by_http(tmp_path, story)
