"""MQTT 3.1.1: the bytes of the specification, and of clients that people use."""

from __future__ import annotations

import socket
from typing import Any

import mqtt5
import paho.mqtt.client as paho
import pytest
from hypothesis import given
from mqtt5 import (
    ConnAckReasonCode,
    DisconnectReasonCode,
    PubAckReasonCode,
    QoS,
    SubAckReasonCode,
    UnsubAckReasonCode,
)
from paho.mqtt.enums import CallbackAPIVersion
from tests.mqtt.packets import connects, from_clients, from_servers

from nearcast.errors import ProtocolError
from nearcast.mqtt import codec3
from nearcast.mqtt.stream import V311, PacketReader

PROTOCOL_ERROR = DisconnectReasonCode.PROTOCOL_ERROR
MALFORMED = DisconnectReasonCode.MALFORMED_PACKET


def read(raw: bytes) -> mqtt5.Packet:
    assert raw[1] == len(raw) - 2, "for packets of less than 128 bytes"
    return codec3.read(raw, raw[0], 2, len(raw))


def framed(first: int, body: bytes) -> bytes:
    return bytes((first, len(body))) + body


@given(connects(V311))
def test_connects_come_back_as_they_were(packet: mqtt5.ConnectPacket) -> None:
    (back,) = PacketReader().packets(codec3.write(packet))
    assert back == packet


@given(from_clients(V311) | from_servers(V311))
def test_all_other_packets_come_back_as_they_were(packet: mqtt5.Packet) -> None:
    raw = codec3.write(packet)
    length_bytes = next(count for count in range(1, 5) if raw[count] < 0x80)
    assert codec3.read(raw, raw[0], 1 + length_bytes, len(raw)) == packet


@pytest.mark.parametrize(
    ("packet", "raw"),
    [
        (mqtt5.PublishPacket("a/b", b"hi"), b"\x30\x07\x00\x03a/bhi"),
        (mqtt5.PublishPacket("a/b", b"hi", retain=True), b"\x31\x07\x00\x03a/bhi"),
        (
            mqtt5.PublishPacket("a/b", b"hi", qos=QoS.EXACTLY_ONCE, packet_id=10, duplicate=True),
            b"\x3c\x09\x00\x03a/b\x00\x0ahi",
        ),
        (mqtt5.PubAckPacket(258), b"\x40\x02\x01\x02"),
        (mqtt5.PubRecPacket(258), b"\x50\x02\x01\x02"),
        (mqtt5.PubRelPacket(258), b"\x62\x02\x01\x02"),
        (mqtt5.PubCompPacket(258), b"\x70\x02\x01\x02"),
        (
            mqtt5.SubscribePacket(10, [mqtt5.TopicFilter("a/b", max_qos=QoS.AT_LEAST_ONCE, retain_as_published=False)]),
            b"\x82\x08\x00\x0a\x00\x03a/b\x01",
        ),
        (mqtt5.UnsubscribePacket(10, ["a/b", "c"]), b"\xa2\x0a\x00\x0a\x00\x03a/b\x00\x01c"),
        (mqtt5.UnsubAckPacket(10, []), b"\xb0\x02\x00\x0a"),
        (mqtt5.PingReqPacket(), b"\xc0\x00"),
        (mqtt5.PingRespPacket(), b"\xd0\x00"),
        (mqtt5.DisconnectPacket(), b"\xe0\x00"),
        (mqtt5.ConnAckPacket(session_present=True), b"\x20\x02\x01\x00"),
        (
            mqtt5.ConnectPacket("c", clean_start=True, keep_alive=10),
            b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x0a\x00\x01c",
        ),
        (
            mqtt5.ConnectPacket(
                "", clean_start=True, will=mqtt5.Will("w", payload=b"x", qos=QoS.AT_LEAST_ONCE, retain=True)
            ),
            b"\x10\x12\x00\x04MQTT\x04\x2e\x00\x00\x00\x00\x00\x01w\x00\x01x",
        ),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, bytes) else "",
)
def test_the_bytes_are_those_of_the_specification(packet: mqtt5.Packet, raw: bytes) -> None:
    assert codec3.write(packet) == raw
    assert read(raw) == packet


def test_a_session_that_is_not_clean_never_expires_and_a_clean_one_at_once() -> None:
    kept, clean = (read(framed(0x10, b"\x00\x04MQTT\x04" + bytes((flags, 0, 10)) + b"\x00\x01c")) for flags in (0, 2))
    assert isinstance(kept, mqtt5.ConnectPacket)
    assert isinstance(clean, mqtt5.ConnectPacket)
    assert (kept.clean_start, kept.session_expiry_interval) == (False, 0xFFFFFFFF)
    assert (clean.clean_start, clean.session_expiry_interval) == (True, 0)


def test_subscriptions_have_the_semantics_of_3_1_1() -> None:
    packet = read(framed(0x82, b"\x00\x01\x00\x01a\x02"))
    assert isinstance(packet, mqtt5.SubscribePacket)
    (topic_filter,) = packet.topic_filters
    assert not topic_filter.no_local
    assert not topic_filter.retain_as_published
    assert topic_filter.retain_handling == mqtt5.RetainHandling.SEND_ALWAYS


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (ConnAckReasonCode.SUCCESS, 0),
        (ConnAckReasonCode.UNSUPPORTED_PROTOCOL_VERSION, 1),
        (ConnAckReasonCode.CLIENT_ID_NOT_VALID, 2),
        (ConnAckReasonCode.SERVER_UNAVAILABLE, 3),
        (ConnAckReasonCode.SERVER_BUSY, 3),
        (ConnAckReasonCode.QUOTA_EXCEEDED, 3),
        (ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD, 4),
        (ConnAckReasonCode.NOT_AUTHORIZED, 5),
        (ConnAckReasonCode.BANNED, 5),
    ],
    ids=str,
)
def test_reasons_of_mqtt_5_become_the_nearest_return_code(reason: ConnAckReasonCode, code: int) -> None:
    packet = mqtt5.ConnAckPacket(session_present=True, reason_code=reason)
    assert codec3.write(packet) == bytes((0x20, 2, code == 0, code))


def test_what_3_1_1_has_no_words_for_is_left_out() -> None:
    refused = [SubAckReasonCode.NOT_AUTHORIZED, SubAckReasonCode.GRANTED_QOS_AT_LEAST_ONCE]
    assert codec3.write(mqtt5.SubAckPacket(1, refused, reason_str="no")) == b"\x90\x04\x00\x01\x80\x01"
    assert codec3.write(mqtt5.UnsubAckPacket(1, [UnsubAckReasonCode.NO_SUBSCRIPTION_EXISTED])) == b"\xb0\x02\x00\x01"
    assert codec3.write(mqtt5.PubAckPacket(1, reason_code=PubAckReasonCode.QUOTA_EXCEEDED)) == b"\x40\x02\x00\x01"
    assert codec3.write(mqtt5.DisconnectPacket(reason_code=DisconnectReasonCode.SERVER_SHUTTING_DOWN)) == b""
    assert codec3.write(mqtt5.AuthPacket()) == b""
    publish = mqtt5.PublishPacket("a", b"x", user_properties=[("k", "v")], message_expiry_interval=5, topic_alias=1)
    assert codec3.write(publish) == b"\x30\x04\x00\x01ax"


WRONG: dict[str, tuple[bytes, Any]] = {
    "duplicate of QoS 0": (framed(0x38, b"\x00\x01a"), PROTOCOL_ERROR),
    "QoS 3": (framed(0x36, b"\x00\x01a\x00\x01"), MALFORMED),
    "empty topic": (framed(0x30, b"\x00\x00"), PROTOCOL_ERROR),
    "wildcard in a topic": (framed(0x30, b"\x00\x03a/+"), PROTOCOL_ERROR),
    "NUL in a topic": (framed(0x30, b"\x00\x01\x00"), MALFORMED),
    "surrogate in a topic": (framed(0x30, b"\x00\x03\xed\xa0\x80"), MALFORMED),
    "topic beyond the end": (framed(0x30, b"\x00\x09a"), MALFORMED),
    "no topic at all": (framed(0x30, b"\x00"), MALFORMED),
    "packet id 0": (framed(0x32, b"\x00\x01a\x00\x00"), PROTOCOL_ERROR),
    "no packet id": (framed(0x32, b"\x00\x01a\x00"), MALFORMED),
    "flags of PUBACK": (framed(0x41, b"\x00\x01"), MALFORMED),
    "flags of PUBREL": (framed(0x60, b"\x00\x01"), MALFORMED),
    "flags of SUBSCRIBE": (framed(0x80, b"\x00\x01\x00\x01a\x00"), MALFORMED),
    "bytes behind PUBACK": (framed(0x40, b"\x00\x01\x00"), MALFORMED),
    "bytes behind PINGREQ": (framed(0xC0, b"x"), MALFORMED),
    "SUBSCRIBE without filter": (framed(0x82, b"\x00\x01"), PROTOCOL_ERROR),
    "UNSUBSCRIBE without filter": (framed(0xA2, b"\x00\x01"), PROTOCOL_ERROR),
    "empty filter": (framed(0x82, b"\x00\x01\x00\x00\x00"), PROTOCOL_ERROR),
    "empty filter of UNSUBSCRIBE": (framed(0xA2, b"\x00\x01\x00\x00"), PROTOCOL_ERROR),
    "filter with QoS 3": (framed(0x82, b"\x00\x01\x00\x01a\x03"), MALFORMED),
    "filter with options of MQTT 5": (framed(0x82, b"\x00\x01\x00\x01a\x05"), MALFORMED),
    "filter without QoS": (framed(0x82, b"\x00\x01\x00\x01a"), MALFORMED),
    "AUTH": (framed(0xF0, b""), MALFORMED),
    "type 0": (framed(0x00, b""), MALFORMED),
    "return code 6": (framed(0x20, b"\x00\x06"), MALFORMED),
    "reserved bits of CONNACK": (framed(0x20, b"\x02\x00"), MALFORMED),
    "SUBACK without codes": (framed(0x90, b"\x00\x01"), MALFORMED),
    "SUBACK with code 3": (framed(0x90, b"\x00\x01\x03"), MALFORMED),
}


@pytest.mark.parametrize(("raw", "reason"), WRONG.values(), ids=WRONG)
def test_what_the_specification_forbids_is_refused(raw: bytes, reason: Any) -> None:
    with pytest.raises(ProtocolError) as caught:
        read(raw)
    assert caught.value.reason == reason


def connect(flags: int, rest: bytes) -> bytes:
    return framed(0x10, b"\x00\x04MQTT\x04" + bytes((flags, 0, 0)) + rest)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (connect(0x03, b"\x00\x01c"), MALFORMED),
        (connect(0x1E, b"\x00\x01c\x00\x01t\x00\x00"), MALFORMED),
        (connect(0x0A, b"\x00\x01c"), MALFORMED),
        (connect(0x22, b"\x00\x01c"), MALFORMED),
        (connect(0x42, b"\x00\x01c\x00\x01p"), MALFORMED),
        (connect(0x00, b"\x00\x00"), ConnAckReasonCode.CLIENT_ID_NOT_VALID),
        (connect(0x06, b"\x00\x01c\x00\x01#\x00\x00"), ConnAckReasonCode.TOPIC_NAME_INVALID),
        (connect(0x02, b"\x00\x01cx"), MALFORMED),
        (connect(0x82, b"\x00\x01c"), MALFORMED),
        (connect(0xC2, b"\x00\x01c\x00\x01u\x00\x05p"), MALFORMED),
        (connect(0x02, b""), MALFORMED),
        (framed(0x10, b"\x00\x04MQTT\x04"), ConnAckReasonCode.UNSUPPORTED_PROTOCOL_VERSION),
    ],
    ids=[
        "reserved flag",
        "will of QoS 3",
        "QoS of no will",
        "retain of no will",
        "password without user name",
        "empty client id with a session to keep",
        "wildcard in the will's topic",
        "bytes behind the end",
        "user name missing",
        "password beyond the end",
        "client id missing",
        "ends behind the level",
    ],
)
def test_a_connect_that_the_specification_forbids_is_refused(raw: bytes, reason: Any) -> None:
    with pytest.raises(ProtocolError) as caught:
        read(raw)
    assert caught.value.reason == reason


def test_paho_understands_what_is_written_and_writes_what_is_understood() -> None:
    """A client that people use, over a real socket: connect with will and password, subscribe, publish, receive."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(5)
    client = paho.Client(CallbackAPIVersion.VERSION2, "paho", clean_session=False, protocol=paho.MQTTv311)
    client.username_pw_set("ada", "secret")
    client.will_set("last/words", b"bye", qos=2, retain=True)
    received: list[paho.MQTTMessage] = []
    client.on_message = lambda _client, _data, message: received.append(message)

    def on_connect(*_: object) -> None:
        client.subscribe([("a/#", 1), ("b/+", 2)])

    def on_subscribe(*_: object) -> None:
        client.publish("up", b"\xff" * 200, qos=1, retain=True)

    client.on_connect, client.on_subscribe = on_connect, on_subscribe
    try:
        client.connect("127.0.0.1", listener.getsockname()[1], keepalive=33)
        server, _ = listener.accept()
        server.settimeout(5)
        client.loop_start()
        with server:
            _converse(server)
    finally:
        client.loop_stop()
        listener.close()
    message = received[0]
    assert (message.topic, message.payload, message.qos, message.retain) == ("a/é", b"\x80" * 300, 0, True)


def _converse(server: socket.socket) -> None:
    reader = PacketReader()

    def following() -> Any:
        while True:
            yield from reader.packets(server.recv(65_536))

    packets = following()
    connected = next(packets)
    assert (connected.client_id, connected.username, connected.password) == ("paho", "ada", b"secret")
    assert (connected.clean_start, connected.keep_alive) == (False, 33)
    assert connected.will == mqtt5.Will("last/words", payload=b"bye", qos=QoS.EXACTLY_ONCE, retain=True)
    server.sendall(codec3.write(mqtt5.ConnAckPacket()))
    subscribed = next(packets)
    assert [(one.pattern, int(one.max_qos)) for one in subscribed.topic_filters] == [("a/#", 1), ("b/+", 2)]
    granted = [SubAckReasonCode.GRANTED_QOS_AT_LEAST_ONCE, SubAckReasonCode.GRANTED_QOS_EXACTLY_ONCE]
    server.sendall(codec3.write(mqtt5.SubAckPacket(subscribed.packet_id, granted)))
    published = next(packets)
    assert (published.topic, published.payload, published.retain) == ("up", b"\xff" * 200, True)
    server.sendall(codec3.write(mqtt5.PubAckPacket(published.packet_id)))
    server.sendall(codec3.write(mqtt5.PublishPacket("a/é", b"\x80" * 300, retain=True)))
    # Answered only after the message before it was handed over.
    server.sendall(codec3.write(mqtt5.PublishPacket("a", b"", qos=QoS.AT_LEAST_ONCE, packet_id=9)))
    assert next(packets) == mqtt5.PubAckPacket(9)
