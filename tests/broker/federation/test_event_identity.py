"""What makes an event of a federation the same event: its publisher and the id that this publisher gave it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mqtt5 import PublishPacket, QoS, SubscribePacket, TopicFilter
from tests.broker.federation.lone_broker import LoneBroker, lone_broker
from tests.broker.federation.people import story

from nearcast.mqtt import names


def numbered(payload: str, number: int, packet_id: int = 1, **more: Any) -> PublishPacket:
    """An event under an id of its publisher's own, as from a device that counts."""
    return PublishPacket(
        "news",
        payload.encode(),
        qos=QoS.AT_LEAST_ONCE,
        packet_id=packet_id,
        user_properties=[(names.ID, str(number))],
        **more,
    )


async def reader(rig: LoneBroker) -> Any:
    found = await rig.connect("reader", session_expiry_interval=100)
    found.say(SubscribePacket(1, [TopicFilter("news", max_qos=QoS.AT_LEAST_ONCE)]))
    await rig.quiet()
    return found


@story
async def test_two_publishers_may_count_alike(tmp_path: Path) -> None:
    async with lone_broker(tmp_path) as rig:
        someone = await reader(rig)
        for name in ("one", "two"):
            sender = await rig.connect(name)
            sender.say(numbered(f"of {name}", 1))
        await rig.quiet()
        assert sorted(someone.payloads()) == [b"of one", b"of two"]
