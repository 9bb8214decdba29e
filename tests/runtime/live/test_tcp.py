"""Links by TCP between hosts of one process: they are made when needed, come back, and refuse whom they should."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop
from tests.waiting import free_port, until

from nearcast.errors import ConnectionFailed, SetupError
from nearcast.runtime.live.addresses import address_of, host_and_port, name_of, where
from nearcast.runtime.live.channel import Channel
from nearcast.runtime.live.clock import LiveClock
from nearcast.runtime.live.secured import Introduction, NotUnderstood, WrongSecret
from nearcast.runtime.live.tcp import Identity, TcpLink, TcpSettings
from nearcast.runtime.messages import Message
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Endpoint, Sending

PORT = 7


class Word(Message, frozen=True, tag="word"):
    text: str


class Other(Message, frozen=True, tag="other word"):
    number: int


class End:
    """One host."""

    def __init__(self, name: str, secret: bytes = b"shared", settings: TcpSettings | None = None) -> None:
        self.name, self.secret = name, secret
        self.heard: list[tuple[str, str]] = []
        self.problem = ""
        self.link = TcpLink("wired", LiveClock(), lambda call, *given: call(*given), Observers(), self._judge, settings)
        self.endpoint: Endpoint

    def _judge(self, _other: Introduction) -> str:
        return self.problem

    async def up(self, port: int = 0, life: int = 1) -> str:
        port = await self.link.listen("127.0.0.1", port)
        self.link.begin(
            Identity(address_of(self.name, "127.0.0.1", port), f"instance of {self.name}", life, self.secret)
        )
        self.endpoint = self.link.open(PORT, lambda sender, word: self.heard.append((sender, word.text)), Word)
        return self.link.address

    def say(self, to: str, text: str) -> Sending:
        return self.endpoint.send(to, Word(text))


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(story())


def test_what_is_said_arrives_in_order_over_one_connection() -> None:
    async def story() -> None:
        one, two = End("one"), End("two")
        first, second = await one.up(), await two.up()
        assert one.say(second, "0") is Sending.QUEUED
        for number in range(1, 100):
            one.say(second, str(number))
        await until(lambda: len(two.heard) == 100)
        assert two.heard == [(first, str(number)) for number in range(100)]
        assert two.say(first, "back") is Sending.ACCEPTED
        await until(lambda: one.heard == [(second, "back")])
        assert one.link.statistics().connected == two.link.statistics().connected == 1
        await one.link.end()
        await two.link.end()

    run(story)


def test_if_both_call_at_once_one_connection_stays_and_nothing_is_lost_for_good() -> None:
    async def story() -> None:
        one, two = End("one"), End("two")
        first, second = await one.up(), await two.up()
        for number in range(50):
            one.say(second, f"a{number}")
            two.say(first, f"b{number}")
        await until(lambda: one.link.statistics().connected == two.link.statistics().connected == 1)
        await asyncio.sleep(0.05)
        one.say(second, "last a")
        two.say(first, "last b")
        await until(lambda: (first, "last a") in two.heard and (second, "last b") in one.heard)
        await one.link.end()
        await two.link.end()

    run(story)


def test_a_host_that_returns_is_reached_again() -> None:
    async def story() -> None:
        one, two = End("one", settings=TcpSettings(retry_after=0.01)), End("two")
        await one.up()
        second = await two.up()
        one.say(second, "before")
        await until(lambda: len(two.heard) == 1)
        await two.link.end()
        await until(lambda: not one.link.connected(second))
        one.say(second, "lost")
        await until(lambda: one.link.statistics().dropped.get("unreachable", 0) > 0)
        again = End("two")
        await again.up(host_and_port(second.partition("@")[2])[1], life=2)
        await until(lambda: one.say(second, "again") is not None and bool(again.heard))
        await one.link.end()
        await again.link.end()

    run(story)


def test_who_knows_another_secret_or_is_not_welcome_is_refused_and_told() -> None:
    async def story() -> None:
        one, stranger, friend = End("one"), End("stranger", b"another"), End("friend")
        first = await one.up()
        await stranger.up()
        await friend.up()
        host, port = where(first) or ("", 0)
        with pytest.raises(WrongSecret, match="another secret"):
            await stranger.link.greet(host, port)
        one.problem = "two brokers are named 'one'"
        with pytest.raises(NotUnderstood, match="two brokers"):
            await friend.link.greet(host, port)
        one.problem = ""
        assert await friend.link.greet(host, port) == first
        twin = End("friend")
        await twin.up(life=5)
        twin.link.begin(Identity(twin.link.address, "another instance", 5, b"shared"))
        with pytest.raises(NotUnderstood, match="another broker is named 'friend'"):
            await twin.link.greet(host, port)
        assert one.link.statistics().refused == 3
        for each in (one, stranger, friend, twin):
            await each.link.end()

    run(story)


def test_what_is_no_such_port_is_recognised() -> None:
    async def story() -> None:
        one = End("one", settings=TcpSettings(handshake=0.2))
        await one.up()
        with pytest.raises(ConnectionFailed, match="cannot be reached"):
            await one.link.greet("127.0.0.1", free_port())

        async def talk(said: bytes | None) -> str:
            async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                if said is None:
                    await over.wait()
                else:
                    writer.write(said)
                writer.close()

            over = asyncio.Event()
            server = await asyncio.start_server(answer, "127.0.0.1", 0)
            with pytest.raises(ConnectionFailed) as caught:
                await one.link.greet("127.0.0.1", server.sockets[0].getsockname()[1])
            over.set()
            server.close()
            await asyncio.sleep(0.01)
            return str(caught.value)

        assert "no broker" in await talk(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        assert "no broker" in await talk(b"\0\0\0\x04none")
        assert "closed the connection" in await talk(b"")
        assert "did not say who it is" in await talk(None)
        with pytest.raises(SetupError, match="cannot listen"):
            await End("two").up(host_and_port(one.link.address.partition("@")[2])[1])
        await one.link.end()

    run(story)


def test_who_takes_nothing_is_sent_no_more_than_a_bounded_amount() -> None:
    async def story() -> None:
        one, two = End("one", settings=TcpSettings(most_waiting=100_000)), End("two")
        await one.up()
        second = await two.up()
        one.say(second, "hello")
        await until(lambda: bool(two.heard))
        outcomes = [one.say(second, "x" * 10_000) for _ in range(2_000)]  # nobody has a turn meanwhile
        assert Sending.DROPPED in outcomes
        assert one.link.statistics().dropped["queue full"] == outcomes.count(Sending.DROPPED)
        await one.link.end()
        await two.link.end()

    run(story)


def test_what_nobody_understands_or_listens_to_is_counted() -> None:
    async def story() -> None:
        one, two = End("one"), End("two")
        await one.up()
        second = await two.up()
        elsewhere = one.link.open(9, lambda _sender, _word: None, Word)
        elsewhere.send(second, Word("nobody is there"))
        await until(lambda: two.link.statistics().dropped.get("nobody listens") == 1)
        one.endpoint.close()
        one.link.open(PORT, lambda _sender, _word: None, Other).send(second, Other(1))
        await until(lambda: two.link.statistics().dropped.get("not understood") == 1)
        assert one.endpoint.send("nonsense", Word("x")) is Sending.DROPPED
        await one.link.end()
        await two.link.end()

    run(story)


def test_who_only_holds_places_keeps_nobody_out() -> None:
    async def story() -> None:
        one, two = End("one", settings=TcpSettings(most_strangers=3)), End("two")
        first = await one.up()
        await two.up()
        host, port = where(first) or ("", 0)
        silent = [await asyncio.open_connection(host, port) for _ in range(3)]
        await asyncio.sleep(0.05)
        assert await two.link.greet(host, port) == first
        assert await silent[0][0].read() == b"", "who came first goes first"
        for _, writer in silent:
            writer.close()
        await one.link.end()
        await two.link.end()

    run(story)


@pytest.mark.parametrize(("runner", "unnoticed"), [(asyncio.run, Sending.ACCEPTED), (uvloop.run, Sending.DROPPED)])
def test_a_connection_that_is_gone_is_not_written_to(
    runner: Callable[[Coroutine[Any, Any, None]], None], unnoticed: Sending
) -> None:
    """On uvloop, which brokers run on, a write to a closed transport raises; asyncio is silent."""

    async def story() -> None:
        one, two = End("one"), End("two")
        await one.up()
        second = await two.up()
        one.say(second, "before")
        await until(lambda: bool(two.heard))
        channel = one.link._channels[second]
        channel._writer.transport.abort()
        await asyncio.sleep(0)  # the transport is closed; whoever reads has not heard of it yet
        one.link._channels[second] = channel
        outcomes = [one.say(second, "into nothing")]
        with pytest.MonkeyPatch.context() as patch:  # and if it is found out by the write only
            patch.setattr(Channel, "open", True)
            try:
                outcomes.append(one.say(second, "into nothing"))
            finally:
                await one.link.end()
                await two.link.end()
        assert outcomes == [Sending.DROPPED, unnoticed]

    runner(story())


def test_addresses_say_who_and_where() -> None:
    assert address_of("berlin", "10.0.0.1", 7400) == "berlin@10.0.0.1:7400"
    assert where(address_of("a", "::1", 1)) == ("::1", 1)
    assert name_of("berlin@10.0.0.1:7400") == "berlin"
    for wrong in ("berlin", "berlin@", "b@host", "b@host:0", "b@host:70000", "@host:1", "a b@host:1"):
        assert where(wrong) is None
