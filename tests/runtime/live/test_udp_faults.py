"""UDP links in a bad world: garbage comes in, the kernel refuses, ports are taken."""

import asyncio
import errno
import socket
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.live.street import PORT, Number, Street, Text
from tests.runtime.live.virtual import live, started
from tests.waiting import free_port, until

from nearcast.errors import InvalidInput, SetupError
from nearcast.runtime.links import LINK_DOWN, QUEUE_FULL, SENT
from nearcast.runtime.live import LiveClock, UdpLink, UdpNetwork
from nearcast.runtime.live.udp import HEADERS, LARGEST, NOT_UNDERSTOOD, QUEUE, TOO_LARGE, UNREACHABLE, Station
from nearcast.runtime.messages import Message, encoded
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Sending

GARBAGE: Final = [
    b"",
    b"\0",
    bytes([PORT]),
    bytes([PORT]) + b"not msgpack",
    bytes([PORT]) + encoded(Text("cut off"))[:-1],
    bytes([PORT]) + encoded(Text("and more")) + b"\0",
    bytes([PORT]) + msgspec.msgpack.encode(["text", 17]),
    bytes([PORT]) + b"\x92\xa4text\xa1\xff",
    bytes([PORT]) + b"\x92\xa4text" + b"\x91" * 1_400,
    bytes([PORT]) + msgspec.msgpack.encode({"type": "text"}),
    bytes([PORT + 1]) + b"\xc1",
    bytes([PORT]) + msgspec.msgpack.encode(["text", "x" * 3_000]),
    # One of ours, were it cut off where reading ends.
    bytes([PORT]) + encoded(Text("x" * (LARGEST - len(encoded(Text("x" * 1_000))) + 1_000))) + b"more",
]


def test_garbage_is_dropped_and_counted_and_harms_nobody() -> None:
    street = Street("ab")

    async def story() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
            for garbage in GARBAGE:
                stranger.sendto(garbage, ("127.0.0.1", int(street.link("a").address.split(":")[1])))
                stranger.sendto(garbage, (street.network.group, street.network.group_port))
        await until(lambda: len(street.rows["drops"]) == 3 * len(GARBAGE))
        street.endpoint("b").send(street.link("a").address, Text("still here?"))
        await until(lambda: bool(street.heard("a")))

    live(lambda: street.told(story))
    assert street.heard("a") == [(street.link("b").address, Text("still here?"))]
    assert {row[4] for row in street.rows["drops"]} == {NOT_UNDERSTOOD}
    assert {row[3] for row in street.rows["drops"]} == {"unknown", "text"}
    assert street.link("b").statistics().dropped == {NOT_UNDERSTOOD: len(GARBAGE)}


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A datagram of ours with some bytes changed, or cut off."""
    message = draw(st.builds(Text, st.text(max_size=20)) | st.builds(Number, st.integers(0, 2**40)))
    data = bytearray(bytes([draw(st.sampled_from([PORT, PORT, PORT, 0]))]) + encoded(message))
    for place in draw(st.lists(st.integers(0, len(data) - 1), max_size=3)):
        data[place] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data)


def raising(callback: Callable[..., None], *arguments: Any) -> None:
    callback(*arguments)


@given(st.lists(damaged() | st.binary(max_size=40), max_size=30))
def test_whatever_comes_in_is_either_received_or_dropped(datagrams: list[bytes]) -> None:
    rows: list[tuple[Any, ...]] = []
    observers = Observers()
    observers.analyze("drops", lambda *row: rows.append(row))
    link = UdpLink(UdpNetwork(), Station("a", LiveClock(), raising, observers, {}))
    heard: list[Message] = []
    link.open(PORT, lambda _, message: heard.append(message), Text, Number)
    for data in datagrams:
        link._arrive(data, ("127.0.0.1", 5))
    statistics = link.statistics()
    assert statistics.received == len(heard)
    assert sum(statistics.dropped.values()) == len(rows) == len(datagrams) - len(heard)
    assert statistics.received_bytes + sum(row[-1] for row in rows) == sum(len(data) + HEADERS for data in datagrams)


class Clogged:
    """A kernel that takes nothing for a while, or fails in another way."""

    def __init__(self, real: socket.socket, error: OSError | None = None) -> None:
        self._real = real
        self.error: OSError | None = error or BlockingIOError(errno.EAGAIN, "full")

    def sendto(self, data: bytes, to: tuple[str, int]) -> int:
        if self.error is not None:
            raise self.error
        return self._real.sendto(data, to)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def clog(link: UdpLink, error: OSError | None = None) -> Clogged:
    real, group = link._sockets
    clogged: Any = Clogged(real, error)
    link._sockets = (clogged, group)
    result: Clogged = clogged
    return result


def test_when_the_kernel_takes_no_more_messages_wait_in_order_and_then_are_dropped() -> None:
    street = Street("ab", None, Number)
    extra = 5

    async def story() -> None:
        to = street.link("b").address
        kernel = clog(street.link("a"))
        sendings = [street.endpoint("a").send(to, Number(number)) for number in range(QUEUE + extra)]
        assert sendings == [Sending.QUEUED] * QUEUE + [Sending.DROPPED] * extra
        assert street.link("a").statistics().queued == QUEUE
        kernel.error = None
        # Who comes now does not overtake those who wait.
        await until(lambda: street.link("a").statistics().queued == 0)
        assert not asyncio.get_running_loop().remove_writer(street.link("a")._sockets[0]), "it would spin for ever"
        assert street.endpoint("a").send(to, Number(1_000)) is Sending.ACCEPTED
        await until(lambda: len(street.heard("b")) == QUEUE + 1)

    live(lambda: street.told(story))
    assert [message for _, message in street.heard("b")] == [Number(number) for number in [*range(QUEUE), 1_000]]
    assert street.link("a").statistics().dropped == {QUEUE_FULL: extra}
    assert street.link("a").books[SENT, "number"][0] == QUEUE + 1


def test_nobody_overtakes_those_who_wait() -> None:
    street = Street("ab", None, Number)

    async def story() -> None:
        to = street.link("b").address
        kernel = clog(street.link("a"))
        assert street.endpoint("a").send(to, Number(1)) is Sending.QUEUED
        kernel.error = None
        assert street.endpoint("a").send(to, Number(2)) is Sending.QUEUED
        await until(lambda: len(street.heard("b")) == 2)

    live(lambda: street.told(story))
    assert [message for _, message in street.heard("b")] == [Number(1), Number(2)]


def test_whoever_stops_while_messages_wait_drops_them_and_says_so() -> None:
    street = Street("ab", None, Number)

    async def story() -> None:
        clog(street.link("a"))
        for number in range(10):
            street.endpoint("a").send(street.link("b").address, Number(number))

    live(lambda: street.told(story))
    statistics = street.link("a").statistics()
    assert (statistics.sent, statistics.queued, statistics.dropped) == (0, 0, {LINK_DOWN: 10})
    assert [row[7] for row in street.rows["messages"]] == [LINK_DOWN] * 10


def test_what_waits_is_sent_when_stopping_if_the_kernel_takes_it_then() -> None:
    street = Street("ab", None, Number)

    async def story() -> None:
        kernel = clog(street.link("a"))
        for number in range(10):
            street.endpoint("a").send(street.link("b").address, Number(number))
        kernel.error = None
        street.runtime.hosts["a"].leave()
        await until(lambda: len(street.heard("b")) == 10)

    live(lambda: street.told(story))
    assert street.link("a").statistics().dropped == {}


def test_an_observer_that_raises_while_messages_wait_makes_nobody_send_twice() -> None:
    street = Street("ab", None, Number)

    def refuse_the_second(*row: Any) -> None:
        if row[7] == SENT and street.link("a").books[SENT, "number"][0] == 2:
            raise ZeroDivisionError

    async def story() -> None:
        running = await started(street.runtime)
        link = street.link("a")
        kernel = clog(link)
        for number in range(4):
            street.endpoint("a").send(street.link("b").address, Number(number))
        link._messages = refuse_the_second  # type: ignore[misc]
        kernel.error = None
        with pytest.raises(ZeroDivisionError):
            await running

    live(story)
    statistics = street.link("a").statistics()
    # The last one was sent on stopping: what the kernel took, it took once.
    assert (statistics.sent, statistics.queued) == (4, 0)


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.ENOBUFS, QUEUE_FULL),
        (errno.EMSGSIZE, TOO_LARGE),
        (errno.ENETDOWN, LINK_DOWN),
        (errno.ENETUNREACH, UNREACHABLE),
        (errno.EPERM, UNREACHABLE),
    ],
)
def test_what_the_kernel_refuses_is_dropped_with_the_reason(number: int, reason: str) -> None:
    street = Street("ab")

    async def story() -> None:
        kernel = clog(street.link("a"), OSError(number, "no"))
        assert street.endpoint("a").broadcast(Text("x")) is Sending.DROPPED
        kernel.error = None
        assert street.endpoint("a").broadcast(Text("y")) is Sending.ACCEPTED

    live(lambda: street.told(story))
    assert street.link("a").statistics().dropped == {reason: 1}


def test_a_link_that_is_down_drops_everything() -> None:
    street = Street("ab")

    async def story() -> None:
        street.runtime.hosts["a"].leave()
        assert street.endpoint("a").broadcast(Text("x")) is Sending.DROPPED
        assert street.endpoint("a").send(street.link("b").address, Text("x")) is Sending.DROPPED
        # To somebody who is away: UDP does not tell.
        assert street.endpoint("b").send(street.link("a").address, Text("x")) is Sending.ACCEPTED

    live(lambda: street.told(story))
    assert street.link("a").statistics().dropped == {LINK_DOWN: 2}
    assert not street.heard("b")


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody else uses."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        yield other.getsockname()[1]


def test_a_port_in_use_is_named_with_what_to_do(taken: int) -> None:
    street = Street("a", UdpNetwork(port=taken))
    with pytest.raises(SetupError, match=rf"127\.0\.0\.1:{taken} .*in use.*choose another one"):
        live(street.runtime.run)
    assert not street.runtime.hosts["a"].up
    assert not street.rows["clients"]


def test_two_runtimes_cannot_have_one_port() -> None:
    street = Street("a", UdpNetwork(port=free_port(socket.SOCK_DGRAM)))
    second = Street("b", street.network)

    async def story() -> None:
        with pytest.raises(SetupError, match=f":{street.network.port} "):
            await second.runtime.run()

    live(lambda: street.told(story))


def test_a_group_that_somebody_keeps_to_himself_is_named() -> None:
    street = Street("a")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as selfish:
        selfish.bind((street.network.group, street.network.group_port))
        with pytest.raises(SetupError, match=f"{street.network.group}:{street.network.group_port} "):
            live(street.runtime.run)


def test_an_address_that_this_machine_does_not_have_is_named() -> None:
    # 192.0.2.0/24 is for documentation (RFC 5737); 203.0.113.0/24 as well.
    street = Street("a", UdpNetwork(address="203.0.113.77"))
    with pytest.raises(SetupError, match=r"203\.0\.113\.77.*ip -4 address"):
        live(street.runtime.run)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"address": address} for address in ("0.0.0.0", "localhost", "239.255.0.1", "")),  # noqa: S104
        *({"group": group} for group in ("127.0.0.1", "240.0.0.1", "all")),
        *({"port": -1}, {"port": 65_536}, {"group_port": 0}),
    ],
)
def test_an_impossible_network_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        UdpNetwork(**wrong)
