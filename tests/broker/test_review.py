"""What a second reading of the broker found: answers that differed from the definition, and memory that grew without end."""

from __future__ import annotations

import sqlite3
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from mqtt5 import (
    DisconnectPacket,
    DisconnectReasonCode,
    PubAckPacket,
    PubAckReasonCode,
    PubCompPacket,
    PublishPacket,
    PubRecPacket,
    PubRelPacket,
    QoS,
    SubAckPacket,
    SubAckReasonCode,
    SubscribePacket,
    TopicFilter,
    UnsubAckPacket,
    UnsubAckReasonCode,
    UnsubscribePacket,
    Will,
)
from tests.broker.talker import Talker, broker, run, serving, talking
from tests.broker.temporal_rig import SPOT, running
from tests.waiting import until

from nearcast.broker.publishing.message import Message, size_of_kept
from nearcast.broker.publishing.retained import AT_ONCE
from nearcast.broker.server import Server
from nearcast.broker.settings import RuleSettings
from nearcast.broker.temporal.replaying import MOST_READING
from nearcast.journal.store import Store
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS
from nearcast.settings_files import Duration

DAY: dict[str, Any] = {"clean_start": False, "session_expiry_interval": 86_400}
POSITION = "$nearcast/position"


# Relevance of what is retained


def test_a_plain_subscription_gets_a_retained_message_only_within_its_reach(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        reach = [("nc-reach", '{"circle": 100, "at": [8.65, 49.87]}')]
        async with talking(server, "writer") as writer, talking(server, "far") as far, talking(server, "near") as near:
            await writer.tell("news", b"for those who are there", reach, retain=True)
            await far.tell(POSITION, b"48.0,8.0")
            await near.tell(POSITION, b"49.87,8.65")
            await far.subscribe("news", 1)
            await near.subscribe("news", 1)
            assert (await near.heard()).payload == b"for those who are there"
            await far.nothing()

    broker(tmp_path, scenario)


def test_addressing_sees_the_position_for_what_is_retained_too(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        here = [("nc-to", "S_WITHIN(position, POLYGON((8 49, 9 49, 9 50, 8 50, 8 49)))")]
        async with talking(server, "writer") as writer, talking(server, "reader") as reader:
            await writer.tell("news", b"1", here, retain=True)
            await reader.tell(POSITION, b"49.87,8.65")
            await reader.subscribe("news", 1, [("nc-name", "mine")])
            assert (await reader.heard()).payload == b"1"

    broker(tmp_path, scenario)


# Quotas


def test_one_packet_cannot_hold_more_subscriptions_than_a_client_may(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "greedy") as greedy:
            filters = [TopicFilter(f"a/{number}") for number in range(30)]
            greedy.send(SubscribePacket(1, filters))
            answer = await greedy.next(SubAckPacket)
            assert answer.reason_codes.count(SubAckReasonCode.QUOTA_EXCEEDED) == 20
        assert server.broker.sessions.statistics().subscriptions <= 10

    broker(tmp_path, scenario, limits={"subscriptions_per_client": 10})


def test_many_filters_in_one_packet_are_as_many_subscriptions_of_its_rate(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "fast") as fast:
            fast.send(SubscribePacket(1, [TopicFilter(f"a/{number}") for number in range(10)]))
            assert SubAckReasonCode.QUOTA_EXCEEDED not in (await fast.next(SubAckPacket)).reason_codes
            assert (await fast.subscribe("b")).reason_codes == [SubAckReasonCode.QUOTA_EXCEEDED]

    limits = {"loopback": True, "subscribes_per_second": 1.0, "burst": Duration.of("10s")}
    broker(tmp_path, scenario, limits=limits)


def test_a_will_is_retained_only_as_long_as_there_is_room(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        for number in range(5):
            will = Will(topic=f"last/{number}", payload=b"gone", qos=QoS.AT_LEAST_ONCE, retain=True)
            async with talking(server, f"mortal {number}", will=will):
                pass
            await until(lambda: not server.broker.sessions.all)
        assert server.broker.statistics().retained == 2

    broker(tmp_path, scenario, limits={"retained_messages": 2})


# Rules


def test_a_will_is_checked_where_its_client_vanishes(tmp_path: Path) -> None:
    rule = RuleSettings(anonymous=True, publish=("#",), subscribe=("#",), within={"circle": 1_000, "at": [8.65, 49.87]})

    async def scenario(server: Server) -> None:
        will = Will(topic="last", payload=b"here I was", user_properties=[("nc-reach", "100")])
        async with talking(server, "reader") as reader:
            await reader.subscribe("last", 0)
            await reader.tell(POSITION, b"52.0,13.0")
            async with talking(server, "walker", **DAY) as walker:
                await walker.tell(POSITION, b"49.87,8.65")
            async with talking(server, "walker", clean_start=False, session_expiry_interval=60, will=will) as walker:
                await walker.tell(POSITION, b"52.0,13.0")
            await until(lambda: "walker" not in server.broker.lifecycle.conversations)
            await reader.nothing()

    broker(tmp_path, scenario, access={"rules": (rule,)})


def test_access_holds_for_addressed_events_after_a_restart(tmp_path: Path) -> None:
    rules = (
        RuleSettings(anonymous=True, clients=("reader",), publish=("#",), subscribe=("public",)),
        RuleSettings(anonymous=True, clients=("writer",), publish=("#",), may_address=True),
    )

    async def scenario() -> None:
        async with serving(tmp_path, access={"rules": rules}) as server, talking(server, "reader", **DAY) as reader:
            await reader.tell("$nearcast/accept", b"true")
            await reader.tell("$nearcast/context/me", b'{"kind": "car"}')
        async with serving(tmp_path, access={"rules": rules}) as server:
            async with talking(server, "writer") as writer:
                await writer.tell("secret", b"not for it", [("nc-to", "kind = 'car'")])
                await writer.tell("public", b"for it", [("nc-to", "kind = 'car'")])
            again = await Talker.open(server)
            await again.connect("reader", **DAY)
            assert (await again.heard()).payload == b"for it"

    run(scenario())


# Memory


def test_a_queue_that_overflows_for_long_leaves_no_trace_of_every_message(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "away", **DAY) as away:
            await away.subscribe("news", 1)
            async with talking(server, "writer") as writer:
                await writer.tell("news", b"on its way")
                await away.heard()  # and not acknowledged
        await until(lambda: server.broker.sessions.all["away"].connection is None)
        async with talking(server, "writer") as writer:
            for number in range(300):
                await writer.tell("news", b"%d" % number)
        session = server.broker.sessions.all["away"]
        assert len(session.queue) == 10
        row = server.broker.sessions.row(session)
        assert row.value is not None
        assert len(row.value) < 100

    broker(tmp_path, scenario, session={"queue_messages": 10})


def test_what_was_given_up_stays_so_after_a_restart(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, session={"queue_messages": 10}) as server:
            async with talking(server, "away", **DAY) as away:
                await away.subscribe("news", 1)
                async with talking(server, "writer") as writer:
                    await writer.tell("news", b"first")
                    await away.heard()
            await until(lambda: server.broker.sessions.all["away"].connection is None)
            async with talking(server, "writer") as writer:
                for number in range(50):
                    await writer.tell("news", b"%d" % number)
        async with serving(tmp_path) as server:
            again = await Talker.open(server)
            await again.connect("away", **DAY)
            heard = [(await again.heard()).payload for _ in range(11)]
            assert heard == [b"first", *(b"%d" % number for number in range(40, 50))]
            await again.nothing()

    run(scenario())


def test_a_retained_message_is_not_kept_once_for_every_form_it_was_given_in(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "writer") as writer, talking(server, "reader") as reader:
            await writer.tell("news", bytes(1_000), retain=True)
            for identifier in range(1, 50):
                await reader.subscribe("news", 0, identifier=identifier)
                assert (await reader.heard()).subscription_ids == [identifier]
            assert len(server.broker.retained.messages["news"]._encoded) <= 8

    broker(tmp_path, scenario)


def test_unpublishing_gives_back_what_a_retained_message_used(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "writer") as writer:
            await writer.tell("news", bytes(1_000), [("nc-id", "x")], retain=True)
            assert server.broker.retained.size > 1_000
            await writer.tell("$nearcast/unpublish", b"x")
            assert server.broker.retained.size == 0

    broker(tmp_path, scenario)


def test_every_report_of_somebody_who_is_there_does_not_add_another_look(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        moments = server.broker.temporal.addressing
        async with talking(server, "writer") as writer, talking(server, "walker") as walker:
            await walker.subscribe("news", 1)
            later = [("nc-when", "overlaps(time, '+1h', '+2h')"), ("nc-reach", '{"circle": 9000, "at": [8.65, 49.87]}')]
            await writer.tell("news", b"1", later)
            await until(lambda: all(each.backlog is None for each in moments._pending.values()))
            for number in range(50):
                await walker.tell(POSITION, b"49.87%d,8.65" % number)
            assert len(moments._due) <= 3

    broker(tmp_path, scenario)


def test_a_client_cannot_have_the_whole_journal_looked_through_as_often_as_it_likes(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "curious") as curious:
            for number in range(1, 41):
                curious.publish("$nearcast/unpublish", b"%d" % number, qos=QoS.AT_LEAST_ONCE, packet_id=number)
            codes = [(await curious.next(PubAckPacket)).reason_code for _ in range(40)]
            assert PubAckReasonCode.QUOTA_EXCEEDED in codes
            assert (await curious.tell("$nearcast/unpublish", b"x")).reason_code != PubAckReasonCode.QUOTA_EXCEEDED

    broker(tmp_path, scenario)


def test_replays_that_nobody_takes_do_not_keep_the_journal_open(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        background = server.broker.temporal.background
        async with talking(server, "writer") as writer, talking(server, "idle") as idle:
            for number in range(200):
                writer.publish("news", b"%d" % number, qos=QoS.AT_LEAST_ONCE, packet_id=number + 1)
                await writer.next(PubAckPacket)
            past = [("nc-since", "..")]
            for number in range(1, 60):
                wanted = [TopicFilter("news", max_qos=QoS.AT_LEAST_ONCE)]
                idle.send(SubscribePacket(number, wanted, user_properties=[*past, ("nc-name", str(number))]))
            async with talking(server, "reader") as reader:
                await reader.subscribe("news", 0, past)
                assert [(await reader.heard()).payload for _ in range(200)] == [b"%d" % number for number in range(200)]
            assert background.statistics().works <= MOST_READING
            await until(lambda: background.statistics().works == 0)
            assert server.broker.temporal.statistics().replays.under_way == 59

    broker(tmp_path, scenario)


# Presence


def test_addressing_sees_the_position_of_who_is_served_by_a_scheme(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as rig:
            await rig.connect("walker")
            inside = "S_WITHIN(position, POLYGON((8 49, 9 49, 9 50, 8 50, 8 49)))"
            here = Event("x", "a", 0, to=inside)
            unknown = Event("x", "a", 0, to="kind IS NULL")
            addressed = partial(rig.broker.presence.addressed, located=True)
            perhaps = partial(rig.broker.presence.addressed, located=False)
            assert (addressed("walker", here), addressed("walker", unknown)) == (False, True)
            rig.move("walker", SPOT)
            assert (addressed("walker", here), addressed("walker", unknown)) == (True, True)
            rig.register("walker", "me", {"kind": "car"})
            assert (addressed("walker", here), addressed("walker", unknown)) == (True, False)
            rig.move("walker", Point(1.0, 1.0))
            away = Event("x", "a", 0, to=f"NOT {inside} AND kind = 'car'")
            ship = Event("x", "a", 0, to=f"{inside} AND kind = 'ship'")
            assert [addressed("walker", each) for each in (here, away, ship)] == [False, True, False]
            assert [perhaps("walker", each) for each in (here, away, ship)] == [True, True, False]
            rig.register("walker", "me", {"kind": "car", "position": SPOT})
            assert [perhaps("walker", each) for each in (here, away, ship)] == [True, False, False], "it says it itself"

    run(scenario())


@pytest.mark.parametrize(("until_when", "expected"), [("-245m", ["x"]), ("-100m", [])])
def test_nobody_is_present_between_two_sessions(tmp_path: Path, until_when: str, expected: list[str]) -> None:
    """``delivery``: one that was there five hours ago, and is there again, was not there in between."""
    hour = 3_600 * MICROSECONDS

    async def scenario() -> None:
        async with running(tmp_path) as rig:
            await rig.connect("writer")
            await rig.connect("guest")
            rig.move("guest", SPOT)
            rig.advance(hour)
            rig.disconnect("guest")
            rig.advance(4 * hour)
            wire = await rig.connect("guest")
            await rig.subscribe("guest")
            rig.advance(MICROSECONDS)
            await rig.publish("writer", id="x", when=f"contains(time, '-260m', '{until_when}')")
            await rig.settle()
            assert wire.ids() == expected

    run(scenario())


def test_what_was_addressed_to_those_who_said_nothing_is_not_replayed_to_who_was_not_there(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as rig:
            await rig.connect("writer")
            await rig.connect("guest")
            await rig.publish("writer", id="there", to="kind IS NULL")
            rig.advance(MICROSECONDS)
            rig.disconnect("guest")
            rig.advance(MICROSECONDS)
            await rig.publish("writer", id="away", to="kind IS NULL")
            rig.advance(MICROSECONDS)
            wire = await rig.connect("guest")
            await rig.subscribe("guest", since="-1h")
            await rig.settle()
            assert wire.ids() == ["there"]

    run(scenario())


# What is left on disk


def test_a_session_that_no_longer_lasts_leaves_no_replay_behind(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "writer") as writer, talking(server, "reader", **DAY) as reader:
            for number in range(3):
                await writer.tell("news", b"%d" % number)
            await reader.subscribe("news", 1, [("nc-since", "-1h"), ("nc-batch", "1")])
            await reader.heard()
            assert server.broker.journal.load("replays")
            reader.send(DisconnectPacket(session_expiry_interval=0))
            await until(lambda: "reader" not in server.broker.sessions.all)
            await writer.tell("news", b"written after that")
            assert not server.broker.journal.load("replays")

    broker(tmp_path, scenario)


def test_a_restart_does_not_bring_back_the_position_of_a_session_that_is_over(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path / "first") as rig:
            await rig.connect("walker", expiry=3_600)
            await rig.say("walker", POSITION, b"49.87,8.65")
            await rig.say("walker", "$nearcast/announce/jam", b"500")
            await rig.connect("walker", expiry=0)
            second = await rig.killed(tmp_path / "second")
            await second.connect("walker", expiry=3_600)
            third = await second.killed(tmp_path / "third")
            assert third.broker.presence.position("walker") is None
            assert not third.session("walker").announced
            await third.close()

    run(scenario())


# Who speaks


def test_a_program_that_speaks_no_schemes_gets_the_areas_of_one_that_did(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        schemes = [("nc-schemes", "1")]
        async with talking(server, "walker", user_properties=schemes, **DAY) as walker:
            while not isinstance(answer := await walker_subscribes(walker), SubAckPacket):
                assert answer.topic == "$nearcast/scheme"
        await until(lambda: server.broker.sessions.all["walker"].connection is None)
        again = await Talker.open(server)
        await again.connect("walker", **DAY)
        async with talking(server, "writer") as writer:
            again.publish(POSITION, b"49.87,8.65")
            await until(lambda: server.broker.presence.position("walker") is not None)
            await writer.tell("news", b"near", [("nc-place", "49.87,8.651")])
            await writer.tell("news", b"far", [("nc-place", "48.87,8.651")])
            while (heard := await again.heard()).topic != "news":
                again.send(PubAckPacket(heard.packet_id or 0))
            assert heard.payload == b"near"

    broker(tmp_path, scenario)


async def walker_subscribes(walker: Talker) -> SubAckPacket | PublishPacket:
    wanted = SubscribePacket(1, [TopicFilter("news", max_qos=QoS.AT_MOST_ONCE)], user_properties=[("nc-area", "500")])
    walker.send(wanted)
    answer = await walker.next(object)
    assert isinstance(answer, SubAckPacket | PublishPacket)
    return answer


# Groups


def test_a_message_for_a_group_goes_to_another_member_if_the_chosen_one_leaves_before_it_is_on_disk(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as rig:
            await rig.connect("writer")
            wires = {name: await rig.connect(name) for name in ("first", "second")}
            for name in wires:
                await rig.subscribe(name, "$share/group/#")
            published = rig.publish("writer", id="x")
            rig.disconnect("first")  # whose turn it is
            await published
            await rig.settle()
            assert wires["first"].ids() == []
            assert len(wires["second"].got) == 1

    run(scenario())


def test_members_of_a_group_that_want_other_things_are_two_groups(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as rig:
            await rig.connect("writer")
            calm, alert = await rig.connect("calm"), await rig.connect("alert")
            await rig.subscribe("calm", "$share/group/#", where="severity < 3")
            await rig.subscribe("alert", "$share/group/#", where="severity >= 3")
            await rig.publish("writer", id="high", severity_="4")
            await rig.publish("writer", id="low", severity_="1")
            await rig.settle()
            assert (calm.ids(), alert.ids()) == (["low"], ["high"])

    run(scenario())


# A disk that refuses


def test_a_subscription_whose_end_could_not_be_written_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_group: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    async def scenario(server: Server) -> None:
        async with talking(server, "writer") as writer, talking(server, "reader", **DAY) as reader:
            await reader.subscribe("news", 0)
            with monkeypatch.context() as broken:
                broken.setattr(Store, "commit", lambda _self, group: refuse(group))
                reader.send(UnsubscribePacket(9, ["news"]))
                assert (await reader.next(UnsubAckPacket)).reason_codes == [UnsubAckReasonCode.UNSPECIFIED_ERROR]
            writer.publish("news", b"1")
            assert (await reader.heard()).payload == b"1"

    broker(tmp_path, scenario)


def test_retained_messages_that_could_not_be_written_leave_what_there_was_before_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_group: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    async def scenario(server: Server) -> None:
        async with talking(server, "writer") as writer, talking(server, "reader") as reader:
            await writer.tell("news", b"before", retain=True)
            with monkeypatch.context() as broken:
                broken.setattr(Store, "commit", lambda _self, group: refuse(group))
                for number, payload in ((7, b"once"), (8, b"twice"), (9, b"")):
                    writer.publish("news", payload, retain=True, qos=QoS.AT_LEAST_ONCE, packet_id=number)
                for _ in range(3):
                    assert (await writer.next(PubAckPacket)).reason_code == PubAckReasonCode.QUOTA_EXCEEDED
            await reader.subscribe("news")
            assert (await reader.heard()).payload == b"before"
            await writer.tell("news", b"after", retain=True)
            retained = server.broker.retained
            assert (retained.size, retained._unwritten) == (size_of_kept(retained.messages["news"]), {})

    broker(tmp_path, scenario)


def test_a_retained_message_takes_the_place_of_another_of_its_topic_whether_it_has_a_prefix_or_not(
    tmp_path: Path,
) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "writer") as writer:
            for topic in ("news", "$near/severity=4/news", "news"):
                answer = await writer.tell(topic, b"12345", retain=True)
                assert answer.reason_code == PubAckReasonCode.NO_MATCHING_SUBSCRIBERS, answer.reason_str
            answer = await writer.tell("$near/severity=4/more", b"1", retain=True)
            assert answer.reason_code == PubAckReasonCode.QUOTA_EXCEEDED

    broker(tmp_path, scenario, limits={"retained_messages": 1})


# Event ids


def test_who_gives_an_event_the_id_of_another_cannot_take_the_other_back(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "ada") as ada, talking(server, "eve") as eve:
            await ada.tell("news", b"ada's", [("nc-id", "x")])
            await eve.tell("news", b"eve's", [("nc-id", "x")])
            await eve.tell("$nearcast/unpublish", b"x")
            async with httpx.AsyncClient() as client:
                host, port = server.addresses["http"]
                answer = await client.get(f"http://{host}:{port}/events", params={"topic": "news"})
            payloads = [each["properties"]["payload"] for each in answer.json()["features"]]
            assert payloads == ["ada's"]

    broker(tmp_path, scenario, listen={"http_port": "any"})


# SlicedWork


def test_what_is_retained_is_handed_out_a_little_in_every_turn_and_all_of_it(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        topics = [f"a/{number}" for number in range(3 * AT_ONCE)]
        for topic in topics:
            server.broker.retained.set(Message(topic, b"x", retain=True))
        async with talking(server, "reader") as reader, talking(server, "other") as other:
            for number in range(1, 21):
                named = [("nc-name", str(number))]
                reader.send(SubscribePacket(number, [TopicFilter("a/#")], user_properties=named))
            for _ in range(20 * len(topics) // 10):  # a tenth of it
                await reader.next(object)
            await other.subscribe("a/7", 0)
            assert (await other.heard()).topic == "a/7"
            rest = [await reader.next(object) for _ in range(20 * (len(topics) + 1) - 20 * len(topics) // 10)]
            assert [each.topic for each in rest[-len(topics) :] if isinstance(each, PublishPacket)] == topics

    broker(tmp_path, scenario)


# The protocol


@pytest.mark.parametrize("asked", [{"request_problem_info": False}, {"max_packet_size": 30}])
def test_no_reason_is_told_to_who_wants_none_or_cannot_take_it(tmp_path: Path, asked: dict[str, Any]) -> None:
    """MQTT-3.1.2-29, MQTT-3.4.2-2, MQTT-3.9.2-1."""

    async def scenario(server: Server) -> None:
        async with talking(server, "client", **asked) as client:
            refused = await client.tell(POSITION, b"nowhere")
            assert refused.reason_code == PubAckReasonCode.PAYLOAD_FORMAT_INVALID
            assert refused.reason_str is None
            assert (await client.subscribe("a", 0, [("nc-area", "no area")])).reason_str is None

    broker(tmp_path, scenario)


def test_a_publish_of_quality_2_counts_for_the_receive_maximum_until_it_is_complete(tmp_path: Path) -> None:
    """MQTT 5, 4.9: a PUBREC makes room only if it refuses."""

    def publish(client: Talker, packet_id: int, topic: str = "news") -> None:
        client.publish(topic, b"x", qos=QoS.EXACTLY_ONCE, packet_id=packet_id)

    async def scenario(server: Server) -> None:
        async with talking(server, "client") as client:
            for packet_id in (1, 2, 3):
                publish(client, packet_id, "$nearcast/unknown" if packet_id == 2 else "news")
                answer = await client.next(PubRecPacket)
                assert (int(answer.reason_code) >= 0x80) == (packet_id == 2)
            client.send(PubRelPacket(1))
            assert (await client.next(PubCompPacket)).packet_id == 1
            publish(client, 4)
            await client.next(PubRecPacket)
            publish(client, 5)
            reason = (await client.next(DisconnectPacket)).reason_code
            assert reason == DisconnectReasonCode.RECEIVE_MAX_EXCEEDED

    broker(tmp_path, scenario, session={"inflight": 2})
