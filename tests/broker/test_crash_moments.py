"""Single moments at which the power may fail, brought about on purpose: what chance finds rarely (``test_crashes``)."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mqtt5 import PubAckPacket, PubCompPacket, PublishPacket, PubRecPacket, PubRelPacket, QoS
from tests.broker.talker import Talker, run, serving, talking
from tests.waiting import until

from nearcast.broker.publishing.router import Route
from nearcast.broker.server import Server

DAY = {"clean_start": False, "session_expiry_interval": 86_400}


@asynccontextmanager
async def fallen(server: Server, folder: Path) -> AsyncIterator[Server]:
    """A broker on what is on disk at this very moment: as after ``kill -9``."""
    written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    server.broker.journal.write(then=lambda _failed: written.set_result(None))
    await written
    shutil.copytree(server.settings.data, folder)
    async with serving(folder) as again:
        yield again


def test_a_row_written_while_an_event_is_on_its_way_to_the_disk_does_not_hide_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with serving(tmp_path / "first") as server, talking(server, "writer") as writer:
            async with talking(server, "reader", **DAY) as reader:
                await reader.subscribe("a", 1)
            session = server.broker.sessions.all["reader"]
            await until(lambda: session.connection is None)
            sessions, chosen_before = server.broker.sessions, Route.chosen

            def chosen(*arguments: Any) -> Any:
                # Another confirmation in the same turn of the loop has the row written, behind the event itself.
                asyncio.get_running_loop().call_soon(sessions.save, session)
                return chosen_before(*arguments)

            monkeypatch.setattr(Route, "chosen", chosen)
            assert int((await writer.tell("a", b"1")).reason_code) == 0
            monkeypatch.undo()
            async with fallen(server, tmp_path / "second") as again, talking(again, "reader", **DAY) as reader:
                assert (await reader.heard()).payload == b"1"

    run(story())


def test_a_packet_id_that_the_client_knows_is_released_although_its_message_is_gone(tmp_path: Path) -> None:
    """Unpublished in between: another message under that id would be taken for a copy of it."""

    async def story() -> None:
        async with serving(tmp_path / "first") as server, talking(server, "writer") as writer:
            async with talking(server, "reader", **DAY) as reader:
                await reader.subscribe("a", 2)
                writer.publish("a", b"1", [("nc-id", "x")], qos=QoS.EXACTLY_ONCE, packet_id=1)
                event = await reader.heard()  # received, and the connection is lost before PUBREC arrives
                await writer.next(PubRecPacket)
            assert int((await writer.tell("$nearcast/unpublish", b"x")).reason_code) == 0
            async with fallen(server, tmp_path / "second") as again, talking(again, "reader", **DAY) as reader:
                release = await reader.next(PubRelPacket)
                assert release.packet_id == event.packet_id
                reader.send(PubCompPacket(release.packet_id))
                await reader.nothing()

    run(story())


def test_retained_messages_of_quality_2_do_not_bring_back_what_was_confirmed(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "first") as server, talking(server, "writer") as writer:
            await writer.tell("kept", b"retained", retain=True)
            async with talking(server, "reader", **DAY) as reader:
                await reader.subscribe("a", 2)
                for number in range(3):
                    writer.send(PublishPacket("a", b"%d" % number, qos=QoS.EXACTLY_ONCE, packet_id=number + 1))
                    event = await reader.heard()
                    reader.send(PubRecPacket(event.packet_id or 0))
                    await reader.next(PubRelPacket)
                    reader.send(PubCompPacket(event.packet_id or 0))
                await reader.subscribe("kept", 2)  # its offset is older than all of these
                assert (await reader.heard()).payload == b"retained"
                session = server.broker.sessions.all["reader"]
                server.broker.sessions.save(session)
                async with fallen(server, tmp_path / "second") as again:
                    back = await Talker.open(again)
                    assert (await back.connect("reader", **DAY)).session_present
                    await back.nothing()

    run(story())


def test_ids_of_a_session_that_stopped_lasting_do_not_swallow_messages_of_a_later_one(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "first") as server:
            async with talking(server, "writer", **DAY) as writer:
                writer.send(PublishPacket("a", b"1", qos=QoS.EXACTLY_ONCE, packet_id=7))
                await writer.next(PubRecPacket)
            async with talking(server, "writer", clean_start=False, session_expiry_interval=0) as writer:
                writer.send(PubRelPacket(7))
                assert (await writer.next(PubCompPacket)).packet_id == 7
            await until(lambda: "writer" not in server.broker.sessions.all)
            async with talking(server, "writer", **DAY), talking(server, "reader", **DAY) as reader:
                await reader.subscribe("a", 2)
                async with (
                    fallen(server, tmp_path / "second") as again,
                    talking(again, "writer", **DAY) as late_writer,
                    talking(again, "reader", **DAY) as late_reader,
                ):
                    late_writer.send(PublishPacket("a", b"2", qos=QoS.EXACTLY_ONCE, packet_id=7))
                    await late_writer.next(PubRecPacket)
                    assert (await late_reader.heard()).payload == b"2"

    run(story())


def test_acknowledged_subscriptions_contexts_and_retained_messages_survive(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path / "first") as server, talking(server, "writer") as writer:  # noqa: SIM117
            async with talking(server, "reader", **DAY) as reader:
                await reader.subscribe("near/#", 1, [("nc-area", "500")])
                await reader.tell("$nearcast/position", b"49.8728,8.6512")
                await reader.tell("$nearcast/context/me", b'{"kind": "car"}')
                await reader.tell("$nearcast/accept", b"true")
                await writer.tell("kept", b"1", retain=True)
                async with fallen(server, tmp_path / "second") as again, talking(again, "other") as other:
                    back = await Talker.open(again)
                    assert (await back.connect("reader", **DAY)).session_present
                    await other.subscribe("kept")
                    assert (await other.heard()).payload == b"1"
                    await other.tell("near/a", b"2", [("nc-place", "49.8730,8.6512")])
                    await other.tell("near/a", b"3", [("nc-place", "49.9730,8.6512")])
                    await other.tell("to/you", b"4", [("nc-to", "kind = 'car'")])
                    assert [(await back.heard()).payload for _ in range(2)] == [b"2", b"4"]

    run(story())


def test_an_event_that_is_sent_again_after_a_fall_is_not_doubled(tmp_path: Path) -> None:
    """Its acknowledgement was lost; the id that its publisher gave it tells."""

    async def story() -> None:
        async with serving(tmp_path / "first") as server:
            async with talking(server, "reader", **DAY) as reader, talking(server, "writer", **DAY) as writer:
                await reader.subscribe("a", 1)
                await writer.tell("a", b"1", [("nc-id", "once")])
                event = await reader.heard()
                reader.send(PubAckPacket(event.packet_id or 0))
                await until(lambda: not server.broker.sessions.all["reader"].pending)
            await until(lambda: not server.broker.services.open)
            async with (
                fallen(server, tmp_path / "second") as again,
                talking(again, "reader", **DAY) as reader,
                talking(again, "writer", **DAY) as writer,
            ):
                assert int((await writer.tell("a", b"1", [("nc-id", "once")])).reason_code) == 0
                await writer.tell("a", b"2", [("nc-id", "twice")])
                assert (await reader.heard()).payload == b"2"

    run(story())
