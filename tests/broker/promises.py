"""Publishes of quality 1 for a broker in memory, and what comes of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from mqtt5 import (
    PubAckPacket,
    PubAckReasonCode,
    PublishPacket,
    QoS,
    SubscribePacket,
    TopicFilter,
)
from tests.broker.in_memory import Client, InMemory, in_memory

MANY = 24
DAY = {"clean_start": False, "session_expiry_interval": 86_400}


def publish(number: int, topic: str = "a", qos: int = 1, **more: Any) -> PublishPacket:
    packet_id = number + 1 if qos else None
    return PublishPacket(topic, b"%d" % number, qos=QoS(qos), packet_id=packet_id, **more)


def publishes(first: int, count: int = MANY, topic: str = "a") -> list[PublishPacket]:
    return [publish(number, topic) for number in range(first, first + count)]


def numbers(first: int, count: int = MANY) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


def subscribe(topic: str = "#", qos: int = 1, **options: Any) -> SubscribePacket:
    return SubscribePacket(1, [TopicFilter(topic, max_qos=QoS(qos), **options)])


def answers(client: Client) -> list[tuple[int, int]]:
    """Packet ids that were acknowledged, with the reason code."""
    return [(each.packet_id, int(each.reason_code)) for each in client.got() if isinstance(each, PubAckPacket)]


def answered(first: int, count: int = MANY, code: PubAckReasonCode = PubAckReasonCode.SUCCESS) -> list[tuple[int, int]]:
    return [(number + 1, int(code)) for number in range(first, first + count)]


def run(scenario: Callable[[InMemory], Any]) -> None:
    async def with_broker() -> None:
        async with in_memory() as rig:
            await scenario(rig)

    asyncio.run(with_broker())
