"""What goes together harms nobody: no memory that grows with receivers, nobody cut off, nothing twice when something fails in between."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Sequence
from typing import Any

import pytest
from mqtt5 import DisconnectPacket, Packet, PublishPacket
from tests.broker.in_memory import Client, InMemory, ListTransport
from tests.broker.test_batching import HERE, MANY, events, move, numbers, publish, run, subscribe

from nearcast.broker.connections.connection import HIGH_WATER, Connection
from nearcast.broker.connections.conversation import Conversation
from nearcast.broker.connections.incoming import Incoming
from nearcast.broker.presence import Presence
from nearcast.broker.publishing import batching, qos0_batch
from nearcast.broker.publishing.message import Message
from nearcast.broker.sessions.session import Session
from nearcast.errors import InvalidRecord
from nearcast.journal import EventEntry, Put, Record, Then

KILOBYTE = 1_024


def refuse(rig: InMemory, monkeypatch: pytest.MonkeyPatch, payload: bytes) -> None:
    """Have the journal refuse the event of that payload."""
    write = rig.broker.journal.write

    def refusing(records: Sequence[Record] = (), puts: Sequence[Put] = (), then: Then | None = None) -> int:
        if any(isinstance(record, EventEntry) and record.payload == payload for record in records):
            raise InvalidRecord("a record that the journal cannot keep")
        return write(records, puts, then)

    monkeypatch.setattr(rig.broker.journal, "write", refusing)


def test_an_event_for_a_group_that_the_journal_does_not_take_doubles_none_of_those_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(rig: InMemory) -> None:
        publisher, member = await rig.connect("p"), await rig.connect("m")
        member.say(subscribe(topic="$share/g/city/#"))
        await rig.quiet()
        with monkeypatch.context() as patched:
            refuse(rig, patched, b"3")
            publisher.say(*events(0))
            await rig.turn()
        assert member.payloads() == [payload for payload in numbers(0) if payload != b"3"]

    run(scenario)


@pytest.mark.parametrize("most", [1, 7, 40])
def test_many_copies_go_in_parts_and_a_refusal_doubles_none(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    async def scenario(rig: InMemory) -> None:
        publisher = await rig.connect("p")
        receivers = [await rig.connect(f"r{number}") for number in range(3)]
        for receiver in receivers:
            receiver.say(subscribe())
        await rig.quiet()
        with monkeypatch.context() as patched:
            patched.setattr(qos0_batch, "_MOST_COPIES", most)
            publisher.say(*events(0))
            await rig.turn()
            refuse(rig, patched, b"115")
            publisher.say(*events(100))
            await rig.turn()
        await rig.quiet()
        expected = [*numbers(0), *(payload for payload in numbers(100) if payload != b"115")]
        for receiver in receivers:
            assert receiver.payloads() == expected
        stored = [record for record in rig.recorded() if isinstance(record, EventEntry)]
        assert [record.payload for record in stored] == expected
        assert {len(record.receivers) for record in stored} == {3}

    run(scenario)


def test_a_receiver_at_which_something_fails_keeps_none_of_the_others_from_getting_theirs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(rig: InMemory) -> None:
        publisher, innocent = await rig.connect("p"), await rig.connect("i")
        receivers = [await rig.connect(f"r{number}") for number in range(3)]
        for receiver in receivers:
            receiver.say(subscribe())
        await rig.quiet()
        write_all = Connection.write_all

        def failing(self: Connection, packets: list[bytes]) -> None:
            if self is receivers[1].connection:
                raise RuntimeError("a mistake in the broker")
            write_all(self, packets)

        with monkeypatch.context() as patched:
            patched.setattr(Connection, "write_all", failing)
            publisher.say(*events(0))
            innocent.say(subscribe(topic="elsewhere"))  # which settles
            await rig.quiet()
        assert [receiver.payloads() for receiver in receivers] == [numbers(0), [], numbers(0)]
        assert len(innocent.packets) == 1
        assert "a mistake in the broker" in caplog.text

    run(scenario)


def test_position_reports_that_fail_harm_nobody_who_says_something_else(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(self: Presence, *_: Any) -> None:
        raise RuntimeError("a mistake in the broker")

    async def scenario(rig: InMemory) -> None:
        one, other = await rig.connect("a"), await rig.connect("b")
        with monkeypatch.context() as patched:
            patched.setattr(Presence, "moved_one_by_one", failing)
            one.say(move(HERE))
            other.say(subscribe())
        await rig.quiet()
        assert len(other.packets) == 1
        assert "a mistake in the broker" in caplog.text

    run(scenario)


def test_copies_that_wait_for_the_end_of_the_turn_share_their_bytes() -> None:
    async def scenario(rig: InMemory) -> None:
        publisher = await rig.connect("p")
        receivers = [await rig.connect(f"r{number}") for number in range(40)]
        for receiver in receivers:
            receiver.say(subscribe())
        await rig.quiet()
        payload = bytes(4 * KILOBYTE)
        packets: list[Packet] = [
            PublishPacket("city/report", payload, user_properties=[("nc-place", HERE)]) for _ in range(MANY)
        ]
        publisher.say(*packets[:8])
        rig.broker.batching.settle()  # whatever is made once is made
        await rig.turn()
        publisher.say(*packets)
        tracemalloc.start()
        try:
            rig.broker.batching.settle()
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        size = MANY * len(payload)
        assert held < 6 * size  # encoded, on the way to the disk, and little for each of the 40 receivers
        await rig.turn()
        assert {sum(map(len, receiver.payloads())) for receiver in receivers} == {size + 8 * len(payload)}

    run(scenario)


class StuckTransport(ListTransport):
    """The network takes nothing."""

    connection: Connection
    high = 0

    def write(self, data: Any) -> None:
        super().write(data)
        if self.get_write_buffer_size() > self.high and not self.connection.congested:
            self.connection.pause_writing()

    def get_write_buffer_size(self) -> int:
        return sum(map(len, self.written))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.high = high or 0


def get_stuck(client: Client) -> None:
    transport = StuckTransport()
    transport.connection = client.connection
    transport.set_write_buffer_limits(HIGH_WATER)
    client.transport = client.connection.transport = transport


def test_a_turn_of_large_properties_does_not_cut_a_receiver_off_that_takes_nothing_for_a_moment() -> None:
    async def scenario(rig: InMemory) -> None:
        publisher, receiver = await rig.connect("p"), await rig.connect("r")
        receiver.say(subscribe())
        await rig.quiet()
        get_stuck(receiver)
        large = ("text", "x" * 60 * KILOBYTE)
        for number in range(250):
            publisher.say(publish(number, HERE, large))
        await rig.turn()
        assert not receiver.connection.closing
        assert (
            receiver.transport.get_write_buffer_size() < rig.broker.settings.session.output_bytes + KILOBYTE * KILOBYTE
        )
        assert rig.broker.sessions.all["r"].dropped > 0

    run(scenario)


def test_events_for_very_many_go_together_with_fewer_others(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: InMemory) -> None:
        publisher, receiver = await rig.connect("p"), await rig.connect("r")
        receiver.say(subscribe())
        await rig.quiet()
        with monkeypatch.context() as patched:
            patched.setattr(batching, "MOST_COPIES", 10)
            publisher.say(*events(0))
            await rig.turn()
            publisher.say(*events(100))
            assert len(receiver.payloads()) == MANY
            assert rig.broker.batching.statistics().waiting == MANY % 10
            await rig.turn()
        assert receiver.payloads() == [*numbers(0), *numbers(100)]

    run(scenario)


def test_a_connection_that_has_ended_leaves_nothing_to_the_garbage_collector() -> None:
    def alive() -> list[object]:
        kinds = (Connection, Conversation, Incoming, Session, Message)
        return [each for each in gc.get_objects() if isinstance(each, kinds)]

    async def scenario(rig: InMemory) -> None:
        gc.collect()
        before = len(alive())
        gc.disable()
        try:
            for number in range(3):
                client = await rig.connect("c")
                client.say(move(HERE), subscribe(), *events(0))
                await rig.quiet()
                if number:
                    client.say(DisconnectPacket())
                client.connection.connection_lost(None)
                await rig.quiet()
                del client, rig.clients["c"]
            assert len(alive()) == before
        finally:
            gc.enable()

    run(scenario)


def test_what_is_gathered_when_the_broker_closes_is_kept_and_delivered() -> None:
    async def scenario(rig: InMemory) -> None:
        publisher, receiver = await rig.connect("p"), await rig.connect("r")
        receiver.say(subscribe())
        await rig.quiet()
        publisher.say(*events(0))
        rig.broker.close()
        assert receiver.payloads() == numbers(0)
        assert isinstance(receiver.packets[-1], DisconnectPacket)
        assert [entry.payload for entry in rig.recorded() if isinstance(entry, EventEntry)] == numbers(0)

    run(scenario)


def test_the_end_of_a_turn_is_one_turn_away() -> None:
    async def scenario(rig: InMemory) -> None:
        publisher, receiver = await rig.connect("p"), await rig.connect("r")
        receiver.say(subscribe())
        await rig.quiet()
        publisher.say(publish(1))
        await asyncio.sleep(0)
        assert receiver.payloads() == [b"1"]

    run(scenario)
