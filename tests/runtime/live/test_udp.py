"""UDP links between hosts of one machine: who gets what, and that every byte is accounted for."""

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.live.street import PORT, Number, Street, Text, size
from tests.runtime.live.virtual import live, neighbourhood
from tests.waiting import until

from nearcast.errors import InvalidInput, ObserverActed
from nearcast.runtime.links import NOBODY_LISTENS, RECEIVED, SENT, UNKNOWN_RECEIVER, Traffic
from nearcast.runtime.live.sockets import address_text, socket_address
from nearcast.runtime.live.udp import LARGEST, TOO_LARGE
from nearcast.runtime.messages import PORT_BYTES, encoded
from nearcast.runtime.ports import Sending


def test_a_message_reaches_the_one_it_is_sent_to() -> None:
    street = Street("abc")

    async def story() -> None:
        text = Text("hello")
        assert street.endpoint("a").send(street.link("b").address, text) is Sending.ACCEPTED
        assert not street.heard("b"), "a callback never comes from inside the call that asked for it"
        await until(lambda: bool(street.heard("b")))
        assert street.heard("b") == [(street.link("a").address, text)]
        assert not street.heard("a")
        assert not street.heard("c")

    live(lambda: street.told(story))
    sent, received = (
        Traffic("wifi", direction, "text", host, 1, size(Text("hello")))
        for direction, host in ((SENT, "a"), (RECEIVED, "b"))
    )
    assert list(street.runtime.traffic()) == [sent, received]
    [(time, ended, *row)] = street.rows["messages"]
    assert time <= ended
    assert row == ["wifi", "text", "a", "b", sent.bytes, SENT, 0]
    assert not street.rows["drops"]


def test_a_host_may_write_to_itself() -> None:
    street = Street("a")

    async def story() -> None:
        street.endpoint("a").send(street.link("a").address, Text("note"))
        await until(lambda: bool(street.heard("a")))

    live(lambda: street.told(story))
    assert street.heard("a") == [(street.link("a").address, Text("note"))]


def test_everybody_hears_a_broadcast_but_the_sender_and_other_groups() -> None:
    street = Street("abcd")
    elsewhere = Street("x")
    texts = [Text(str(number)) for number in range(20)]

    async def story() -> None:
        for text in texts:
            assert street.endpoint("a").broadcast(text) is Sending.ACCEPTED
        expected = [(street.link("a").address, text) for text in texts]
        await until(lambda: all(street.heard(name) == expected for name in "bcd"))
        # Whoever hears this broadcast, the last of all, has heard the others before.
        street.endpoint("b").broadcast(Text("last"))
        await until(lambda: len(street.heard("a")) > 0)
        assert street.heard("a") == [(street.link("b").address, Text("last"))]
        assert not elsewhere.heard("x")

    live(lambda: street.told(lambda: elsewhere.told(story)))
    assert street.link("a").books[SENT, "text"] == [20, sum(map(size, texts))]
    assert [row[5:] for row in street.rows["messages"][:20]] == [(None, size(text), SENT, 0) for text in texts]


def test_a_message_may_be_as_large_as_a_datagram_and_no_larger() -> None:
    street = Street("ab")
    header = len(encoded(Text("x" * 1_000))) - 1_000
    fits = Text("x" * (LARGEST - PORT_BYTES - header))
    larger = Text(fits.text + "x")

    async def story() -> None:
        to = street.link("b").address
        assert street.endpoint("a").send(to, larger) is Sending.DROPPED
        assert street.endpoint("a").broadcast(larger) is Sending.DROPPED
        assert street.endpoint("a").send(to, fits) is Sending.ACCEPTED
        await until(lambda: bool(street.heard("b")))
        assert street.heard("b") == [(street.link("a").address, fits)]

    live(lambda: street.told(story))
    assert [row[1:] for row in street.rows["drops"]] == [("wifi", "a", "text", TOO_LARGE, 1, size(larger))] * 2
    assert [row[7] for row in street.rows["messages"]] == [TOO_LARGE, TOO_LARGE, SENT]
    assert street.link("a").statistics().dropped == {TOO_LARGE: 2}


@pytest.mark.parametrize(
    "address",
    [
        *(
            "",
            "bob",
            "127.0.0.1",
            "127.0.0.1:0",
            "127.0.0.1:65536",
            "127.0.0.1:-1",
            "127.0.0.1:٣",
            "127.1:40",
            "::1:40",
        ),
        *("localhost:40001", "0.0.0.0:40001", "239.255.0.1:40001", "255.255.255.255:40001", "127.0.0.1\0:40", " :40"),
    ],
)
def test_an_address_that_is_none_is_an_unknown_receiver(address: str) -> None:
    street = Street("a")

    async def story() -> None:
        assert street.endpoint("a").send(address, Text("?")) is Sending.DROPPED

    live(lambda: street.told(story))
    assert street.link("a").statistics().dropped == {UNKNOWN_RECEIVER: 1}
    assert not list(street.runtime.traffic())


@given(st.ip_addresses(v=4).filter(lambda address: 0 < address.packed[0] < 224), st.integers(1, 65_535))
def test_an_address_is_read_as_it_was_written(host: object, port: int) -> None:
    assert socket_address(address_text((str(host), port))) == (str(host), port)


def test_what_nobody_listens_for_is_dropped_and_counted() -> None:
    network = neighbourhood()
    street, others = Street("a", network, Text, Number), Street("b", network, Text)

    async def story() -> None:
        to = others.link("b").address
        other_port = street.runtime.hosts["a"].links["wifi"].open(PORT + 1, lambda *_: None, Text)
        street.endpoint("a").send(to, Number(1))
        other_port.send(to, Text("x"))
        await until(lambda: len(others.rows["drops"]) == 2)
        others.endpoint("b").close()
        others.endpoint("b").close()
        street.endpoint("a").send(to, Text("y"))
        await until(lambda: len(others.rows["drops"]) == 3)
        assert not others.heard("b")

    live(lambda: street.told(lambda: others.told(story)))
    assert [row[1:] for row in others.rows["drops"]] == [
        ("wifi", "b", "number", NOBODY_LISTENS, 1, size(Number(1))),
        ("wifi", "b", "text", NOBODY_LISTENS, 1, size(Text("x"))),
        ("wifi", "b", "text", NOBODY_LISTENS, 1, size(Text("y"))),
    ]
    assert others.link("b").statistics().dropped == {NOBODY_LISTENS: 3}
    assert RECEIVED not in {row.direction for row in others.runtime.traffic()}


def test_ports_are_checked_as_in_the_simulated_half() -> None:
    street = Street("a")

    async def story() -> None:
        for port in (-1, 256):
            with pytest.raises(InvalidInput, match="outside 0 to 255"):
                street.link("a").open(port, lambda *_: None, Text)
        with pytest.raises(InvalidInput, match="open already"):
            street.link("a").open(PORT, lambda *_: None, Text)

    live(lambda: street.told(story))


def test_observers_may_not_send() -> None:
    street = Street("a")

    def curious() -> float:
        street.endpoint("a").broadcast(Text("x"))
        return 1.0

    street.runtime.observers.measure("curious", curious)

    async def story() -> None:
        with pytest.raises(ObserverActed, match="send"):
            street.runtime.observers.sample()

    live(lambda: street.told(story))
    assert not street.rows["messages"]


def test_two_runtimes_share_a_group_and_know_each_other_by_address() -> None:
    street = Street("a")
    second = Street("b", street.network)

    async def story() -> None:
        street.endpoint("a").broadcast(Text("x"))
        street.endpoint("a").send(second.link("b").address, Text("y"))
        await until(lambda: len(second.heard("b")) == 2)

    live(lambda: street.told(lambda: second.told(story)))
    me = street.link("a").address
    assert sorted(second.heard("b"), key=str) == [(me, Text("x")), (me, Text("y"))]
    assert [row[4:6] for row in street.rows["messages"]] == [("a", None), ("a", second.link("b").address)]


def test_a_burst_of_datagrams_does_not_hold_up_whatever_else_is_due() -> None:
    street = Street("ab", None, Number)
    counts = [0]

    async def story() -> None:
        for number in range(200):
            street.endpoint("a").send(street.link("b").address, Number(number))
        while counts[-1] < 200:
            await asyncio.sleep(0)
            counts.append(len(street.heard("b")))

    live(lambda: street.told(story))
    assert max(after - before for before, after in pairwise(counts)) <= 64
    assert [message for _, message in street.heard("b")] == [Number(number) for number in range(200)]
