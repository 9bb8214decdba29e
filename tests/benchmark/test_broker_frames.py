"""The load generator reads streams of frames however they are cut into pieces."""

import itertools
from collections.abc import Iterable

import mqtt5
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nearcast.benchmark.broker_frames import KINDS, REFUSED, TOTAL, Scan, mqtt_frames, nats_frames, redis_frames
from nearcast.benchmark.broker_packets import CONNACK, PINGRESP, PUBACK, PUBLISH, SUBACK, Dialect, numbered

PAYLOAD = 16


def scan(scanner: Scan, pieces: Iterable[bytes]) -> tuple[list[int], list[int], dict[int, int]]:
    """Numbers, packet identifiers and the count of each kind; nothing may be left over at the end."""
    numbers, identifiers, tally = np.zeros(1000, np.int64), np.zeros(1000, np.int64), np.zeros(KINDS, np.int64)
    found: list[int] = []
    seen: list[int] = []
    rest = b""
    for piece in pieces:
        data = np.frombuffer(rest + piece, np.uint8)
        before = tally[PUBLISH]
        consumed = scanner(data, len(data), PAYLOAD, numbers, identifiers, tally)
        found += numbers[: tally[PUBLISH] - before].tolist()
        seen += identifiers[: tally[PUBLISH] - before].tolist()
        rest = data[consumed:].tobytes()
    assert rest == b""
    return found, seen, {kind: int(count) for kind, count in enumerate(tally) if count}


def cut(data: bytes, places: list[int]) -> list[bytes]:
    borders = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:stop] for start, stop in itertools.pairwise(borders)]


cuts = st.lists(st.integers(0, 10_000), max_size=20)


@given(
    messages=st.lists(st.tuples(st.integers(0, 2**62), st.sampled_from([0, 1]), st.integers(0, 200)), max_size=20),
    level=st.sampled_from([4, 5]),
    places=cuts,
)
def test_mqtt_deliveries_are_numbered_whatever_properties_they_carry(
    messages: list[tuple[int, int, int]], level: int, places: list[int]
) -> None:
    dialect = Dialect(level)
    data = b"".join(
        dialect.publish(
            "a/b", numbered(number, PAYLOAD), qos, place + 1, [("nc-place", "x" * extra)] if level == 5 else ()
        )
        for place, (number, qos, extra) in enumerate(messages)
    )
    numbers, identifiers, tally = scan(mqtt_frames, cut(data, places))
    assert numbers == [number for number, _, _ in messages]
    assert identifiers == [place + 1 if qos else 0 for place, (_, qos, _) in enumerate(messages)]
    assert tally == ({PUBLISH: len(messages)} if messages else {})


@given(places=cuts)
def test_mqtt_answers_are_counted_and_refusals_among_them(places: list[int]) -> None:
    packets: list[mqtt5.Packet] = [
        mqtt5.ConnAckPacket(),
        mqtt5.SubAckPacket(1, [mqtt5.SubAckReasonCode.GRANTED_QOS_AT_MOST_ONCE]),
        mqtt5.SubAckPacket(2, [mqtt5.SubAckReasonCode.NOT_AUTHORIZED]),
        mqtt5.PubAckPacket(1),
        mqtt5.PubAckPacket(2, reason_code=mqtt5.PubAckReasonCode.NO_MATCHING_SUBSCRIBERS),
        mqtt5.PubAckPacket(3, reason_code=mqtt5.PubAckReasonCode.QUOTA_EXCEEDED, reason_str="slow down"),
        mqtt5.PingRespPacket(),
        mqtt5.ConnAckPacket(reason_code=mqtt5.ConnAckReasonCode.SERVER_BUSY),
    ]
    _, _, tally = scan(mqtt_frames, cut(b"".join(packet.write() for packet in packets), places))
    assert tally == {CONNACK: 2, SUBACK: 2, PUBACK: 3, PINGRESP: 1, REFUSED: 3}


@given(outcomes=st.lists(st.booleans(), max_size=20), places=cuts)
def test_jetstream_acknowledgements_and_errors_are_counted(outcomes: list[bool], places: list[int]) -> None:
    data = b'INFO {"server_id":"M"}\r\n'
    for number, good in enumerate(outcomes):
        body = b'{"stream":"S","seq":%d}' % number if good else b'{"error":{"code":503},"stream":"S","seq":0}'
        data += b"MSG _INBOX.1 1 %d\r\n%b\r\nPING\r\n" % (len(body), body)
    _, _, tally = scan(nats_frames, cut(data, places))
    assert tally.get(PUBACK, 0) == len(outcomes)
    assert tally.get(REFUSED, 0) == outcomes.count(False)


@given(
    mark=st.sampled_from((b"*", b">")),
    messages=st.lists(
        st.integers(0, 2**62) | st.integers(0, 10_000).map(lambda answer: ("answer", answer)), max_size=20
    ),
    places=cuts,
)
def test_redis_messages_are_numbered_also_between_answers(
    mark: bytes, messages: list[int | tuple[str, int]], places: list[int]
) -> None:
    data = mark + b"3\r\n$9\r\nsubscribe\r\n$7\r\nc000001\r\n:1\r\n"
    answers = [message[1] for message in messages if isinstance(message, tuple)]
    for message in messages:
        if isinstance(message, tuple):
            data += b":%d\r\n" % message[1]
        else:
            payload = numbered(message, PAYLOAD)
            data += mark + b"3\r\n$7\r\nmessage\r\n$7\r\nc000001\r\n$%d\r\n%b\r\n" % (PAYLOAD, payload)
    numbers, _, tally = scan(redis_frames, cut(data, places))
    assert numbers == [message for message in messages if isinstance(message, int)]
    expected = {SUBACK: 1, PUBLISH: len(numbers), PUBACK: len(answers), TOTAL: sum(answers)}
    assert tally == {kind: count for kind, count in expected.items() if count}


def test_an_error_of_redis_is_a_refusal() -> None:
    assert scan(redis_frames, [b"-ERR unknown command\r\n"])[2] == {REFUSED: 1}
