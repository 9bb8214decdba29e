"""A disk that is full, or cannot be written at all: clear answers, nothing breaks, and it goes on when there is room."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from mqtt5 import ConnAckReasonCode, PubAckPacket, PubAckReasonCode, PublishPacket, PubRecPacket, QoS, SubAckReasonCode
from tests.broker.talker import Talker, run, serving, talking
from tests.small_disk import MEGABYTE, small_disk

from nearcast.broker.server import Server
from nearcast.errors import JournalFailed

DAY = {"clean_start": False, "session_expiry_interval": 86_400}
HTTP = {"http_port": "any"}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", 40 * MEGABYTE) as folder:
        yield folder


def fill(disk: Path) -> Path:
    """Somebody else's file takes all the room there is."""
    ballast = disk / "ballast"
    with ballast.open("ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(MEGABYTE))
        except OSError:
            pass
    return ballast


async def publish_until_refused(writer: Talker) -> tuple[list[bytes], str]:
    """What was acknowledged before, and what is said then."""
    acknowledged: list[bytes] = []
    while True:
        payload = b"%06d" % len(acknowledged)
        answer = await writer.tell("a", payload + bytes(50_000), [("nc-id", f"event {len(acknowledged)}")])
        if int(answer.reason_code) >= 0x80:
            assert answer.reason_code == PubAckReasonCode.QUOTA_EXCEEDED
            return acknowledged, answer.reason_str or ""
        acknowledged.append(payload)
        assert len(acknowledged) < 3_000


def test_a_full_disk_is_said_clearly_and_room_brings_everything_back(disk: Path) -> None:
    async def story() -> None:
        async with serving(disk / "data", listen=HTTP) as server:
            async with talking(server, "reader", **DAY) as reader:
                await reader.subscribe("a", 1)
            host, port = server.addresses["http"]
            async with (
                httpx.AsyncClient(base_url=f"http://{host}:{port}", timeout=20.0) as http,
                talking(server, "writer", **DAY) as writer,
                talking(server, "live") as live,
            ):
                await live.subscribe("plain")
                ballast = fill(disk)
                acknowledged, why = await publish_until_refused(writer)
                assert "full" in why
                ready = await http.get("/readyz")
                assert ready.status_code == 503
                assert "full" in ready.text
                assert (await http.get("/healthz")).status_code == 200
                posted = await http.post("/events", json={"specversion": "1.0", "subject": "a", "data": "x" * 50_000})
                assert posted.status_code == 503, posted.text
                await _refused_everywhere(writer, server)
                writer.publish("plain", b"quality 0 needs no disk")
                assert (await live.heard()).payload == b"quality 0 needs no disk"
                assert server.broker.retained.messages == {}

                ballast.unlink()
                async with asyncio.timeout(20.0):
                    while (await http.get("/readyz")).status_code != 200:  # noqa: ASYNC110 - asked as an operator does
                        await asyncio.sleep(0.05)
                # What was refused is sent again, under the same id: it is taken, and not for a repetition.
                last = b"%06d" % len(acknowledged)
                answer = await writer.tell("a", last, [("nc-id", f"event {len(acknowledged)}")])
                assert int(answer.reason_code) < 0x80, answer
                acknowledged.append(last)
        await _all_there(disk / "data", acknowledged)

    run(story())


async def _refused_everywhere(writer: Talker, server: Server) -> None:
    """Whatever promises to last is refused while it could not."""
    large = "x" * 60_000
    writer.send(PublishPacket("a", large.encode(), qos=QoS.EXACTLY_ONCE, packet_id=77))
    answer = await writer.next(PubRecPacket)
    assert int(answer.reason_code) == int(PubAckReasonCode.QUOTA_EXCEEDED)
    context = await writer.tell("$nearcast/context/me", b'{"a": "%s"}' % large.encode())
    assert context.reason_code == PubAckReasonCode.QUOTA_EXCEEDED
    retained = await writer.tell("kept", large.encode(), retain=True)
    assert retained.reason_code == PubAckReasonCode.QUOTA_EXCEEDED
    subscribed = await writer.subscribe("b", 1, [("nc-where", f"a = '{large}'")])
    assert subscribed.reason_codes == [SubAckReasonCode.QUOTA_EXCEEDED]
    assert "b" not in {held.filter for held in server.broker.sessions.all["writer"].held.values()}


async def _all_there(data: Path, acknowledged: list[bytes]) -> None:
    """After a restart, exactly what was acknowledged is there and owed."""
    async with serving(data) as server:
        again = await Talker.open(server)
        answer = await again.connect("reader", **DAY)
        assert answer.reason_code == ConnAckReasonCode.SUCCESS
        assert answer.session_present
        for expected in acknowledged:
            event = await again.heard()
            assert event.payload[:6] == expected
            again.send(PubAckPacket(event.packet_id or 0))
        await again.nothing()


def test_a_disk_that_cannot_be_written_is_said_at_the_start(disk: Path) -> None:
    async def story() -> None:
        async with serving(disk / "data") as server, talking(server, "writer", **DAY) as writer:
            await writer.tell("a", b"1", retain=True)
        await asyncio.to_thread(subprocess.run, ["mount", "-o", "remount,ro", str(disk)], check=True)
        with pytest.raises(JournalFailed, match="cannot be used"):
            async with serving(disk / "data"):
                pass
        await asyncio.to_thread(subprocess.run, ["mount", "-o", "remount,rw", str(disk)], check=True)
        async with serving(disk / "data") as server, talking(server, "reader") as reader:
            await reader.subscribe("a")
            assert (await reader.heard()).payload == b"1"

    run(story())
