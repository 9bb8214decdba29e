"""One connection among others."""

from __future__ import annotations

import asyncio

import pytest
from mqtt5 import PublishPacket, SubscribePacket, TopicFilter
from tests.broker.in_memory import in_memory


def test_a_connection_that_cannot_be_written_to_is_cut_off_and_keeps_nobody_else_waiting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        async with in_memory() as world:
            clients = [await world.connect(name) for name in ("ada", "bob", "eve")]
            for client in clients:
                client.say(SubscribePacket(1, [TopicFilter("news")]))
            await world.quiet()

            def fail(_data: object) -> None:
                raise ValueError("a transport that has lost its mind")

            clients[0].transport.write = fail  # type: ignore[method-assign,assignment]
            writer = await world.connect("writer")
            for payload in (b"1", b"2"):
                writer.say(PublishPacket("news", payload))
                await world.quiet()
            assert [client.payloads() for client in clients] == [[], [b"1", b"2"], [b"1", b"2"]]
            assert clients[0].transport.is_closing()

    asyncio.run(story())
    assert "is cut off" in caplog.text
