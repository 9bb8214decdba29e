"""A whole broker with a clock of its own; only sockets are missing: clients take and confirm packets in memory."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mqtt5 import (
    ConnectPacket,
    PubAckReasonCode,
    PublishPacket,
    PubRelPacket,
    SubAckReasonCode,
    SubscribePacket,
    TopicFilter,
    UnsubAckReasonCode,
)
from tests.clocks import HandClock
from tests.waiting import PATIENCE, until

from nearcast.broker.access import ClientLimits, Peer, Principal
from nearcast.broker.access.grants import Grant
from nearcast.broker.core import Broker
from nearcast.broker.publishing.message import QUALITIES
from nearcast.broker.sessions.session import Session
from nearcast.broker.settings import BrokerSettings
from nearcast.errors import JournalFailed
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.mqtt import names
from nearcast.mqtt.requests import subscription_id
from nearcast.mqtt.stream import PacketReader

SPOT = Point(49.8728, 8.6512)


@dataclass
class Wire:
    """The other end of a connection; ``confirms``: at once, but for the turn of a loop."""

    session: Session | None = None
    confirms: bool = True
    version: int = 5
    congested: bool = False
    got: list[PublishPacket] = field(default_factory=list)
    _reader: PacketReader = field(default_factory=lambda: PacketReader(version=5))

    def write(self, data: bytes) -> None:
        for packet in self._reader.packets(data):
            assert isinstance(packet, PublishPacket)
            self.got.append(packet)
            if self.confirms and int(packet.qos):
                asyncio.get_running_loop().call_soon(self.confirm, packet)

    def write_all(self, packets: list[bytes]) -> None:
        self.write(b"".join(packets))

    def confirm(self, packet: PublishPacket) -> None:
        session = self.session
        if session is None or session.connection is not self:
            return
        assert packet.packet_id is not None
        if int(packet.qos) == 1:
            session.acknowledged(packet.packet_id)
        else:
            session.received(packet.packet_id)

    def send(self, packet: PubRelPacket) -> None:
        assert self.session is not None
        self.session.acknowledged(packet.packet_id)

    def has_room(self) -> bool:
        return True

    def taken_over(self) -> None: ...
    def dismissed(self) -> None: ...
    def moved(self) -> None: ...

    def ids(self) -> list[str]:
        return [told(packet, names.ID) or "" for packet in self.got]


def told(packet: PublishPacket, name: str) -> str | None:
    return dict(packet.user_properties).get(name)


class Rig:
    def __init__(self, folder: Path, clock: HandClock) -> None:
        self.folder = folder
        self.clock = clock
        self.broker = Broker(BrokerSettings(data=folder), asyncio.get_running_loop(), clock)
        self.broker.load()
        self.wires: dict[str, Wire] = {}
        self.events: list[Event] = []

    # Clients

    async def connect(self, client: str, *, expiry: int = 0, confirms: bool = True) -> Wire:
        wire = Wire(confirms=confirms)
        entered: asyncio.Future[tuple[Session, bool]] = asyncio.get_running_loop().create_future()

        def then(session: Session, present: bool, failed: JournalFailed | None) -> None:
            assert failed is None
            entered.set_result((session, present))

        packet = ConnectPacket(client, clean_start=False, session_expiry_interval=expiry)
        self.broker.lifecycle.enter(packet, client, 5, self.principal(client), wire, then)
        session, present = await asyncio.wait_for(entered, PATIENCE)
        wire.session = session
        self.wires[client] = wire
        self.broker.lifecycle.resumed(session, wire, present)
        return wire

    def disconnect(self, client: str) -> None:
        wire = self.wires[client]
        assert wire.session is not None
        self.broker.lifecycle.left(wire.session, wire, politely=True)

    def principal(self, client: str) -> Principal:
        return Principal(None, client, Peer("127.0.0.1"), None)

    def session(self, client: str) -> Session:
        return self.broker.sessions.all[client]

    # What they say; each gives a future, so that nobody has to wait

    def publish(
        self,
        client: str,
        topic: str = "a/b",
        *,
        id: str | None = None,  # noqa: A002
        qos: int = 1,
        payload: bytes = b"x",
        expiry: int | None = None,
        retain: bool = False,
        **said: str,
    ) -> asyncio.Future[tuple[PubAckReasonCode, str | None]]:
        """``said``: properties, without their ``nc-``; others end in an underscore."""
        properties = [(name[:-1] if name.endswith("_") else f"nc-{name}", text) for name, text in said.items()]
        if id is not None:
            properties.append((names.ID, id))
        packet = PublishPacket(
            topic,
            payload,
            qos=QUALITIES[qos],
            packet_id=1 if qos else None,
            retain=retain,
            message_expiry_interval=expiry,
            user_properties=[*(properties or ()), ("seen", "true")],  # so that none is plain: those are stored unseen
        )
        done: asyncio.Future[tuple[PubAckReasonCode, str | None]] = asyncio.get_running_loop().create_future()
        self.broker.publishing.publish(
            self.session(client), packet, topic, lambda *answer: done.set_result(answer), self
        )
        return done

    def may_publish_plain(self, topic: str) -> bool:
        return True

    def may_receive(self, topic: str) -> bool:
        return True

    @property
    def unrestricted(self) -> bool:
        return True

    @property
    def may_observe(self) -> bool:
        return True

    metered = False
    user = None

    def allowing(self, _event: Event) -> tuple[Grant, ...]:
        return ()

    def check_event(self, event: Event) -> None:
        self.events.append(event)

    def say(self, client: str, topic: str, payload: bytes = b"") -> asyncio.Future[tuple[PubAckReasonCode, str | None]]:
        """To a reserved topic, with quality 1."""
        done: asyncio.Future[tuple[PubAckReasonCode, str | None]] = asyncio.get_running_loop().create_future()
        asked = names.reserved(topic)
        assert asked is not None
        limits = ClientLimits(None)
        self.broker.reserved.handle(
            self.session(client),
            self.principal(client),
            limits,
            asked,
            payload,
            lambda *answer: done.set_result(answer),
        )
        return done

    def subscribe(
        self,
        client: str,
        topic_filter: str = "#",
        *,
        qos: int = 1,
        number: int | None = None,
        no_local: bool = False,
        **said: str,
    ) -> asyncio.Future[list[SubAckReasonCode]]:
        done: asyncio.Future[list[SubAckReasonCode]] = asyncio.get_running_loop().create_future()
        packet = SubscribePacket(
            1,
            [TopicFilter(topic_filter, max_qos=QUALITIES[qos], no_local=no_local)],
            subscription_id=number,
            user_properties=[(f"nc-{name}", text) for name, text in said.items()],
        )
        self.broker.subscribing.subscribe(
            self.session(client), self.principal(client), packet, lambda codes, _why: done.set_result(codes)
        )
        return done

    def unsubscribe(self, client: str, topic_filter: str, name: str = "") -> asyncio.Future[list[UnsubAckReasonCode]]:
        done: asyncio.Future[list[UnsubAckReasonCode]] = asyncio.get_running_loop().create_future()
        self.broker.subscribing.unsubscribe(
            self.session(client),
            [topic_filter],
            [(names.NAME, name)] if name else [],
            lambda codes, _: done.set_result(codes),
        )
        assert subscription_id(topic_filter, name) not in self.session(client).held
        return done

    def move(self, client: str, position: Point | None) -> None:
        self.broker.presence.moved(self.session(client), position)

    def register(self, client: str, name: str, attributes: Mapping[str, Any] | None) -> None:
        self.broker.presence.registered(self.session(client), name, attributes)

    # Time

    def advance(self, microseconds: int) -> None:
        """Timers are seen to at their own instants."""
        target = self.clock.time + microseconds
        moments = self.broker.temporal.addressing
        while moments._due and moments._due[0][0] <= target:
            self.clock.time = max(self.clock.time, moments._due[0][0])
            moments.tick()
        self.clock.time = target

    async def written(self) -> None:
        """Until all that was written is on disk, and those who waited for it know."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.broker.journal.write(then=lambda _: done.set_result(None))
        await asyncio.wait_for(done, PATIENCE)

    async def settle(self) -> None:
        """Until nothing is left to do: everything read, judged, written and confirmed."""
        chronology = self.broker.temporal
        while True:
            before = self._progress()
            await self.written()
            tasks = [*chronology.addressing._tasks, *chronology.unpublishing._tasks]
            if tasks:
                await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)
            await until(lambda: all(replay.is_waiting or replay.live for replay in self._replays()), pause=0.0)
            await self.written()
            if self._progress() == before:
                return

    def _replays(self) -> list[Any]:
        return [each for those in self.broker.temporal.replays._replays.values() for each in those.all.values()]

    def _progress(self) -> tuple[object, ...]:
        sessions = [session.statistics() for session in self.broker.sessions]
        return self.broker.journal.head, self.broker.journal.durable, *sessions, self.broker.temporal.statistics()

    # The end

    async def close(self) -> None:
        self.broker.close()
        await asyncio.sleep(0)

    async def killed(self, folder: Path) -> Rig:
        """A broker that begins with what is on disk now, as if this one had been killed."""
        await self.written()
        shutil.copytree(self.folder, folder)
        (folder / "journal" / "lock").unlink(missing_ok=True)
        await self.close()
        return Rig(folder, self.clock)


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Rig]:
    rig = Rig(folder, HandClock())
    try:
        yield rig
    finally:
        await rig.close()
