"""A broker as the archive of a crowd: in which order things are done, what is read, and what is taken for withdrawn."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest
from tests.clocks import START
from tests.runtime.live.virtual import VirtualLoop, in_virtual_time

from nearcast.client.client import Client
from nearcast.client.crowds import NAME, OVERLAP, OWNER, MqttArchive
from nearcast.crowdstore.access import Identity
from nearcast.crowdstore.bridge import Archived, identifier_of
from nearcast.crowdstore.objects import Metadata, ObjectKey, Publication, Withdrawal, digest_of
from nearcast.errors import Denied, InvalidEvent, TimedOut
from nearcast.model.event import Event
from nearcast.model.time import MICROSECONDS, instant
from nearcast.model.topic import topic_matches
from nearcast.runtime.host import Host

TOPIC = "crowd/stadium"
ADA = Identity(b"a" * 32)


def photo(name: str = "photo", published: int = 7, content: bytes = b"pixels") -> Publication:
    made = Metadata(ObjectKey(ADA.name, name), ("goal",), published, len(content), digest_of(content), b"thumbnail")
    return Publication(ADA.signed(made), content)


class Broker:
    """A client, and the broker behind it, as far as an archive asks for them."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.events: dict[str, Event] = {}
        self.foreign: set[str] = set()
        """Ids of what somebody else has published."""

        self.refused: set[str] = set()
        self.reachable = True
        self.connections = 1
        self.done: list[tuple[str, str]] = []
        self.read: list[str] = []
        self.cut_after: int | None = None
        """The connection is lost after so many events of a look, of which nobody is told the rest."""

    @property
    def client(self) -> Client:
        return cast("Client", self)

    def now(self) -> int:
        return START + round(self._loop.time() * MICROSECONDS)

    def add(self, identifier: str, topic: str = TOPIC, payload: bytes = b"", **attributes: object) -> None:
        self.events[identifier] = Event(identifier, topic, self.now(), attributes, {"goal"}, payload)

    async def _answer(self) -> None:
        await asyncio.sleep(0.01)
        if not self.reachable:
            raise TimedOut("nobody answers")

    async def publish(
        self,
        topic: str,
        payload: bytes = b"",
        *,
        place: None,
        id: str | None = None,  # noqa: A002 - as the client calls it
        tags: Iterable[str] = (),
        attributes: Mapping[str, object] | None = None,
    ) -> str:
        assert place is None
        await self._answer()
        identifier = id or f"given-{len(self.done)}"
        if identifier in self.refused:
            raise InvalidEvent("poison")
        self.done.append(("publish", identifier))
        self.events[identifier] = Event(identifier, topic, self.now(), attributes or {}, tags, payload)
        return identifier

    async def unpublish(self, event: str) -> None:
        await self._answer()
        if event in self.foreign:
            raise Denied("published by somebody else")
        if event not in self.events:
            raise InvalidEvent("there is no such event")
        self.done.append(("unpublish", event))
        del self.events[event]

    async def subscribe(self, topic: str, *, since: str, until: str, retained: bool) -> AsyncIterator[Event]:
        assert until == "now"
        assert not retained
        await self._answer()
        first = instant(since)
        found = [each for each in self.events.values() if each.published >= first and topic_matches(topic, each.topic)]
        for number, event in enumerate(found):
            if number == self.cut_after:
                self.cut_after = None
                self.connections += 1
                return
            self.read.append(event.id)
            yield event

    def statistics(self) -> object:
        return SimpleNamespace(link=SimpleNamespace(connections=self.connections))


class Desk:
    """An archive at work, and what it tells."""

    def __init__(self, broker: Broker) -> None:
        self.news: dict[str, Archived] = {}
        self.gone: dict[str, Withdrawal | None] = {}
        self.archive = MqttArchive(broker.client, "stadium", period=10.0)
        self.archive.open(self._told)
        loop = asyncio.get_running_loop()
        self._tick: Callable[[], None] = lambda: None

        def every(_seconds: float, act: Callable[[], None], *, first: float) -> None:
            assert first == 0.0
            self._tick = act

        timers = SimpleNamespace(every=every, after=loop.call_later)
        self.archive.start(cast("Host", SimpleNamespace(timers=timers)))

    def _told(self, news: Mapping[str, Archived], gone: Mapping[str, Withdrawal | None]) -> None:
        self.news.update(news)
        self.gone.update(gone)

    async def look(self, pause: float = 15.0) -> None:
        self._tick()
        await asyncio.sleep(pause)

    async def leave(self) -> None:
        self.archive.close()
        await self.archive.done()


def told(story: Callable[[Broker, Desk], Awaitable[None]]) -> None:
    """Tell it in virtual time."""

    async def begin(loop: VirtualLoop) -> None:
        broker = Broker(loop)
        await asyncio.sleep(1_000)  # a broker that has been there for a while
        desk = Desk(broker)
        await story(broker, desk)
        await desk.leave()

    in_virtual_time(begin)


def test_what_takes_too_long_is_tried_again_in_its_turn() -> None:
    async def story(broker: Broker, desk: Desk) -> None:
        await desk.look()
        broker.reachable = False
        one, two = photo(), photo("two")
        desk.archive.keep(identifier_of(one.metadata), one)
        desk.archive.keep(identifier_of(two.metadata), two)
        await asyncio.sleep(0.005)
        desk.archive.forget(identifier_of(one.metadata), ADA.withdrawal(one.metadata))
        await asyncio.sleep(0.1)
        broker.reachable = True
        await asyncio.sleep(1)
        assert identifier_of(one.metadata) not in broker.events
        assert identifier_of(two.metadata) in broker.events
        assert desk.archive.statistics().failed == 0

    told(story)


def test_an_object_comes_back_with_all_that_its_owner_said() -> None:
    async def story(broker: Broker, desk: Desk) -> None:
        one = photo()
        desk.archive.keep(identifier_of(one.metadata), one)
        await desk.look()
        event = broker.events[identifier_of(one.metadata)]
        assert (event.attributes[OWNER], event.attributes[NAME]) == (ADA.name, "photo")
        other = Desk(broker)
        await other.look()
        found = other.news[event.id]
        assert (found.metadata, found.content) == (one.metadata, b"pixels")
        await other.leave()

    told(story)


def test_what_is_there_is_not_published_again() -> None:
    async def story(broker: Broker, desk: Desk) -> None:
        await desk.look()
        one = photo()
        other = Desk(broker)
        other.archive.keep(identifier_of(one.metadata), one)
        await asyncio.sleep(1)
        desk.archive.keep(identifier_of(one.metadata), one)
        await asyncio.sleep(1)
        assert [each for each in broker.done if each[1] == identifier_of(one.metadata)] == [
            ("publish", identifier_of(one.metadata))
        ]
        await other.leave()

    told(story)


def test_only_what_is_new_is_read_but_now_and_then() -> None:
    async def story(broker: Broker, desk: Desk) -> None:
        for number in range(100):
            broker.add(f"old {number}", payload=bytes(100_000))
            await asyncio.sleep(0.001)
        await asyncio.sleep(OVERLAP)
        await desk.look(1)
        assert len(broker.read) == 100
        broker.add("new")
        await desk.look(OVERLAP)
        await desk.look(1)
        assert {broker.read.count(f"old {number}") for number in range(100)} == {2}, "the newest once more"
        broker.read.clear()
        for _ in range(3):
            await desk.look(0.5)
        assert broker.read == ["new"] * 3
        assert sorted(desk.news) == sorted(["new", *(f"old {number}" for number in range(100))])
        del broker.events["old 7"]
        await asyncio.sleep(60)
        await desk.look(1)
        assert desk.archive.statistics().whole == 1, "10 MB are not read again so soon"
        await asyncio.sleep(60)
        await desk.look(1)
        assert desk.gone == {"old 7": None}
        assert desk.archive.statistics().whole == 2

    told(story)


def test_what_comes_late_and_is_older_than_the_newest_is_found() -> None:
    async def story(broker: Broker, desk: Desk) -> None:
        await desk.look(1)
        broker.add("newest")
        at = broker.now()
        await asyncio.sleep(1)
        await desk.look(1)
        broker.events["late"] = Event("late", TOPIC, at - 1)
        await desk.look(1)
        assert list(desk.news) == ["newest", "late"]
        assert desk.archive.statistics().whole == 1

    told(story)


def test_what_retention_deletes_was_not_taken_back() -> None:
    async def story(broker: Broker, desk: Desk) -> None:
        for number in range(10):
            broker.add(f"event {number}")
            await asyncio.sleep(60)
        await desk.look()
        for number in range(6):
            del broker.events[f"event {number}"]
        await desk.look()
        assert desk.gone == {}
        del broker.events["event 8"]
        await desk.look()
        assert desk.gone == {"event 8": None}
        broker.events.clear()
        await desk.look()
        await desk.look()
        assert desk.gone == {"event 8": None}

    told(story)


def test_the_only_event_is_missed_because_there_is_a_bookmark() -> None:
    async def story(broker: Broker, desk: Desk) -> None:
        await desk.look()
        broker.add("evt")
        await desk.look()
        del broker.events["evt"]
        await desk.look()
        assert desk.gone == {"evt": None}
        assert [each.topic for each in broker.events.values()] == [f"{TOPIC}/bookmark"], "one is enough"

    told(story)


def test_what_was_there_in_an_earlier_life_is_missed() -> None:
    async def story(broker: Broker, desk: Desk) -> None:
        broker.add("older")
        await asyncio.sleep(60)
        desk.archive.expect("evt", broker.now())
        desk.archive.expect("older", broker.now())
        desk.archive.expect("from before all that is there", broker.now() - 3_600 * MICROSECONDS)
        await desk.look()
        assert desk.gone == {"evt": None}
        assert list(desk.news) == ["older"], "it is told like any other"

    told(story)


def test_a_look_in_which_the_connection_was_lost_proves_nothing() -> None:
    async def story(broker: Broker, desk: Desk) -> None:
        for number in range(10):
            broker.add(f"event {number}")
            await asyncio.sleep(60)
        await desk.look()
        broker.cut_after = 3
        await desk.look()
        assert broker.connections == 2
        await desk.look()
        assert desk.gone == {}

    told(story)


def test_what_another_bridge_has_published_that_one_takes_back() -> None:
    async def story(broker: Broker, desk: Desk) -> None:
        one = photo()
        identifier = identifier_of(one.metadata)
        desk.archive.keep(identifier, one)
        await desk.look()
        broker.foreign.add(identifier)
        other = Desk(broker)
        await other.look()
        word = ADA.withdrawal(one.metadata)
        other.archive.forget(identifier, word)
        await asyncio.sleep(1)
        assert other.archive.statistics().foreign == 1
        broker.foreign.clear()
        await desk.look()
        assert desk.gone == {identifier: word}
        await asyncio.sleep(1)
        assert identifier not in broker.events
        await other.look()
        await other.look()
        assert other.archive.statistics().foreign == 0
        late = Desk(broker)
        await late.look()
        late.archive.keep(identifier, one)
        await late.look()
        assert identifier not in broker.events, "who has missed it does not bring it back"
        await late.leave()
        await other.leave()

    told(story)


@pytest.mark.parametrize("said", ["?", "kQ==", base64.b64encode(b"\x91" * 3_000 + b"\xc0").decode(), 5])
def test_what_claims_to_be_an_object_and_is_none_is_counted(said: object) -> None:
    async def story(broker: Broker, desk: Desk) -> None:
        broker.add("evt", crowd_owner="ada", crowd_metadata=said)
        broker.add("older", crowd_owner="ada", crowd_name="photo")
        broker.add("no word", topic=f"{TOPIC}/withdrawn", payload=b"\x91" * 3_000 + b"\xc0")
        forged = msgspec.msgpack.encode(Withdrawal(ObjectKey(ADA.name, "photo"), 7))
        broker.add("forged", topic=f"{TOPIC}/withdrawn", payload=forged)
        broker.add("good")
        await desk.look()
        await desk.look()
        assert list(desk.news) == ["good"]
        assert desk.gone == {}
        assert desk.archive.statistics().unreadable == 4, "each once"

    told(story)


def test_what_cannot_travel_to_the_broker_is_refused_and_holds_up_nothing() -> None:
    async def story(broker: Broker, desk: Desk) -> None:
        broker.refused.add(identifier_of(photo("poison").metadata))
        for name in ("poison", "photo"):
            one = photo(name)
            desk.archive.keep(identifier_of(one.metadata), one)
        await desk.look()
        assert identifier_of(photo().metadata) in broker.events
        assert desk.archive.statistics().failed == 1
        assert "poison" in str(desk.archive.problem)

    told(story)


def test_venues_whose_names_go_on_after_a_slash_are_others() -> None:
    async def story(broker: Broker, desk: Desk) -> None:
        broker.add("there", topic=f"{TOPIC}/east")
        broker.add("here")
        await desk.look()
        assert list(desk.news) == ["here"]

    told(story)
