"""Bytes into packets: both versions, any cut, and what MQTT forbids."""

from __future__ import annotations

import itertools
from typing import Any

import mqtt5
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mqtt5 import ConnAckReasonCode, DisconnectReasonCode, QoS
from tests.mqtt.packets import connects, from_clients, from_servers, publishes

from nearcast.errors import ProtocolError
from nearcast.mqtt.stream import V5, V311, PacketReader, encode

CONNECT = {version: encode(mqtt5.ConnectPacket("c", clean_start=True), version) for version in (V311, V5)}
versions = st.sampled_from([V311, V5])


def reader_after_connect(version: int, largest: int = 1_000_000) -> PacketReader:
    reader = PacketReader(largest)
    (connect,) = reader.packets(CONNECT[version])
    assert isinstance(connect, mqtt5.ConnectPacket)
    return reader


def refused(data: bytes, version: int = V5, *, client: bool = False) -> ProtocolError:
    reader = PacketReader(version=version) if client else reader_after_connect(version)
    with pytest.raises(ProtocolError) as caught:
        list(reader.packets(data))
    return caught.value


def framed(first: int, body: bytes) -> bytes:
    assert len(body) < 0x80
    return bytes((first, len(body))) + body


@given(st.data(), versions)
def test_what_was_written_is_read_again_wherever_the_stream_is_cut(data: st.DataObject, version: int) -> None:
    sent: list[mqtt5.Packet] = [data.draw(connects(version)), *data.draw(st.lists(from_clients(version), max_size=5))]
    stream = b"".join(encode(packet, version) for packet in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    reader = PacketReader()
    chunks = [stream[start:end] for start, end in itertools.pairwise([0, *cuts, len(stream)])]
    assert [packet for chunk in chunks for packet in reader.packets(chunk)] == sent
    assert reader.version == version
    assert reader.statistics().held == 0


@given(st.data(), versions)
def test_a_client_reads_what_a_server_writes_byte_by_byte(data: st.DataObject, version: int) -> None:
    sent = data.draw(st.lists(from_servers(version), max_size=3))
    reader = PacketReader(version=version)
    stream = b"".join(encode(packet, version) for packet in sent)
    if len(stream) > 2_000:
        assert list(reader.packets(stream)) == sent
    else:
        assert [packet for byte in stream for packet in reader.packets(bytes((byte,)))] == sent


@given(st.binary(max_size=60), st.sampled_from([None, V311, V5]))
def test_random_bytes_raise_nothing_but_the_protocol_error(data: bytes, version: int | None) -> None:
    readers = [PacketReader(10_000, version)]
    if version is not None:
        readers.append(reader_after_connect(version, 10_000))
    for reader in readers:
        try:
            list(reader.packets(data))
        except ProtocolError as error:
            for connected in (True, False):
                reader.refusal(error, connected=connected)  # can be said, whatever it was


@given(st.data(), versions, st.booleans())
def test_mutated_packets_raise_nothing_but_the_protocol_error_and_cuts_change_nothing(
    data: st.DataObject, version: int, server: bool
) -> None:
    packets = st.one_of(connects(version), from_clients(version)) if server else from_servers(version)
    raw = bytearray(encode(data.draw(packets), version)[:2_000])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(raw) - 1)) if raw else 0
        match data.draw(st.sampled_from(["set", "insert", "delete"])):
            case "set" if raw:
                raw[at] = data.draw(st.sampled_from([0, 1, 2, 0x26, 0x7F, 0x80, 0xC3, 0xED, 0xFF]))
            case "delete" if raw:
                del raw[at]
            case _:
                raw.insert(at, data.draw(st.integers(0, 255)))
    if server and raw[:1] != b"\x10":
        raw[:0] = CONNECT[version]

    def outcome(chunks: list[bytes]) -> tuple[list[Any], bool]:
        reader = PacketReader(5_000, None if server else version)
        read: list[mqtt5.Packet] = []
        try:
            for chunk in chunks:
                read.extend(reader.packets(chunk))
        except ProtocolError:
            return read, True
        return read, False

    whole = outcome([bytes(raw)])
    assert outcome([bytes((byte,)) for byte in raw]) == whole


def test_every_truncation_waits_for_the_rest(capfd: pytest.CaptureFixture[str]) -> None:
    properties = [("nc-place", "49.8,8.6"), ("größe", "ü")]
    packet = mqtt5.PublishPacket("a/b", b"\xff\x00", qos=QoS.AT_LEAST_ONCE, packet_id=200, user_properties=properties)
    for version in (V311, V5):
        raw = encode(packet, version)
        for cut in range(len(raw)):
            reader = reader_after_connect(version)
            assert list(reader.packets(raw[:cut])) == []
            assert reader.statistics().held == cut
            (read,) = reader.packets(raw[cut:])
            assert encode(read, version) == raw
    assert "panicked" not in capfd.readouterr().err


def test_a_packet_too_large_is_refused_before_it_has_arrived() -> None:
    for version in (V311, V5):
        reader = reader_after_connect(version, largest=1_000)
        assert list(reader.packets(b"\x30")) == []
        with pytest.raises(ProtocolError, match="larger than the 1000") as caught:
            list(reader.packets(b"\xe6\x07"))  # 998 bytes and a header of three
        assert caught.value.reason == DisconnectReasonCode.PACKET_TOO_LARGE
    first = PacketReader(largest=100)
    with pytest.raises(ProtocolError, match="larger"):
        list(first.packets(b"\x10\xff\x01"))


def test_a_packet_as_large_as_allowed_is_read() -> None:
    for version in (V311, V5):
        raw = encode(mqtt5.PublishPacket("a", b"x" * 900), version)
        assert len(list(reader_after_connect(version, len(raw)).packets(raw))) == 1
        with pytest.raises(ProtocolError):
            list(reader_after_connect(version, len(raw) - 1).packets(raw))


def test_packets_before_a_malformed_one_are_still_read() -> None:
    good = mqtt5.PublishPacket("a", b"x")
    for version in (V311, V5):
        packets = iter(reader_after_connect(version).packets(encode(good, version) + b"\x36\x00"))
        assert next(packets) == good
        with pytest.raises(ProtocolError):
            next(packets)


def test_the_first_packet_must_be_a_connect_and_nothing_is_said_to_who_speaks_something_else() -> None:
    reader = PacketReader()
    with pytest.raises(ProtocolError, match="CONNECT") as caught:
        list(reader.packets(b"GET / HTTP/1.1\r\n\r\n"))
    assert reader.refusal(caught.value, connected=False) == b""


@pytest.mark.parametrize(
    ("connect", "answer"),
    [
        (b"\x10\x0f\x00\x06MQIsdp\x03\x02\x00\x3c\x00\x01c", b"\x20\x02\x00\x01"),
        (b"\x10\x0d\x00\x04MQTT\x03\x02\x00\x3c\x00\x01c", b"\x20\x02\x00\x01"),
    ],
    ids=["MQTT 3.1", "level 3"],
)
def test_older_versions_are_refused_in_their_own_words(connect: bytes, answer: bytes) -> None:
    reader = PacketReader()
    with pytest.raises(ProtocolError, match=r"3\.1\.1") as caught:
        list(reader.packets(connect))
    assert caught.value.reason == ConnAckReasonCode.UNSUPPORTED_PROTOCOL_VERSION
    assert reader.refusal(caught.value, connected=False) == answer


def test_a_version_to_come_is_refused_as_mqtt_5_does() -> None:
    reader = PacketReader()
    with pytest.raises(ProtocolError) as caught:
        list(reader.packets(framed(0x10, b"\x00\x04MQTT\x06\x02\x00\x3c\x00\x00\x01c")))
    answer, _ = mqtt5.read(memoryview(reader.refusal(caught.value, connected=False)))
    assert isinstance(answer, mqtt5.ConnAckPacket)
    assert answer.reason_code == ConnAckReasonCode.UNSUPPORTED_PROTOCOL_VERSION


def test_a_connected_client_of_mqtt_5_is_told_why() -> None:
    reader = reader_after_connect(V5)
    with pytest.raises(ProtocolError) as caught:
        list(reader.packets(b"\x36\x00"))
    answer, _ = mqtt5.read(memoryview(reader.refusal(caught.value, connected=True)))
    assert isinstance(answer, mqtt5.DisconnectPacket)
    assert answer.reason_code == DisconnectReasonCode.MALFORMED_PACKET
    assert answer.reason_str == str(caught.value)
    assert reader_after_connect(V311).refusal(caught.value, connected=True) == b""


def test_a_second_connect_and_packets_of_the_other_side_are_refused() -> None:
    for version in (V311, V5):
        assert refused(CONNECT[version], version).reason == DisconnectReasonCode.PROTOCOL_ERROR
        for packet in (mqtt5.ConnAckPacket(), mqtt5.SubAckPacket(1, [mqtt5.SubAckReasonCode.UNSPECIFIED_ERROR])):
            assert "cannot stand here" in str(refused(encode(packet, version), version))
        ping = encode(mqtt5.PingReqPacket(), version)
        assert "cannot stand here" in str(refused(ping, version, client=True))


PROPERTY_BEYOND_ITS_LENGTH = framed(0x30, b"\x00\x01a\x03\x26\x00\x01k\x00\x01vpay")
MALFORMED_5 = {
    "topic with NUL": framed(0x30, b"\x00\x03a\x00b\x00x"),
    "topic that is no UTF-8": framed(0x30, b"\x00\x03\xed\xa0\x80\x00x"),
    "property that is no UTF-8": framed(0x30, b"\x00\x01a\x07\x26\x00\x01\xff\x00\x01v"),
    "property with NUL": framed(0x30, b"\x00\x01a\x07\x26\x00\x01k\x00\x01\x00"),
    "properties beyond their length": PROPERTY_BEYOND_ITS_LENGTH,
    "QoS 3": framed(0x36, b"\x00\x01a\x00\x01\x00"),
    "format indicator 2": framed(0x30, b"\x00\x01a\x02\x01\x02"),
    "length of five bytes": b"\x30\xff\xff\xff\xff\x01",
    "subscription options with reserved bits": framed(0x82, b"\x00\x01\x00\x00\x01b\x01\x00\x01a\xc0"),
    "filter with NUL": framed(0x82, b"\x00\x01\x00\x00\x01\x00\x00"),
    "flags of PINGREQ": b"\xc1\x00",
    "reason string with NUL": framed(0x40, b"\x00\x01\x10\x04\x1f\x00\x01\x00"),
    "packet type 0": b"\x00\x00",
}
FORBIDDEN_5 = {
    "duplicate of QoS 0": framed(0x38, b"\x00\x01a\x00x"),
    "packet id 0 of a PUBLISH": framed(0x32, b"\x00\x01a\x00\x00\x00x"),
    "packet id 0 of a PUBACK": framed(0x40, b"\x00\x00"),
    "packet id 0 of a SUBSCRIBE": framed(0x82, b"\x00\x00\x00\x00\x01a\x00"),
    "packet id 0 of an UNSUBSCRIBE": framed(0xA2, b"\x00\x00\x00\x00\x01a"),
    "SUBSCRIBE without filter": framed(0x82, b"\x00\x01\x00"),
    "UNSUBSCRIBE without filter": framed(0xA2, b"\x00\x01\x00"),
    "empty filter": framed(0x82, b"\x00\x01\x00\x00\x00\x00"),
    "empty filter of UNSUBSCRIBE": framed(0xA2, b"\x00\x01\x00\x00\x00"),
    "shared and no local": framed(0x82, b"\x00\x01\x00\x00\x0a$share/g/a\x04"),
    "subscription id of a client": framed(0x30, b"\x00\x01a\x02\x0b\x01x"),
    "property twice": framed(0x30, b"\x00\x01a\x04\x01\x01\x01\x01x"),
    "empty topic without alias": framed(0x30, b"\x00\x00\x00x"),
    "wildcard in the response topic": framed(0x30, b"\x00\x01a\x04\x08\x00\x01#x"),
}


@pytest.mark.parametrize("raw", MALFORMED_5.values(), ids=MALFORMED_5)
def test_mqtt_5_calls_malformed(raw: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    assert refused(raw).reason == DisconnectReasonCode.MALFORMED_PACKET
    assert "panicked" not in capfd.readouterr().err


@pytest.mark.parametrize("raw", FORBIDDEN_5.values(), ids=FORBIDDEN_5)
def test_mqtt_5_calls_a_protocol_error(raw: bytes) -> None:
    assert refused(raw).reason == DisconnectReasonCode.PROTOCOL_ERROR


def test_topics_with_wildcards_and_alias_0_have_reasons_of_their_own() -> None:
    assert refused(framed(0x30, b"\x00\x03a/+\x00x")).reason == DisconnectReasonCode.TOPIC_NAME_INVALID
    assert refused(framed(0x30, b"\x00\x01a\x03\x23\x00\x00x")).reason == DisconnectReasonCode.TOPIC_ALIAS_INVALID


def connect5(flags: int, properties: bytes = b"", rest: bytes = b"") -> bytes:
    head = b"\x00\x04MQTT\x05" + bytes((flags,)) + b"\x00\x3c"
    return framed(0x10, head + bytes((len(properties),)) + properties + b"\x00\x01c" + rest)


@pytest.mark.parametrize(
    "raw",
    [
        connect5(0x03),
        connect5(0x1A),
        connect5(0x22),
        connect5(0x1E, rest=b"\x00\x00\x01t\x00\x00"),
        connect5(0x02, b"\x27\x00\x00\x00\x00"),
        connect5(0x02, b"\x21\x00\x00"),
        connect5(0x02, b"\x16\x00\x01x"),
        connect5(0x02, b"\x21\x00\x01\x21\x00\x01"),
        connect5(0x06, rest=b"\x00\x00\x01#\x00\x00"),
        connect5(0x06, rest=b"\x00\x00\x00\x00\x00"),
        connect5(0x06, rest=b"\x02\x01\x02\x00\x01t\x00\x00"),
        connect5(0x82, rest=b"\x00\x01\xff"),
        connect5(0x02, rest=b"x"),
        connect5(0x02, b"\x19\x02"),
    ],
    ids=[
        "reserved flag",
        "QoS of no will",
        "retain of no will",
        "will of QoS 3",
        "maximum packet size 0",
        "receive maximum 0",
        "authentication data without method",
        "property twice",
        "wildcard in the will's topic",
        "empty topic of the will",
        "format indicator of the will",
        "user name that is no UTF-8",
        "bytes behind the end",
        "request for response information 2",
    ],
)
def test_a_connect_that_mqtt_5_forbids_is_refused(raw: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ProtocolError):
        list(PacketReader().packets(raw))
    assert "panicked" not in capfd.readouterr().err


@given(st.lists(publishes(), min_size=1, max_size=5))
def test_publishes_of_a_chunk_come_in_their_order(packets: list[mqtt5.PublishPacket]) -> None:
    reader = reader_after_connect(V5)
    assert list(reader.packets(b"".join(packet.write() for packet in packets))) == packets
