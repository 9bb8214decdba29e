"""What goes wrong: brokers that are not there, that do not answer, that throw clients out."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import mqtt5
import pytest
from mqtt5 import ConnAckReasonCode, DisconnectReasonCode, PublishPacket
from tests.client.peers import Answer, Peer, peer, refusing, welcoming
from tests.served import ServedBroker
from tests.waiting import free_port

import nearcast
from nearcast.client.link import FIRST_PAUSE, LONGEST_PAUSE, pauses
from nearcast.errors import (
    ConnectionFailed,
    Denied,
    InvalidInput,
    NearcastError,
    NotAuthenticated,
    QuotaExceeded,
    TimedOut,
)

LONG = 60.0


def with_peer(answer: Answer, body: Callable[[Peer], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(LONG), peer(answer) as it:
            await body(it)

    asyncio.run(run())


def refused(url: str, **options: Any) -> NearcastError:
    async def run() -> None:
        async with nearcast.connect(url, **options):
            pytest.fail("nobody should be let in")

    with pytest.raises(NearcastError) as caught:
        asyncio.run(run())
    return caught.value


def test_a_broker_that_is_not_there_is_said_to_be_so_with_what_to_look_at() -> None:
    error = refused(f"mqtt://me:secret@127.0.0.1:{free_port()}")
    assert isinstance(error, ConnectionFailed)
    assert isinstance(error, ConnectionError)
    assert "is the broker running" in str(error)
    assert "secret" not in str(error)


def test_a_host_without_an_address_is_said_to_be_so() -> None:
    assert "cannot be reached" in str(refused("mqtt://no-such-host.invalid"))


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("localhost", "mqtt://"),
        ("http://localhost", "mqtt://"),
        ("mqtt://", "no host"),
        ("mqtt://localhost/path", "path"),
        ("mqtt://localhost:port", "no address"),
    ],
)
def test_an_address_that_is_none_is_refused_at_once(url: str, part: str) -> None:
    with pytest.raises(InvalidInput, match=part):
        nearcast.connect(url)


def test_certificates_for_a_connection_without_them_are_refused() -> None:
    with pytest.raises(InvalidInput, match="mqtts://"):
        nearcast.connect("mqtt://localhost", tls="authority.pem")
    with pytest.raises(InvalidInput, match="no readable file"):
        nearcast.connect("mqtts://localhost", tls="no-such-file.pem")


@pytest.mark.parametrize(
    ("reason", "error", "part"),
    [
        (ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD, NotAuthenticated, "check user and password"),
        (ConnAckReasonCode.NOT_AUTHORIZED, Denied, "give a user and a password"),
        (ConnAckReasonCode.SERVER_BUSY, ConnectionFailed, "try again later"),
        (ConnAckReasonCode.CLIENT_ID_NOT_VALID, ConnectionFailed, "client id"),
    ],
)
def test_a_refused_connection_says_why_and_what_to_do(
    reason: ConnAckReasonCode, error: type[Exception], part: str
) -> None:
    async def body(it: Peer) -> None:
        with pytest.raises(error, match=part):
            async with nearcast.connect(it.url):
                pass

    with_peer(refusing(reason), body)


def test_the_words_of_the_broker_are_passed_on() -> None:
    async def body(it: Peer) -> None:
        with pytest.raises(Denied, match="not on Sundays"):
            async with nearcast.connect(it.url):
                pass

    with_peer(refusing(ConnAckReasonCode.NOT_AUTHORIZED, "not on Sundays"), body)


def test_a_peer_that_says_nothing_is_given_up() -> None:
    async def body(it: Peer) -> None:
        with pytest.raises(TimedOut, match=r"did not answer within 0\.05 s"):
            async with nearcast.connect(it.url, timeout=0.05):
                pass

    with_peer(lambda _: [], body)


def test_a_peer_that_speaks_something_else_is_no_broker() -> None:
    async def run() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(10)
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(ConnectionFailed, match="MQTT 5"):
                async with nearcast.connect(f"mqtt://127.0.0.1:{port}"):
                    pass

    asyncio.run(run())


def test_what_is_not_acknowledged_times_out_and_says_that_it_may_have_arrived() -> None:
    async def body(it: Peer) -> None:
        async with nearcast.connect(it.url, schemes=False) as me:
            with pytest.raises(TimedOut, match="may have arrived"):
                await me.publish("a", timeout=0.05)
            with pytest.raises(TimeoutError):
                await me.publish("a", qos=2, timeout=0.05)

    with_peer(welcoming, body)


def test_subscribing_times_out_too_and_leaves_nothing_behind() -> None:
    async def body(it: Peer) -> None:
        async with nearcast.connect(it.url, timeout=0.1) as me:
            with pytest.raises(TimedOut, match="'a/#'"):
                await me.subscribe("a/#").open()
            assert me.statistics().subscriptions == 0

    with_peer(welcoming, body)


def test_publishers_wait_when_too_much_is_in_flight() -> None:
    async def body(it: Peer) -> None:
        async with nearcast.connect(it.url, max_in_flight=5) as me:
            tasks = [asyncio.create_task(me.publish("a", str(number), timeout=LONG)) for number in range(20)]
            await it.until(lambda peer: sum(isinstance(each, PublishPacket) for each in peer.heard) >= 5)
            await me.publish("a", b"after these", qos=0)
            await it.until(
                lambda peer: isinstance(peer.heard[-1], PublishPacket) and peer.heard[-1].payload == b"after these"
            )
            assert sum(isinstance(each, PublishPacket) for each in it.heard) == 6
            assert me.statistics().link.protocol.in_flight == 5
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    with_peer(welcoming, body)


def test_a_client_whose_id_another_one_uses_gives_up() -> None:
    """Fighting over the session would never end."""

    def answer(packet: mqtt5.Packet) -> list[mqtt5.Packet]:
        if isinstance(packet, PublishPacket):
            return [mqtt5.DisconnectPacket(reason_code=DisconnectReasonCode.SESSION_TAKEN_OVER)]
        return welcoming(packet)

    async def body(it: Peer) -> None:
        async with nearcast.connect(it.url) as me:
            with pytest.raises(ConnectionFailed, match="an id of its own"):
                await me.publish("a", timeout=LONG)
            with pytest.raises(ConnectionFailed):
                await me.publish("a")
            with pytest.raises(ConnectionFailed):
                await me.subscribe("a").open()
        assert it.connections == 1

    with_peer(answer, body)


def test_whoever_reads_is_told_when_the_connection_is_lost_for_good() -> None:
    def answer(packet: mqtt5.Packet) -> list[mqtt5.Packet]:
        match packet:
            case mqtt5.SubscribePacket():
                return [mqtt5.SubAckPacket(packet.packet_id, [mqtt5.SubAckReasonCode.GRANTED_QOS_AT_LEAST_ONCE])]
            case PublishPacket():
                return [mqtt5.DisconnectPacket(reason_code=DisconnectReasonCode.SESSION_TAKEN_OVER)]
        return welcoming(packet)

    async def body(it: Peer) -> None:
        async with nearcast.connect(it.url) as me, me.subscribe("a") as events:
            reading = asyncio.create_task(events.next(LONG))
            await me.publish("a", qos=0)
            with pytest.raises(ConnectionFailed, match="same client id"):
                await reading

    with_peer(answer, body)


def test_a_connection_that_breaks_is_made_again_and_the_publication_sent_again() -> None:
    answers = iter([mqtt5.DisconnectPacket(reason_code=DisconnectReasonCode.SERVER_BUSY), None])

    def answer(packet: mqtt5.Packet) -> list[mqtt5.Packet]:
        if isinstance(packet, PublishPacket) and packet.packet_id:
            return [next(answers) or mqtt5.PubAckPacket(packet.packet_id)]
        if isinstance(packet, mqtt5.ConnectPacket):
            return [mqtt5.ConnAckPacket(session_present=True)]
        return []

    async def body(it: Peer) -> None:
        async with nearcast.connect(it.url, session_expiry="2h") as me:
            published = await me.publish("a", b"x")
            assert me.statistics().link.connections == 2
        connects = [each for each in it.heard if isinstance(each, mqtt5.ConnectPacket)]
        assert len({each.client_id for each in connects}) == 1, "the same client"
        assert {(each.clean_start, each.session_expiry_interval) for each in connects} == {(False, 7200)}
        first, again = (each for each in it.heard if isinstance(each, PublishPacket))
        assert ("nc-id", published) in first.user_properties
        assert (first.user_properties, first.packet_id) == (again.user_properties, again.packet_id)
        assert again.duplicate

    with_peer(answer, body)


def test_a_client_that_leaves_ends_a_session_that_nobody_could_resume() -> None:
    async def body(it: Peer) -> None:
        async with nearcast.connect(it.url):
            pass
        async with nearcast.connect(it.url, client_id="me"):
            pass
        await it.until(lambda peer: sum(isinstance(each, mqtt5.DisconnectPacket) for each in peer.heard) == 2)
        ends = [each.session_expiry_interval for each in it.heard if isinstance(each, mqtt5.DisconnectPacket)]
        assert ends == [0, None]

    with_peer(welcoming, body)


def test_a_broker_that_is_silent_for_too_long_is_left() -> None:
    async def body(it: Peer) -> None:
        async with nearcast.connect(it.url, keep_alive=1):
            await it.until(lambda peer: peer.connections == 2)

    def answer(packet: mqtt5.Packet) -> list[mqtt5.Packet]:
        return [mqtt5.ConnAckPacket()] if isinstance(packet, mqtt5.ConnectPacket) else []

    with_peer(answer, body)


def test_refused_publications_and_subscriptions_keep_the_connection() -> None:
    def answer(packet: mqtt5.Packet) -> list[mqtt5.Packet]:
        match packet:
            case PublishPacket(packet_id=int(number)):
                reason = mqtt5.PubAckReasonCode.QUOTA_EXCEEDED
                return [mqtt5.PubAckPacket(number, reason_code=reason, reason_str="too fast")]
            case mqtt5.SubscribePacket():
                refusal = mqtt5.SubAckReasonCode.NOT_AUTHORIZED
                return [mqtt5.SubAckPacket(packet.packet_id, [refusal], reason_str="not yours")]
        return welcoming(packet)

    async def body(it: Peer) -> None:
        async with nearcast.connect(it.url) as me:
            with pytest.raises(QuotaExceeded, match="too fast"):
                await me.publish("a")
            with pytest.raises(Denied, match="not yours") as caught:
                await me.subscribe("a").open()
            assert caught.value.reason == 0x87
        assert it.connections == 1

    with_peer(answer, body)


def test_pauses_double_up_to_a_bound_and_differ_between_clients() -> None:
    waits = pauses(lambda: 0.5)
    first = [next(waits) for _ in range(20)]
    assert first[0] == pytest.approx(0.75 * FIRST_PAUSE)
    assert all(later == pytest.approx(min(2 * earlier, 0.75 * LONGEST_PAUSE)) for earlier, later in pairwise(first))
    for chance in (0.0, 0.999):
        pause = next(pauses(lambda chance=chance: chance))  # type: ignore[misc]
        assert FIRST_PAUSE / 2 <= pause < FIRST_PAUSE


def test_a_closed_client_says_so(broker: ServedBroker) -> None:
    async def run() -> None:
        async with nearcast.connect(broker.url) as me:
            events = me.subscribe("a")
            await events.open()
        with pytest.raises(StopAsyncIteration):
            await anext(events)
        for qos in (0, 1):
            with pytest.raises(ConnectionFailed, match="closed"):
                await me.publish("a", qos=qos)

    asyncio.run(run())


def test_a_fault_of_the_client_itself_ends_what_waits_for_it() -> None:
    def answer(packet: mqtt5.Packet) -> list[mqtt5.Packet]:
        match packet:
            case mqtt5.SubscribePacket():
                return [mqtt5.SubAckPacket(packet.packet_id, [mqtt5.SubAckReasonCode.GRANTED_QOS_AT_LEAST_ONCE])]
            case PublishPacket():
                return [PublishPacket("a", b"")]
        return welcoming(packet)

    def fail(_delivery: object) -> None:
        raise ZeroDivisionError("a fault")

    async def body(it: Peer) -> None:
        async with nearcast.connect(it.url) as me, me.subscribe("a") as events:
            me.delivered = fail  # type: ignore[method-assign, assignment]
            reading = asyncio.create_task(anext(events))
            await me.publish("a", qos=0)
            with pytest.raises(ConnectionFailed, match="a fault"):
                await reading

    with_peer(answer, body)
