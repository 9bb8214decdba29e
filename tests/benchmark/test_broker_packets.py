"""What the load generator sends is MQTT, as other people's codecs read it."""

import mqtt5
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.benchmark.broker_packets import (
    PING,
    Dialect,
    Stamps,
    acknowledgements,
    numbered,
    packet_identifiers,
)
from nearcast.errors import BenchmarkError
from nearcast.mqtt.codec3_reader import read as read_3_1_1

FIVE, THREE = Dialect(5), Dialect(4)


def read_all(data: bytes) -> list[mqtt5.Packet]:
    found, rest = [], memoryview(data)
    while rest:
        packet, size = mqtt5.read(rest)
        found.append(packet)
        rest = rest[size:]
    return found


def read_small_3_1_1(data: bytes) -> mqtt5.Packet:
    """A packet whose length takes one byte."""
    assert data[1] == len(data) - 2 < 128
    return read_3_1_1(data, data[0], 2, len(data))


def test_a_client_greets_with_its_name_and_a_clean_start() -> None:
    for packet in (*read_all(FIVE.connect("ada")), read_small_3_1_1(THREE.connect("ada"))):
        assert isinstance(packet, mqtt5.ConnectPacket)
        assert (packet.client_id, packet.clean_start, packet.keep_alive) == ("ada", True, 0)


def test_a_subscription_may_carry_properties() -> None:
    (packet,) = read_all(FIVE.subscribe(["a/b", "c/#"], qos=1, properties=[("nc-area", "150")], identifier=7))
    assert isinstance(packet, mqtt5.SubscribePacket)
    assert [wanted.pattern for wanted in packet.topic_filters] == ["a/b", "c/#"]
    assert packet.user_properties == [("nc-area", "150")]
    assert packet.packet_id == 7


def test_version_3_1_1_subscribes_without_properties_and_refuses_them() -> None:
    packet = read_small_3_1_1(THREE.subscribe(["a/b"], qos=1))
    assert isinstance(packet, mqtt5.SubscribePacket)
    assert packet.topic_filters[0].max_qos == mqtt5.QoS.AT_LEAST_ONCE
    with pytest.raises(BenchmarkError, match="no properties"):
        THREE.subscribe(["a/b"], properties=[("nc-area", "150")])


def test_an_unsubscription_names_its_filters() -> None:
    (packet,) = read_all(FIVE.unsubscribe(["a/b", "c"]))
    assert isinstance(packet, mqtt5.UnsubscribePacket)
    assert packet.patterns == ["a/b", "c"]
    assert isinstance(read_all(PING)[0], mqtt5.PingReqPacket)


@given(size=st.integers(8, 20_000), number=st.integers(0, 2**63 - 1), qos=st.sampled_from([0, 1]))
def test_a_publish_of_any_size_reads_as_written(size: int, number: int, qos: int) -> None:
    data = FIVE.publish("a/b", numbered(number, size), qos, 5, [("nc-place", "49.9,8.6")])
    (packet,) = read_all(data)
    assert isinstance(packet, mqtt5.PublishPacket)
    assert len(packet.payload) == size
    assert int.from_bytes(packet.payload[:8], "big") == number
    assert packet.user_properties == [("nc-place", "49.9,8.6")]
    assert packet.packet_id == (5 if qos else None)


@given(
    first=st.integers(0, 10**6),
    block=st.integers(1, 50),
    qos=st.sampled_from([0, 1]),
    payload=st.sampled_from([8, 128]),
)
def test_a_block_of_publishes_is_numbered_without_gaps(first: int, block: int, qos: int, payload: int) -> None:
    packets = read_all(Stamps(FIVE, "a/b", payload, block, qos).take(first))
    assert len(packets) == block
    for number, packet in enumerate(packets, first):
        assert isinstance(packet, mqtt5.PublishPacket)
        assert packet.payload == numbered(number, payload)
        assert packet.packet_id == (number % 65_535 + 1 if qos else None)


def test_part_of_a_block_and_version_3_1_1() -> None:
    data = Stamps(THREE, "a/b", 8, 10, qos=1).take(41, 1)
    packet = read_small_3_1_1(data)
    assert isinstance(packet, mqtt5.PublishPacket)
    assert (packet.payload, packet.packet_id) == (numbered(41, 8), 42)


@given(st.lists(st.integers(1, 65_535), min_size=1))
def test_each_packet_identifier_is_acknowledged(identifiers: list[int]) -> None:
    packets = read_all(acknowledgements(np.array(identifiers)))
    assert [packet.packet_id for packet in packets if isinstance(packet, mqtt5.PubAckPacket)] == identifiers


def test_packet_identifiers_are_never_zero() -> None:
    assert set(packet_identifiers(np.arange(200_000)).tolist()) == set(range(1, 65_536))
