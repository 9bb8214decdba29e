"""A disk that is full for a while: what could not be written is tried again, and nothing is acknowledged that is nowhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from mqtt5 import PubAckPacket, PublishPacket, QoS, SubscribePacket, TopicFilter
from tests.broker.federation.lone_broker import LoneBroker, lone_broker
from tests.broker.federation.people import story

from nearcast.broker.federation.roaming import Home
from nearcast.broker.federation.wire import RELAY, Notice, Notices, encode, relay_body
from nearcast.errors import JournalFailed
from nearcast.journal import Journal, Put
from nearcast.journal.entries import key_of
from nearcast.model.time import MICROSECONDS
from nearcast.mqtt import names

THERE = "there@127.0.0.1:9"


class FullDisk:
    """While it is full, whatever holds a parcel cannot be written."""

    def __init__(self, rig: LoneBroker, patch: pytest.MonkeyPatch) -> None:
        self.full = False
        write = Journal.write

        def some(journal: Journal, records: Any = (), puts: Any = (), then: Any = None) -> int:
            if self.full and any(put.table.startswith("parcel") and put.value is not None for put in puts):
                if then is not None:
                    rig.broker.loop.call_soon(then, JournalFailed("the disk is full"))
                return journal.head
            return write(journal, records, puts, then)

        patch.setattr(Journal, "write", some)


def news(payload: bytes, id: str | None = None) -> PublishPacket:  # noqa: A002 - the word for it
    properties = [] if id is None else [(names.ID, id)]
    return PublishPacket("news", payload, qos=QoS.AT_LEAST_ONCE, packet_id=1, user_properties=properties)


def hear_that_it_went(rig: LoneBroker, client: str) -> None:
    known = rig.federation.board.get(f"c/{client}")
    assert known is not None
    home = Home("there", None, False, (known.version, known.author), "here")
    rig.federation.receive(THERE, Notices((Notice(known.key, known.version + 1, "there", encode(home)),)))


def followed(rig: LoneBroker) -> list[bytes]:
    """Payloads of what is kept for clients that went elsewhere."""
    custody = rig.federation.custody
    kept = [found for key in custody.stranded() if (found := custody.get(key)) is not None and found.kind == RELAY]
    return [relay_body(each.body).entry.payload for each in kept]


@story
async def test_what_could_not_be_written_for_a_client_that_left_follows_it_later(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        async with lone_broker(tmp_path) as rig:
            disk = FullDisk(rig, patch)
            nomad = await rig.connect("nomad", session_expiry_interval=10_000)
            nomad.say(SubscribePacket(1, [TopicFilter("news", max_qos=QoS.AT_LEAST_ONCE)]))
            await rig.quiet()
            nomad.connection.connection_lost(None)
            sender = await rig.connect("sender")
            sender.say(news(b"for the nomad"))
            await rig.quiet()
            disk.full = True
            hear_that_it_went(rig, "nomad")
            await rig.quiet()
            assert followed(rig) == []
            rig.clock.time += 1_000 * MICROSECONDS  # longer than anything is forwarded
            rig.federation.tick()
            await rig.quiet()
            disk.full = False
            rig.federation.tick()
            await rig.quiet()
            assert followed(rig) == [b"for the nomad"]


@story
async def test_who_was_refused_when_it_sent_an_event_again_is_not_told_that_it_is_there(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        async with lone_broker(tmp_path) as rig:
            disk = FullDisk(rig, patch)
            rig.federation.receive(THERE, Notices((Notice("t/there", 1, "there", msgspec.msgpack.encode(("news",))),)))
            key = key_of("sender", "1")
            rig.broker.journal.write(puts=(Put("other", "row", b""),))
            rig.federation.ids.begin(key)
            rig.federation.ids.end(key, failed=False)  # it came by a broker that is gone now
            sender = await rig.connect("sender")
            disk.full = True
            sender.say(news(b"x", "1"))
            await rig.quiet()
            sender.say(news(b"x", "1"))
            await rig.quiet()
            disk.full = False
            sender.say(news(b"x", "1"))
            await rig.quiet()
            codes = [int(packet.reason_code) for packet in sender.got() if isinstance(packet, PubAckPacket)]
            assert codes == [0x97, 0x97, 0]
            assert rig.federation.custody.statistics().stranded == {"there": 1}
