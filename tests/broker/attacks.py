"""What malformed, hostile or merely strange clients send; as Hypothesis strategies."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from hypothesis import strategies as st
from mqtt5 import (
    AuthPacket,
    ConnectPacket,
    DisconnectPacket,
    Packet,
    PingReqPacket,
    PubAckPacket,
    PubCompPacket,
    PublishPacket,
    PubRecPacket,
    PubRelPacket,
    QoS,
    SubscribePacket,
    TopicFilter,
    UnsubscribePacket,
    Will,
)

from nearcast.mqtt.stream import encode


@dataclass(frozen=True)
class Attack:
    """Bytes, and in which pieces they come."""

    version: int
    data: bytes
    cuts: tuple[int, ...]
    websocket: bool

    def chunks(self) -> list[bytes]:
        places = [0, *sorted(cut % (len(self.data) + 1) for cut in self.cuts), len(self.data)]
        return [self.data[a:b] for a, b in pairwise(places) if a < b]


TOPICS: Final = (
    "a/b",
    "$nearcast/position",
    "$nearcast/context/car",
    "$nearcast/accept",
    "$nearcast/unpublish",
    "$nearcast/more/a/b",
    "$nearcast/enough/a/b",
    "$nearcast/announce/a/b",
    "$nearcast/scheme",
    "$nearcast/problems",
    "$nearcast/nothing",
    "$near/place=49.87,8.65;severity=4/a/b",
    "$near/area=500;since=-2h/a/b",
    "$near/to=kind%20%3D%20'car'/a/b",
    "$near/",
    "$SYS/x",
    "$share/g/a",
    "/",
)
FILTERS: Final = (
    *TOPICS,
    "a/#",
    "#",
    "+/b",
    "$share/g/a/#",
    "$share/g",
    "$near/area=500;since=-2h;where=severity%20%3E%3D%203/a/#",
)
NAMES: Final = (
    *("nc-id", "nc-place", "nc-reach", "nc-to", "nc-when", "nc-tag", "nc-channel", "nc-area", "nc-where", "nc-since"),
    *("nc-until", "nc-batch", "nc-name", "nc-schemes", "nc-unknown", "severity", ""),
)
VALUES: Final = (
    *("49.87,8.65", "here", "91,181", "nan,nan", "1e999,0", "500", "-1", "0", "1e308", "true", "null", '"text"', ""),
    *('{"circle": 500}', '{"circle": 500, "at": [8.65, 49.87]}', '{"rectangle": [10, 20]}', '{"box": [1, 2, 3, 4]}'),
    *(
        '{"outline": [[0, 0], [1, 0]]}',
        '{"type": "Polygon", "coordinates": []}',
        '{"circle": {}}',
        "[[[[[[",
        "{" * 2000,
    ),
    *("severity >= 3", "severity >", "kind = 'car'", "(" * 3000, "NOT " * 2000 + "a = 1", "a LIKE '%'", "T_DURING()"),
    *("-2h", "now", "2026-01-01T00:00:00Z", "..", "-99999999d", "9" * 400, "\u0661\u0662", "\U0001f600"),
    *(
        '{"path": "/a/b"}',
        '{"type": "Point", "coordinates": [8.65, 49.87]}',
        '{"a": [1, 2]}',
        '{"a": NaN}',
        '{"a": 1e400}',
    ),
)
PAYLOADS: Final = (
    *(value.encode() for value in VALUES),
    b"\x01" + bytes(8),
    b"\x01" + b"\x7f\xff\xff\xff" * 2,
    b"\x01\x02",
    b"\x93\x01\x02\x03",
    b"\x81\xa1a" * 500,
    b"\xdd\xff\xff\xff\xff",
    b"\xff\xfe",
)

texts = st.sampled_from(VALUES) | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
payloads = st.sampled_from(PAYLOADS) | st.binary(max_size=60)
properties = st.lists(st.tuples(st.sampled_from(NAMES), texts), max_size=4)
packet_ids = st.integers(1, 12)
QUALITIES: Final = (QoS.AT_MOST_ONCE, QoS.AT_LEAST_ONCE, QoS.EXACTLY_ONCE)


@st.composite
def publishes(draw: st.DrawFn) -> PublishPacket:
    qos = draw(st.sampled_from(QUALITIES))
    return PublishPacket(
        draw(st.sampled_from(TOPICS)),
        draw(payloads),
        qos=qos,
        retain=draw(st.booleans()),
        packet_id=None if qos == QoS.AT_MOST_ONCE else draw(packet_ids),
        topic_alias=draw(st.none() | st.integers(1, 70)),
        message_expiry_interval=draw(st.none() | st.sampled_from([0, 1, 2**32 - 1])),
        user_properties=draw(properties),
    )


@st.composite
def subscribes(draw: st.DrawFn) -> SubscribePacket:
    patterns = draw(st.lists(st.sampled_from(FILTERS), min_size=1, max_size=3))
    wanted = [TopicFilter(pattern, max_qos=draw(st.sampled_from(QUALITIES))) for pattern in patterns]
    identifier = draw(st.none() | st.sampled_from([1, 268_435_455]))
    return SubscribePacket(draw(packet_ids), wanted, subscription_id=identifier, user_properties=draw(properties))


def unsubscribes() -> st.SearchStrategy[UnsubscribePacket]:
    patterns = st.lists(st.sampled_from(FILTERS), min_size=1, max_size=3)
    return st.builds(UnsubscribePacket, packet_ids, patterns)


acknowledgements: st.SearchStrategy[Packet] = st.one_of(
    [packet_ids.map(kind) for kind in (PubAckPacket, PubRecPacket, PubRelPacket, PubCompPacket)]
)
others: st.SearchStrategy[Packet] = st.sampled_from([PingReqPacket(), AuthPacket(), DisconnectPacket()])
packets: st.SearchStrategy[Packet] = st.one_of(
    publishes(), publishes(), subscribes(), unsubscribes(), acknowledgements, others
)


@st.composite
def connects(draw: st.DrawFn) -> ConnectPacket:
    topic = draw(st.sampled_from(TOPICS))
    will = draw(
        st.none()
        | st.builds(lambda payload, those: Will(topic, payload=payload, user_properties=those), payloads, properties)
    )
    return ConnectPacket(
        draw(st.sampled_from(["", "attacker", "another attacker", "\U0001f600" * 40])),
        clean_start=draw(st.booleans()),
        will=will,
        session_expiry_interval=draw(st.sampled_from([0, 0, 1, 2**32 - 1])),
        receive_max=draw(st.sampled_from([1, 65_535])),
        max_packet_size=draw(st.sampled_from([None, None, 20])),
        user_properties=draw(properties),
    )


PLAIN_CONNECT: Final = ConnectPacket("attacker", clean_start=True)


@st.composite
def mutated(draw: st.DrawFn, data: bytes) -> bytes:
    """As bad lines and bad programs do it: bytes changed, left out, doubled, cut off."""
    changed = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(changed) - 1)))
        match draw(st.integers(0, 4)):
            case 0 if changed:
                changed[at] = draw(st.integers(0, 255))
            case 1:
                del changed[at : at + draw(st.integers(1, 6))]
            case 2:
                changed[at:at] = draw(st.binary(min_size=1, max_size=6))
            case 3:
                changed[at:at] = changed[at : at + draw(st.integers(1, 20))]
            case _:
                del changed[at:]
    return bytes(changed)


def _over_long(draw: st.DrawFn) -> bytes:
    first = draw(st.sampled_from([0x10, 0x30, 0x32, 0x82, 0xE0]))
    length = draw(st.sampled_from([b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff\x7f", b"\x81\x80\x80\x01", b"\xff\xff\x7f"]))
    return bytes([first]) + length + draw(st.binary(max_size=40)) * draw(st.sampled_from([1, 1000]))


@st.composite
def attacks(draw: st.DrawFn) -> Attack:
    version = draw(st.sampled_from([5, 5, 4]))

    def traffic() -> bytes:
        return b"".join(encode(packet, version) for packet in draw(st.lists(packets, min_size=1, max_size=6)))

    hello = encode(PLAIN_CONNECT, version)
    match draw(
        st.sampled_from(["random", "random later", "mutated", "mutated later", "long", "long later", "strange"])
    ):
        case "random":
            data = draw(st.binary(min_size=1, max_size=80))
        case "random later":
            data = hello + draw(st.binary(min_size=1, max_size=80))
        case "mutated":
            data = draw(mutated(encode(draw(connects()), version) + traffic()))
        case "mutated later":
            data = hello + draw(mutated(traffic()))
        case "long":
            data = _over_long(draw)
        case "long later":
            data = hello + _over_long(draw)
        case _:
            data = encode(draw(connects()), version) + traffic()
    cuts = tuple(draw(st.lists(st.integers(0, 500), max_size=3)))
    return Attack(version, data, cuts, draw(st.booleans()))
