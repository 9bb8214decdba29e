"""Publishes of quality 1 that came together, when the disk, the power or the broker itself fails: each of them has its own end."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mqtt5 import (
    ConnectPacket,
    PubAckPacket,
    PubAckReasonCode,
    PublishPacket,
)
from tests.broker.in_memory import Client, InMemory
from tests.broker.promises import DAY, MANY, answered, answers, numbers, publish, publishes, run, subscribe
from tests.broker.talker import run as run_served
from tests.broker.talker import serving, talking
from tests.waiting import PATIENCE

from nearcast.broker.connections.incoming import Incoming
from nearcast.broker.sessions.session import Session
from nearcast.errors import InvalidRecord, JournalFailed, NearcastError
from nearcast.journal import EventEntry
from nearcast.journal.store import Store
from nearcast.mqtt.stream import V311, encode


@contextmanager
def slow_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Nothing comes on disk until the event is set."""
    turning, commit = threading.Event(), Store.commit

    def wait_and_commit(store: Store, group: Any) -> None:
        assert turning.wait(PATIENCE)
        commit(store, group)

    with monkeypatch.context() as patched:
        patched.setattr(Store, "commit", wait_and_commit)
        try:
            yield turning
        finally:
            turning.set()


def test_nobody_hears_of_a_publish_before_it_is_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: InMemory) -> None:
        writer, reader = await rig.connect("writer"), await rig.connect("reader")
        reader.say(subscribe())
        await rig.quiet()
        with slow_disk(monkeypatch) as turning:
            writer.say(*publishes(0))
            await rig.turn()
            assert rig.broker.batching.statistics().waiting == 0
            assert answers(writer) == []
            assert reader.payloads() == []
            turning.set()
            await rig.quiet()
        assert answers(writer) == answered(0)
        assert reader.payloads() == numbers(0)

    run(scenario)


def test_a_disk_that_refuses_is_told_to_every_publisher_of_the_turn_and_nobody_gets_anything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(rig: InMemory) -> None:
        one, other = await rig.connect("one"), await rig.connect("other")
        lasting = await rig.connect("lasting", **DAY)
        lasting.say(subscribe())
        await rig.quiet()

        def refuse(_store: Store, _group: Any) -> None:
            raise sqlite3.OperationalError("disk I/O error")

        with monkeypatch.context() as patched:
            patched.setattr(Store, "commit", refuse)
            one.say(*publishes(0))
            other.say(*publishes(100))
            await rig.quiet()
        assert answers(one) == answered(0, code=PubAckReasonCode.QUOTA_EXCEEDED)
        assert answers(other) == answered(100, code=PubAckReasonCode.QUOTA_EXCEEDED)
        refusal = next(each for each in one.got() if isinstance(each, PubAckPacket))
        assert refusal.reason_str is not None
        assert "disk I/O error" in refusal.reason_str
        assert lasting.payloads() == []
        assert not rig.broker.sessions.all["lasting"].pending
        one.say(*publishes(0))
        await rig.quiet()
        assert answers(one)[MANY:] == answered(0)
        assert lasting.payloads() == numbers(0)

    run(scenario)


def test_one_that_the_journal_does_not_take_keeps_none_of_the_others_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: InMemory) -> None:
        writer, reader = await rig.connect("writer"), await rig.connect("reader", **DAY)
        reader.say(subscribe())
        await rig.quiet()
        write = rig.broker.journal.write

        def write_some(records: Any = (), *rest: Any, **more: Any) -> int:
            if any(isinstance(each, EventEntry) and each.payload == b"7" for each in records):
                raise InvalidRecord("not this one")
            return write(records, *rest, **more)

        with monkeypatch.context() as patched:
            patched.setattr(rig.broker.journal, "write", write_some)
            writer.say(*publishes(0))
            await rig.turn()
        await rig.quiet()
        assert reader.payloads() == [each for each in numbers(0) if each != b"7"]
        codes = dict(answers(writer))
        assert codes.pop(8) == int(PubAckReasonCode.PAYLOAD_FORMAT_INVALID)
        assert set(codes.values()) == {0}
        assert len(codes) == MANY - 1
        assert not rig.broker.sessions.all["reader"].pending

    run(scenario)


def test_a_receiver_at_which_something_fails_keeps_nobody_else_from_anything(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(rig: InMemory) -> None:
        writer, broken, whole = await rig.connect("writer"), await rig.connect("broken"), await rig.connect("whole")
        broken.say(subscribe("a"))
        whole.say(subscribe("b"))
        await rig.quiet()
        deliver = Session.deliver

        def fail(session: Session, *rest: Any, **more: Any) -> None:
            if session.client == "broken":
                raise RuntimeError("a mistake")
            deliver(session, *rest, **more)

        with monkeypatch.context() as patched:
            patched.setattr(Session, "deliver", fail)
            writer.say(publish(0, "b"), publish(1, "a"), publish(2, "b"))
            await rig.quiet()
        assert answers(writer) == answered(0, 3), "all of them are on disk"
        assert whole.payloads() == [b"0", b"2"]
        assert "was not brought to its end" in caplog.text

    run(scenario)


def test_a_client_of_the_older_version_is_cut_off_when_the_disk_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: InMemory) -> None:
        writer = Client(rig.broker.connection())
        writer.connection.data_received(encode(ConnectPacket("writer", clean_start=True, keep_alive=60), V311))
        await rig.quiet()
        writer.transport.written.clear()

        def refuse(_store: Store, _group: Any) -> None:
            raise sqlite3.OperationalError("disk I/O error")

        with monkeypatch.context() as patched:
            patched.setattr(Store, "commit", refuse)
            writer.connection.data_received(b"".join(encode(each, V311) for each in publishes(0)))
            await rig.quiet()
        assert writer.transport.is_closing()
        assert writer.transport.written == []

    run(scenario)


def test_what_is_on_disk_and_not_yet_acknowledged_when_the_power_fails_comes_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with serving(tmp_path / "first") as server, talking(server, "writer") as writer:
            async with talking(server, "reader", **DAY) as reader:
                await reader.subscribe("a", 1)
            copied = asyncio.get_running_loop().create_future()
            keep = Incoming.keep

            def fall(incoming: Incoming, promised: list[tuple[int, bool]]) -> None:
                # All of them are on disk, and no acknowledgement has been said.
                shutil.copytree(server.settings.data, tmp_path / "second")
                copied.set_result(None)
                keep(incoming, promised)

            with monkeypatch.context() as patched:
                patched.setattr(Incoming, "keep", fall)
                writer.send(*publishes(0))
                await asyncio.wait_for(copied, PATIENCE)
            async with serving(tmp_path / "second") as again, talking(again, "reader", **DAY) as reader:
                came = [(await reader.heard()).payload for _ in range(MANY)]
                assert came == numbers(0)
                await reader.nothing()

    run_served(story())


def test_a_mistake_of_the_broker_is_told_to_who_published_and_keeps_none_of_the_others_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(rig: InMemory) -> None:
        writer, reader = await rig.connect("writer"), await rig.connect("reader")
        reader.say(subscribe())
        await rig.quiet()
        route = type(rig.broker.router).route

        def fail(router: Any, topic: str) -> Any:
            if topic == "wrong":
                raise RuntimeError("a mistake")
            return route(router, topic)

        monkeypatch.setattr(type(rig.broker.router), "route", fail)
        writer.say(publish(0), publish(1, "wrong"), publish(2))
        await rig.quiet()
        assert dict(answers(writer)) == {1: 0, 2: int(PubAckReasonCode.IMPLEMENTATION_SPECIFIC_ERROR), 3: 0}
        assert reader.payloads() == [b"0", b"2"]
        assert "a mistake" in caplog.text

    run(scenario)


def test_an_answer_that_fails_keeps_none_of_the_others_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(rig: InMemory) -> None:
        writer, other = await rig.connect("writer"), await rig.connect("other")
        refuse = Incoming.refuse

        def fail(incoming: Incoming, packet: PublishPacket, error: NearcastError) -> None:
            if packet.packet_id == 1:
                raise RuntimeError("a mistake")
            refuse(incoming, packet, error)

        def full(*_rest: Any, **_more: Any) -> int:
            raise JournalFailed("the disk is full")

        with monkeypatch.context() as patched:
            patched.setattr(Incoming, "refuse", fail)
            patched.setattr(rig.broker.journal, "write", full)
            writer.say(publish(0), publish(1))
            other.say(publish(2))
            await rig.turn()
        await rig.quiet()
        assert [packet_id for packet_id, _ in answers(writer)] == [2]
        assert [packet_id for packet_id, _ in answers(other)] == [3]
        assert "was not refused" in caplog.text

    run(scenario)


def test_a_topic_that_is_none_is_refused_among_others_that_are() -> None:
    async def scenario(rig: InMemory) -> None:
        writer, reader = await rig.connect("writer"), await rig.connect("reader")
        reader.say(subscribe())
        await rig.quiet()
        too_long = "/".join("a" * 1_000)
        writer.say(publish(0), publish(1, too_long), publish(2))
        await rig.quiet()
        assert dict(answers(writer)) == {1: 0, 2: int(PubAckReasonCode.TOPIC_NAME_INVALID), 3: 0}
        assert reader.payloads() == [b"0", b"2"]

    run(scenario)
