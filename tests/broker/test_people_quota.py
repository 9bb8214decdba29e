"""``people_per_hour``: how many people the messages of a sender may go to, however it sends them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mqtt5 import (
    PubAckReasonCode,
    PubCompPacket,
    PubRecPacket,
    PubRecReasonCode,
    PubRelPacket,
    QoS,
    Will,
)
from tests.broker.talker import Talker, broker, run, serving, talking
from tests.broker.test_http import CLOUD_EVENT, CLOUD_EVENTS, asking
from tests.clocks import HandClock
from tests.waiting import until

from nearcast.broker.access.grants import Grant
from nearcast.broker.access.people import People
from nearcast.broker.access.rules import Rules
from nearcast.broker.access.users import add_user
from nearcast.broker.server import Server
from nearcast.broker.settings import RuleSettings
from nearcast.errors import QuotaExceeded
from nearcast.journal import Put
from nearcast.model.event import Event

PLACE = [("nc-place", "49.87,8.65"), ("nc-reach", '{"circle": 500, "at": [8.65, 49.87]}')]
RULES = (
    RuleSettings(
        name="town",
        users=("bob", "eve"),
        publish=("town/#",),
        within={"circle": 5_000, "at": [8.65, 49.87]},
        people_per_hour=5,
    ),
    RuleSettings(name="all", users=("bob",), publish=("free/#",)),
    RuleSettings(name="mixed", users=("bob",), publish=("plain/#",), people_per_hour=5),
    RuleSettings(name="readers", anonymous=True, subscribe=("#",)),
)
MINUTE = 60_000_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for user in ("bob", "eve"):
        add_user(tmp_path / "users", user, user)
    return tmp_path


async def readers(server: Server, count: int) -> list[Talker]:
    made = []
    for number in range(count):
        talker = await Talker.open(server)
        await talker.connect(f"reader-{number}")
        await talker.tell("$nearcast/position", b'{"type": "Point", "coordinates": [8.65, 49.87]}')
        await talker.subscribe("#")
        made.append(talker)
    return made


def bob(server: Server, **parts: Any) -> Any:
    return talking(server, "bob", username="bob", password=b"bob", **parts)


async def nobody_hears(server: Server, talkers: list[Talker]) -> None:
    """What comes next is what is said now: nothing came before it."""
    async with bob(server) as sender:
        await sender.tell("free/end", b"end")
        for each in talkers:
            assert (await each.heard()).topic == "free/end"


def test_what_would_go_beyond_is_refused_as_a_whole(folder: Path) -> None:
    async def scenario(server: Server) -> None:
        hearing = await readers(server, 3)
        async with bob(server) as sender:
            assert (await sender.tell("town/x", b"1", PLACE)).reason_code is PubAckReasonCode.SUCCESS
            for each in hearing:
                assert (await each.heard()).payload == b"1"
            refusal = await sender.tell("town/x", b"2", PLACE)  # three more would be six
            assert refusal.reason_code is PubAckReasonCode.QUOTA_EXCEEDED
            assert "would go to more people than the 2 of 5 that are left this hour" in (refusal.reason_str or "")
            assert "3" not in (refusal.reason_str or "")  # how many there are is not to be found out so
            hearing.pop().close()
            await until(lambda: len(server.broker.services.open) == 3)
            assert (await sender.tell("town/x", b"3", PLACE)).reason_code is PubAckReasonCode.SUCCESS
            for each in hearing:
                assert (await each.heard()).payload == b"3"
        await nobody_hears(server, hearing)
        assert server.broker.people.statistics().counted == 5

    broker(folder, scenario, access={"rules": RULES})


@pytest.mark.parametrize("topic", ["town/x", "plain/x"])
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("retain", [False, True])
def test_every_way_of_publishing_is_counted(folder: Path, topic: str, qos: int, retain: bool) -> None:
    async def scenario(server: Server) -> None:
        hearing = await readers(server, 2)
        properties = PLACE if topic.startswith("town") else None
        async with bob(server) as sender:
            # Twenty at once: enough to be gathered, if they were not to be counted one by one.
            for number in range(1, 21):
                packet_id = number if qos else None
                sender.publish(topic, b"%d" % number, properties, qos=QoS(qos), packet_id=packet_id, retain=retain)
            if qos == 2:
                codes = [await sender.next(PubRecPacket) for _ in range(20)]
                assert [code.reason_code for code in codes].count(PubRecReasonCode.QUOTA_EXCEEDED) == 18
                sender.send(*[PubRelPacket(code.packet_id) for code in codes[:2]])
                for _ in range(2):
                    await sender.next(PubCompPacket)
            for each in hearing:
                assert [(await each.heard()).payload for _ in range(2)] == [b"1", b"2"]
        await nobody_hears(server, hearing)
        assert server.broker.people.statistics().refused == 18

    broker(folder, scenario, access={"rules": RULES})


def test_a_will_is_counted_as_well(folder: Path) -> None:
    async def scenario(server: Server) -> None:
        hearing = await readers(server, 3)
        will = Will(topic="plain/gone", payload=b"will")
        async with bob(server) as sender:
            assert (await sender.tell("plain/x", b"1")).reason_code is PubAckReasonCode.SUCCESS
        async with talking(server, "bob-2", username="bob", password=b"bob", will=will):
            pass
        await until(lambda: server.broker.people.statistics().refused == 1)
        for each in hearing:
            await each.heard()
        await nobody_hears(server, hearing)

    broker(folder, scenario, access={"rules": RULES})


def test_by_http_and_mqtt_together_and_after_a_restart(folder: Path) -> None:
    event = {"specversion": "1.0", "id": "1", "source": "x", "type": "plain/x", "data": "1"}

    async def first(server: Server) -> None:
        await readers(server, 2)
        async with asking(server, auth=("bob", "bob")) as client, bob(server) as sender:
            answer = await client.post("/events/", json=event, headers=CLOUD_EVENT)
            assert answer.status_code == 201, answer.text
            answer = await client.post("/events/", json=[event, event | {"id": "2"}], headers=CLOUD_EVENTS)
            assert answer.status_code == 429
            assert "of 2 events the first 1 were published" in answer.json()["detail"]
            assert (await sender.tell("plain/x")).reason_code is PubAckReasonCode.QUOTA_EXCEEDED

    async def second(server: Server) -> None:
        await readers(server, 2)
        async with bob(server) as sender:
            assert (await sender.tell("plain/x")).reason_code is PubAckReasonCode.QUOTA_EXCEEDED

    async def both() -> None:
        for scenario in (first, second):
            async with serving(folder, access={"rules": RULES}, listen={"http_port": "any"}) as server:
                await scenario(server)

    run(both())


def test_users_are_counted_apart_and_other_times_cannot_be_addressed(folder: Path) -> None:
    async def scenario(server: Server) -> None:
        await readers(server, 5)
        for user in ("bob", "eve"):
            async with talking(server, user, username=user, password=user.encode()) as sender:
                assert (await sender.tell("town/x", b"1", PLACE)).reason_code is PubAckReasonCode.SUCCESS
                assert (await sender.tell("town/x", b"2", PLACE)).reason_code is PubAckReasonCode.QUOTA_EXCEEDED
                when = [*PLACE, ("nc-when", "overlaps(time, '-10m', 'now')")]
                refusal = await sender.tell("town/x", b"3", when)
                assert refusal.reason_code is PubAckReasonCode.NOT_AUTHORIZED
                assert "cannot be counted" in (refusal.reason_str or "")

    broker(folder, scenario, access={"rules": RULES})


class _Journal:
    def __init__(self) -> None:
        self.rows: dict[str, bytes] = {}

    def load(self, _table: str) -> dict[str, bytes]:
        return self.rows

    def keep(self, puts: tuple[Put, ...]) -> None:
        self.rows |= {put.key: put.value for put in puts if put.value is not None}


class _Sender:
    user = "ada"

    def __init__(self, limit: int) -> None:
        self._grant = Grant("rule", publish=("#",), people_per_hour=limit)

    def allowing(self, _event: Event) -> tuple[Grant, ...]:
        return (self._grant,)


@given(
    limit=st.integers(0, 30),
    steps=st.lists(st.tuples(st.integers(0, 40 * MINUTE), st.integers(0, 12), st.booleans()), max_size=40),
)
def test_within_any_hour_no_more_than_the_quota_goes_out(limit: int, steps: list[tuple[int, int, bool]]) -> None:
    """And what is refused would have been too much within little more than an hour; restarts change nothing."""
    clock, journal = HandClock(10 * 60 * MINUTE), _Journal()
    people = People(journal, str, clock.now)  # type: ignore[arg-type]  # all that it asks for
    went: list[tuple[int, int]] = []
    for pause, receivers, restart in steps:
        clock.time += pause
        now = clock.now()
        if restart:
            people = People(journal, str, clock.now)  # type: ignore[arg-type]
        meter = people.meter(_Sender(limit), Event("e", "t", now))
        assert meter is not None
        try:
            journal.keep(tuple(meter.count(receivers)))
            went.append((now, receivers))
        except QuotaExceeded:
            recent = sum(count for at, count in went if at > now - 61 * MINUTE)
            assert recent + receivers > limit
        assert sum(count for at, count in went if at > now - 60 * MINUTE) <= limit


class _Writer:
    user = "ada"

    def __init__(self, rules: tuple[RuleSettings, ...]) -> None:
        self._grants = Rules(rules).grants("ada", "phone") or ()

    def allowing(self, event: Event) -> tuple[Grant, ...]:
        return tuple(grant for grant in self._grants if grant.may_publish(event.topic))


def test_what_was_counted_stays_with_its_rule_when_the_file_is_changed() -> None:
    """Rules without a name were known by their number: whoever put another one before them took its count."""
    town, country, named = (
        RuleSettings(name=name, users=("ada",), publish=(f"{topic}/#",), people_per_hour=5)
        for name, topic in (("", "town"), ("", "country"), ("named", "named"))
    )
    people = People(_Journal(), str, HandClock(MINUTE * 600).now)  # type: ignore[arg-type]

    def refused(rules: tuple[RuleSettings, ...], topic: str, receivers: int) -> bool:
        meter = people.meter(_Writer(rules), Event("e", topic, 0))
        assert meter is not None
        try:
            meter.count(receivers)
        except QuotaExceeded:
            return True
        return False

    for topic, receivers in (("town/x", 5), ("named/x", 4)):
        assert not refused((town, country, named), topic, receivers)
    changed = (
        RuleSettings(users=("eve",), publish=("#",)),
        msgspec.structs.replace(country, people_per_hour=6),
        named,
        msgspec.structs.replace(town, people_per_hour=6),
    )
    assert not refused(changed, "country/x", 6)
    assert refused(changed, "named/x", 2)
    assert refused(changed, "town/x", 2)
    assert not refused(changed, "town/x", 1)
