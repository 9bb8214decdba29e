"""What comes in one turn of the loop goes together, and yet everything is as if it had come one by one."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mqtt5 import (
    AuthPacket,
    DisconnectPacket,
    Packet,
    PubAckPacket,
    PublishPacket,
    PubRecPacket,
    QoS,
    SubAckPacket,
    SubscribePacket,
    TopicFilter,
    UnsubscribePacket,
)
from tests.broker.in_memory import InMemory, in_memory, untimely

from nearcast.broker.publishing import batching
from nearcast.errors import InvalidRecord
from nearcast.journal import EventEntry, Put, Record, ReportEntry, Then

HERE, NEARBY, FAR = "49.8728,8.6512", "49.8729,8.6513", "50.1000,8.6000"
MANY = 3 * batching.FEW


def publish(number: int, place: str = HERE, *more: tuple[str, str], topic: str = "city/report") -> PublishPacket:
    return PublishPacket(topic, b"%d" % number, user_properties=[("nc-place", place), *more])


def move(place: str) -> PublishPacket:
    return PublishPacket("$nearcast/position", place.encode())


def subscribe(*properties: tuple[str, str], topic: str = "city/#", **options: Any) -> SubscribePacket:
    wanted = TopicFilter(topic, max_qos=QoS.AT_MOST_ONCE, **options)
    return SubscribePacket(1, [wanted], user_properties=list(properties))


AROUND_ME = ("nc-area", "150")


def numbers(first: int, count: int = MANY) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


def events(first: int, count: int = MANY, place: str = HERE) -> list[PublishPacket]:
    return [publish(number, place) for number in range(first, first + count)]


def run(scenario: Callable[[InMemory], Any]) -> None:
    async def with_broker() -> None:
        async with in_memory() as rig:
            await scenario(rig)

    asyncio.run(with_broker())


def test_many_events_of_one_turn_come_in_their_order_to_whoever_is_near() -> None:
    async def scenario(rig: InMemory) -> None:
        publishers = [await rig.connect(f"p{number}") for number in range(MANY)]
        near, far = await rig.connect("near"), await rig.connect("far")
        near.say(move(NEARBY), subscribe(AROUND_ME))
        far.say(move(FAR), subscribe(AROUND_ME))
        await rig.quiet()
        for number, publisher in enumerate(publishers):
            publisher.say(publish(number))
        assert near.payloads() == []
        await rig.turn()
        assert near.payloads() == numbers(0)
        assert far.payloads() == []
        assert rig.broker.batching.statistics().largest == MANY

    run(scenario)


def test_a_receiver_that_moves_between_two_events_of_one_turn_gets_the_one_before() -> None:
    async def scenario(rig: InMemory) -> None:
        publisher, receiver = await rig.connect("p"), await rig.connect("r")
        receiver.say(move(NEARBY), subscribe(AROUND_ME))
        await rig.quiet()
        publisher.say(*events(0))
        receiver.say(move(FAR))
        publisher.say(*events(100))
        receiver.say(move(NEARBY))
        publisher.say(*events(200))
        await rig.turn()
        assert receiver.payloads() == numbers(0) + numbers(200)

    run(scenario)


def test_a_publisher_that_moves_between_its_events_in_one_chunk_is_here_where_it_is() -> None:
    async def scenario(rig: InMemory) -> None:
        publisher, receiver = await rig.connect("p"), await rig.connect("r")
        receiver.say(move(NEARBY), subscribe(AROUND_ME))
        await rig.quiet()
        publisher.say(move(FAR), publish(1, "here"), move(HERE), publish(2, "here"), *events(3), move(FAR))
        await rig.turn()
        assert receiver.payloads() == [b"2", *numbers(3)]

    run(scenario)


def test_who_subscribes_between_two_events_of_one_turn_gets_the_one_after() -> None:
    async def scenario(rig: InMemory) -> None:
        publisher, receiver = await rig.connect("p"), await rig.connect("r")
        receiver.say(move(NEARBY))
        await rig.quiet()
        publisher.say(*events(0))
        receiver.say(subscribe(AROUND_ME))
        publisher.say(*events(100))
        receiver.say(UnsubscribePacket(2, ["city/#"]))
        publisher.say(*events(200))
        await rig.quiet()
        assert receiver.payloads() == numbers(100)

    run(scenario)


def test_what_changes_without_a_packet_changes_after_what_was_published_before() -> None:
    async def scenario(rig: InMemory) -> None:
        publisher, receiver = await rig.connect("p"), await rig.connect("r")
        receiver.say(move(NEARBY), subscribe(AROUND_ME))
        await rig.quiet()
        publisher.say(*events(0))
        session = rig.broker.sessions.all["r"]
        rig.broker.router.unsubscribe(session, session.held["city/#"])
        publisher.say(*events(100))
        await rig.turn()
        assert receiver.payloads() == numbers(0)

    run(scenario)


def test_a_publisher_that_says_goodbye_in_the_same_turn_has_published() -> None:
    async def scenario(rig: InMemory) -> None:
        publisher, receiver = await rig.connect("p"), await rig.connect("r")
        receiver.say(move(NEARBY), subscribe(AROUND_ME))
        await rig.quiet()
        publisher.say(*events(0), DisconnectPacket())
        await rig.turn()
        assert receiver.payloads() == numbers(0)

    run(scenario)


def test_a_receiver_that_says_goodbye_in_the_same_turn_gets_what_came_before() -> None:
    async def scenario(rig: InMemory) -> None:
        publisher, receiver = await rig.connect("p"), await rig.connect("r")
        receiver.say(move(NEARBY), subscribe(AROUND_ME))
        await rig.quiet()
        publisher.say(*events(0))
        receiver.say(DisconnectPacket())
        publisher.say(*events(100))
        await rig.turn()
        assert receiver.payloads() == numbers(0)

    run(scenario)


@pytest.mark.parametrize("wrong", [AuthPacket().write(), b"\x00\x00"])
def test_nothing_follows_the_goodbye_of_the_broker_to_a_receiver_that_does_wrong_in_the_same_turn(wrong: bytes) -> None:
    async def scenario(rig: InMemory) -> None:
        publisher, receiver = await rig.connect("p"), await rig.connect("r")
        receiver.say(move(NEARBY), subscribe(AROUND_ME))
        await rig.quiet()
        publisher.say(*events(0))
        receiver.connection.data_received(wrong)
        publisher.say(*events(100))
        await rig.turn()
        assert receiver.payloads() == numbers(0)
        assert isinstance(receiver.packets[-1], DisconnectPacket)

    run(scenario)


def test_a_plain_message_after_events_with_places_comes_after_them() -> None:
    async def scenario(rig: InMemory) -> None:
        publisher, receiver = await rig.connect("p"), await rig.connect("r")
        receiver.say(subscribe())
        await rig.quiet()
        publisher.say(*events(0), PublishPacket("city/report", b"plain"), *events(100))
        await rig.turn()
        assert receiver.payloads() == [*numbers(0), b"plain", *numbers(100)]

    run(scenario)


def test_receivers_of_all_kinds_get_what_they_asked_for() -> None:
    async def scenario(rig: InMemory) -> None:
        names = ("own", "without own", "numbered", "plain", "twice", "small")
        own, without, numbered, plain, twice, small = [
            await rig.connect(name, **({"max_packet_size": 60} if name == "small" else {})) for name in names
        ]
        for client in rig.clients.values():
            client.say(move(NEARBY))
        own.say(subscribe(AROUND_ME))
        without.say(subscribe(AROUND_ME, no_local=True))
        numbered.say(
            SubscribePacket(
                1, [TopicFilter("city/#", max_qos=QoS.AT_MOST_ONCE)], subscription_id=7, user_properties=[AROUND_ME]
            )
        )
        plain.say(subscribe())
        twice.say(subscribe(AROUND_ME), subscribe(("nc-where", "severity > 2"), topic="city/report"))
        small.say(subscribe(AROUND_ME))
        await rig.quiet()
        for number in range(MANY):
            (own, without)[number % 2].say(publish(number, HERE, ("severity", f"{number % 5}")))
        await rig.turn()
        everything = numbers(0)
        assert own.payloads() == numbered.payloads() == plain.payloads() == twice.payloads() == everything
        assert without.payloads() == everything[::2]
        assert small.payloads() == []
        for client, told, identifiers in ((own, 4, []), (plain, 2, []), (numbered, 4, [7]), (twice, 4, [])):
            for packet in client.packets:
                if isinstance(packet, PublishPacket):
                    assert (len(packet.user_properties), packet.subscription_ids) == (told, identifiers)

    run(scenario)


def test_members_of_a_group_share_the_events_of_one_turn() -> None:
    async def scenario(rig: InMemory) -> None:
        publisher, one, other = [await rig.connect(name) for name in ("p", "a", "b")]
        one.say(subscribe(topic="$share/g/city/#"))
        other.say(subscribe(topic="$share/g/city/#"))
        await rig.quiet()
        publisher.say(*events(0))
        await rig.turn()
        assert sorted(one.payloads() + other.payloads(), key=int) == numbers(0)
        assert len(one.payloads()) == len(other.payloads())

    run(scenario)


def test_the_journal_holds_who_got_what_and_who_was_where() -> None:
    async def scenario(rig: InMemory) -> None:
        clients = [await rig.connect(f"c{number}") for number in range(MANY)]
        for client in clients:
            client.say(move(NEARBY), move(HERE))
        clients[0].say(subscribe(AROUND_ME))
        clients[1].say(subscribe(("nc-area", "150"), topic="elsewhere"))
        await rig.quiet()
        for number, client in enumerate(clients):
            client.say(move(FAR if number == 0 else NEARBY))
        for number, client in enumerate(clients):
            client.say(publish(number, FAR if number % 2 else HERE, ("nc-tag", "b"), ("nc-tag", "a")))
        await rig.quiet()
        identity = {name: session.identity for name, session in rig.broker.sessions.all.items()}
        recorded = rig.recorded()
        reports = Counter(record.who for record in recorded if isinstance(record, ReportEntry))
        assert reports == {identity[f"c{number}"]: 3 for number in range(MANY)}
        stored = [record for record in recorded if isinstance(record, EventEntry)]
        assert [(entry.payload, entry.publisher) for entry in stored] == [
            (b"%d" % number, identity[f"c{number}"]) for number in range(MANY)
        ]
        assert [entry.receivers for entry in stored] == [(), (identity["c0"],)] * (MANY // 2)
        assert {entry.tags for entry in stored} == {("a", "b")}
        assert len({entry.id for entry in stored}) == MANY

    run(scenario)


def test_an_event_that_the_journal_does_not_take_is_told_of_and_keeps_none_of_the_others_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(rig: InMemory) -> None:
        publisher, receiver = await rig.connect("p"), await rig.connect("r")
        publisher.say(subscribe(topic="$nearcast/problems"))
        receiver.say(move(NEARBY), subscribe(AROUND_ME))
        await rig.quiet()
        write = rig.broker.journal.write

        def refusing(records: Sequence[Record] = (), puts: Sequence[Put] = (), then: Then | None = None) -> int:
            if any(isinstance(record, EventEntry) and record.payload == b"3" for record in records):
                raise InvalidRecord("a record that the journal cannot keep")
            return write(records, puts, then)

        with monkeypatch.context() as patched:
            patched.setattr(rig.broker.journal, "write", refusing)
            publisher.say(*events(0))
            await rig.turn()
        await rig.quiet()
        others = [payload for payload in numbers(0) if payload != b"3"]
        assert receiver.payloads() == others
        assert publisher.payloads() == [b"a record that the journal cannot keep"]
        assert [record.payload for record in rig.recorded() if isinstance(record, EventEntry)] == others

    run(scenario)


def test_what_is_wrong_with_one_event_keeps_none_of_the_others_back() -> None:
    async def scenario(rig: InMemory) -> None:
        publisher, receiver = await rig.connect("p"), await rig.connect("r")
        publisher.say(subscribe(topic="$nearcast/problems"))
        receiver.say(move(NEARBY), subscribe(AROUND_ME))
        await rig.quiet()
        publisher.say(*events(0), publish(-1, "91,0"), publish(-2, HERE, ("nc-nonsense", "1")), *events(MANY))
        publisher.say(move("nowhere"))
        await rig.turn()
        assert receiver.payloads() == numbers(0, 2 * MANY)
        assert len(publisher.payloads()) == 3

    run(scenario)


# Against the oracle: one packet for each turn of the loop

Saying = tuple[int, Packet]
"""Who says it, and what."""

SPOTS = (HERE, NEARBY, "49.8738,8.6512", FAR)
CLIENTS = 4
topics = st.sampled_from(("a", "b", "a/c"))
filters = st.sampled_from(("a", "#", "a/#", "b", "$share/g/a"))
attributes = st.lists(
    st.sampled_from((("severity", "1"), ("severity", "4"), ("nc-tag", "x"), ("name", "text"))), max_size=2, unique=True
)
payloads = st.binary(min_size=1, max_size=3)


@st.composite
def publishes(draw: st.DrawFn) -> PublishPacket:
    """None is to be retained: which one a new subscriber gets depends on how fast the disk is."""
    place = draw(st.sampled_from((*SPOTS, "here", None, None, None)))
    properties = [*([] if place is None else [("nc-place", place)]), *draw(attributes)]
    if draw(st.integers(0, 9)) == 0:
        properties.append(("nc-reach", draw(st.sampled_from(("120", '{"circle": 200, "at": [8.6512, 49.8728]}')))))
    quality = draw(st.sampled_from((0, 0, 0, 1, 1, 1, 2)))
    return PublishPacket(
        draw(topics),
        b"%d" % quality + draw(payloads),
        qos=QoS(quality),
        packet_id=draw(st.integers(1, 60_000)) if quality else None,
        user_properties=properties,
    )


@st.composite
def subscribes(draw: st.DrawFn) -> SubscribePacket:
    properties = draw(
        st.sampled_from(((), (("nc-area", "150"),), (("nc-area", "60"),), (("nc-where", "severity > 2"),)))
    )
    pattern = draw(filters)
    wanted = TopicFilter(
        pattern,
        max_qos=QoS(draw(st.integers(0, 1))),
        no_local=not pattern.startswith("$") and draw(st.booleans()),
    )
    identifier = draw(st.sampled_from((None, 5)))
    return SubscribePacket(1, [wanted], subscription_id=identifier, user_properties=list(properties))


moves = st.sampled_from((*SPOTS, "")).map(move)
unsubscribes = filters.map(lambda pattern: UnsubscribePacket(2, [pattern]))
packets = st.one_of(publishes(), publishes(), publishes(), publishes(), moves, moves, subscribes(), unsubscribes)
sayings = st.lists(st.tuples(st.integers(0, CLIENTS - 1), packets), min_size=2, max_size=30)


@dataclass(frozen=True)
class Outcome:
    """What came of it: copies of each client, by the quality of the publish (payloads begin with it; those of quality 1 wait for the disk,
    and MQTT 5, 4.6, knows no order between the two), answers, records.
    """

    copies: dict[tuple[str, bytes], list[tuple[Any, ...]]]
    answers: Counter[tuple[str, ...]]
    """To SUBSCRIBE and PUBLISH: a refusal need not wait for the disk, so that these have no order either."""

    records: list[tuple[Any, ...]]


async def outcome(said: Sequence[Saying], beginnings: Sequence[Saying], few: int | None) -> Outcome:
    """If all is said in one turn, where less than ``few`` go one by one; none: if each packet has a turn of its own."""
    async with in_memory() as rig:
        rig.broker.batching.few = few or batching.FEW
        clients = [await rig.connect(f"c{number}") for number in range(CLIENTS)]
        for who, packet in beginnings:
            clients[who].say(packet)
            await rig.turn()
        for who, packet in said:
            clients[who].say(packet)
            if few is None:
                await rig.turn()
        await rig.quiet()
        copies: dict[tuple[str, bytes], list[tuple[Any, ...]]] = {}
        answers: Counter[tuple[str, ...]] = Counter()
        for name, client in rig.clients.items():
            for packet in client.packets:
                if isinstance(packet, PublishPacket):
                    copies.setdefault((name, packet.payload[:1]), []).append(untimely(packet))
                elif isinstance(packet, SubAckPacket):
                    answers[name, *map(str, packet.reason_codes)] += 1
                elif isinstance(packet, PubAckPacket | PubRecPacket):
                    answers[name, str(packet.packet_id), str(packet.reason_code)] += 1
        who_is = {session.identity: name for name, session in rig.broker.sessions.all.items()}
        records = [
            _event(record, who_is) if isinstance(record, EventEntry) else (who_is[record.who], record.lat, record.lon)
            for record in rig.recorded()
        ]
        return Outcome(copies, answers, records)


def _event(entry: EventEntry, who_is: Mapping[str, str]) -> tuple[Any, ...]:
    receivers = sorted(who_is[receiver] for receiver in entry.receivers)
    said = entry.lat, entry.lon, entry.reach, entry.attributes, entry.tags, entry.user_properties
    return entry.topic, entry.payload, entry.qos, who_is[entry.publisher or ""], receivers, said


@pytest.mark.parametrize("few", [2, batching.FEW])
@settings(max_examples=15, deadline=None)
@given(
    beginnings=st.lists(st.tuples(st.integers(0, CLIENTS - 1), st.one_of(moves, subscribes())), max_size=6),
    said=sayings,
)
def test_a_turn_has_the_same_outcome_as_its_packets_one_by_one(
    few: int, beginnings: list[Saying], said: list[Saying]
) -> None:
    together = asyncio.run(outcome(said, beginnings, few))
    assert together == asyncio.run(outcome(said, beginnings, None))
