"""Random MQTT packets."""

from __future__ import annotations

from typing import Any

import mqtt5
from hypothesis import strategies as st
from mqtt5 import (
    ConnAckReasonCode,
    DisconnectReasonCode,
    PubAckReasonCode,
    QoS,
    RetainHandling,
    SubAckReasonCode,
    UnsubAckReasonCode,
)

QOS = (QoS.AT_MOST_ONCE, QoS.AT_LEAST_ONCE, QoS.EXACTLY_ONCE)
qos = st.sampled_from(QOS)
packet_ids = st.integers(1, 0xFFFF)
texts = st.one_of(
    st.sampled_from(["a", "a/b", "é", "漢字/x", "𝄞", "x" * 200]),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20),
)
topics = texts.map(lambda text: text.replace("+", "p").replace("#", "h")).filter(bool)
filters = st.one_of(topics, st.sampled_from(["#", "a/#", "+/b", "$share/g/a/+"]))
payloads = st.one_of(st.binary(max_size=20), st.sampled_from([b"", b"x" * 127, b"\x80" * 200, b"x" * 20_000]))
user_properties = st.lists(st.tuples(texts, texts), max_size=3)


@st.composite
def publishes(draw: st.DrawFn, version: int = 5, *, from_server: bool = False) -> mqtt5.PublishPacket:
    level = draw(qos)
    parts: dict[str, Any] = {"qos": level, "retain": draw(st.booleans())}
    if level != QoS.AT_MOST_ONCE:
        parts |= {"packet_id": draw(packet_ids), "duplicate": draw(st.booleans())}
    if version == 5:
        parts |= {
            "payload_format_indicator": draw(st.integers(0, 1)),
            "message_expiry_interval": draw(st.none() | st.integers(0, 0xFFFFFFFF)),
            "content_type": draw(st.none() | texts),
            "response_topic": draw(st.none() | topics),
            "correlation_data": draw(st.none() | st.binary(max_size=5)),
            "topic_alias": draw(st.none() | st.integers(1, 0xFFFF)),
            "user_properties": draw(user_properties),
        }
        if from_server:
            parts["subscription_ids"] = draw(st.lists(st.integers(1, 268_435_455), max_size=2))
    return mqtt5.PublishPacket(draw(topics), draw(payloads), **parts)


@st.composite
def connects(draw: st.DrawFn, version: int = 5) -> mqtt5.ConnectPacket:
    clean = draw(st.booleans())
    username = draw(st.none() | texts)
    parts: dict[str, Any] = {
        "username": username,
        "password": draw(st.none() | st.binary(max_size=5)) if username is not None else None,
        "clean_start": clean,
        "keep_alive": draw(st.integers(0, 0xFFFF)),
        "session_expiry_interval": 0 if clean else 0xFFFF_FFFF,
    }
    if draw(st.booleans()):
        parts["will"] = mqtt5.Will(
            draw(topics), payload=draw(st.binary(max_size=5)), qos=draw(qos), retain=draw(st.booleans())
        )
    if version == 5:
        parts |= {
            "session_expiry_interval": draw(st.integers(0, 0xFFFF_FFFF)),
            "receive_max": draw(st.integers(1, 0xFFFF)),
            "topic_alias_max": draw(st.integers(0, 0xFFFF)),
            "max_packet_size": draw(st.none() | st.integers(1, 0xFFFF_FFFF)),
            "user_properties": draw(user_properties),
        }
    client_id = draw(texts)
    return mqtt5.ConnectPacket(client_id if client_id or clean else "someone", **parts)


def _topic_filters(version: int) -> st.SearchStrategy[mqtt5.TopicFilter]:
    if version == 4:
        return st.builds(
            lambda pattern, level: mqtt5.TopicFilter(pattern, max_qos=level, retain_as_published=False), filters, qos
        )
    handling = (RetainHandling.SEND_ALWAYS, RetainHandling.SEND_IF_SUBSCRIPTION_NOT_EXISTS, RetainHandling.SEND_NEVER)
    return st.builds(
        lambda pattern, level, local, published, retain: mqtt5.TopicFilter(
            pattern,
            max_qos=level,
            no_local=local and not pattern.startswith("$share/"),
            retain_as_published=published,
            retain_handling=retain,
        ),
        filters,
        qos,
        st.booleans(),
        st.booleans(),
        st.sampled_from(handling),
    )


def _with_properties(version: int) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(dict, user_properties=user_properties) if version == 5 else st.just({})


def from_clients(version: int) -> st.SearchStrategy[mqtt5.Packet]:
    """Packets that a client sends after its CONNECT."""
    properties = _with_properties(version)
    return st.one_of(
        publishes(version),
        *_acknowledgements(version),
        st.builds(
            lambda number, patterns, more: mqtt5.SubscribePacket(number, patterns, **more),
            packet_ids,
            st.lists(_topic_filters(version), min_size=1, max_size=3),
            properties,
        ),
        st.builds(
            lambda number, patterns, more: mqtt5.UnsubscribePacket(number, patterns, **more),
            packet_ids,
            st.lists(filters, min_size=1, max_size=3),
            properties,
        ),
        st.just(mqtt5.PingReqPacket()),
        st.just(mqtt5.DisconnectPacket()),
    )


def from_servers(version: int) -> st.SearchStrategy[mqtt5.Packet]:
    """Packets that a server sends."""
    codes = (0, 1, 2, 0x80) if version == 4 else (0, 1, 2, 0x80, 0x87, 0x8F)
    return st.one_of(
        publishes(version, from_server=True),
        *_acknowledgements(version),
        _connacks(version),
        st.builds(
            lambda number, found: mqtt5.SubAckPacket(number, [SubAckReasonCode(code) for code in found]),
            packet_ids,
            st.lists(st.sampled_from(codes), min_size=1, max_size=3),
        ),
        st.builds(
            lambda number, count: mqtt5.UnsubAckPacket(number, [UnsubAckReasonCode.SUCCESS] * count),
            packet_ids,
            st.integers(1, 3) if version == 5 else st.just(0),
        ),
        st.just(mqtt5.PingRespPacket()),
    )


def _connacks(version: int) -> st.SearchStrategy[mqtt5.ConnAckPacket]:
    refusals = (0x84, 0x85, 0x86, 0x87, 0x88)  # those that both versions have
    return st.one_of(
        st.booleans().map(lambda present: mqtt5.ConnAckPacket(session_present=present)),
        st.sampled_from(refusals).map(lambda code: mqtt5.ConnAckPacket(reason_code=ConnAckReasonCode(code))),
    )


def _acknowledgements(version: int) -> list[st.SearchStrategy[mqtt5.Packet]]:
    plain: list[st.SearchStrategy[mqtt5.Packet]] = [
        packet_ids.map(kind)
        for kind in (mqtt5.PubAckPacket, mqtt5.PubRecPacket, mqtt5.PubRelPacket, mqtt5.PubCompPacket)
    ]
    if version == 5:
        plain.append(
            st.builds(
                lambda number, reason, more: mqtt5.PubAckPacket(
                    number,
                    reason_code=PubAckReasonCode.NO_MATCHING_SUBSCRIBERS,
                    reason_str=reason,
                    user_properties=more,
                ),
                packet_ids,
                texts,
                user_properties,
            )
        )
        plain.append(
            texts.map(
                lambda reason: mqtt5.DisconnectPacket(
                    reason_code=DisconnectReasonCode.QUOTA_EXCEEDED, reason_str=reason
                )
            )
        )
    return plain
