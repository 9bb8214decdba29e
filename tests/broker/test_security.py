"""Who may do what, said by packets: an unwelcome client is told no, and learns nothing by any way round."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from mqtt5 import (
    ConnAckReasonCode,
    DisconnectPacket,
    PubAckReasonCode,
    PublishPacket,
    PubRecPacket,
    QoS,
    SubAckPacket,
    SubAckReasonCode,
    SubscribePacket,
    TopicFilter,
    UnsubAckPacket,
    UnsubscribePacket,
    Will,
)
from tests.broker.talker import Talker, broker, serving, settings_for, talking
from tests.broker.talker import run as run_scenario
from tests.waiting import until

from nearcast.broker.access import Peer
from nearcast.broker.access.users import add_user
from nearcast.broker.server import Server
from nearcast.broker.settings import RuleSettings
from nearcast.settings_files import Duration

SUCCESS = ConnAckReasonCode.SUCCESS
DAY = {"clean_start": False, "session_expiry_interval": 86_400}
DARMSTADT = [8.6512, 49.8728]
RULES = (
    RuleSettings(name="staff", users=("ada",), publish=("#",), subscribe=("#",), may_address=True, query=True),
    RuleSettings(name="guests", anonymous=True, publish=("guests/#",), subscribe=("public/#", "guests/#")),
    RuleSettings(
        name="town",
        users=("bob",),
        publish=("town/#",),
        subscribe=("town/#",),
        within={"circle": 1_000, "at": DARMSTADT},
        reach_at_most=500,
        history_at_most=Duration.of("1h"),
    ),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for user in ("ada", "bob"):
        add_user(tmp_path / "users", user, f"{user}'s secret")
    return tmp_path


def guarded(folder: Path, scenario: Any, **changes: Any) -> None:
    broker(folder, scenario, access={"rules": RULES}, **changes)


def as_user(user: str) -> dict[str, Any]:
    return {"username": user, "password": f"{user}'s secret".encode()}


# Who comes in


def test_anonymous_clients_are_let_in_from_this_machine_only(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        here = await Talker.open(server)
        assert (await here.connect("anybody")).reason_code == SUCCESS
        for conversation in server.broker.services.open:
            conversation._connection.peer = Peer("192.0.2.7", 1234)
        elsewhere = await Talker.open(server)
        await until(lambda: len(server.broker.services.open) == 2)
        list(server.broker.services.open)[-1]._connection.peer = Peer("192.0.2.7", 1234)
        answer = await elsewhere.connect("stranger")
        assert answer.reason_code == ConnAckReasonCode.NOT_AUTHORIZED
        assert "password" in (answer.reason_str or "")
        await elsewhere.closed()

    broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("name", "password"),
    [("ada", b"wrong"), ("ada", None), ("nobody", b"ada's secret"), ("", b"ada's secret"), ("ada", b"")],
)
@pytest.mark.parametrize("version", [4, 5])
def test_wrong_credentials_are_refused_without_saying_what_was_wrong(
    folder: Path, name: str, password: bytes | None, version: int
) -> None:
    async def scenario(server: Server) -> None:
        talker = await Talker.open(server, version)
        if version == 4 and not name:
            return  # 3.1.1 has no password without a name
        answer = await talker.connect("client", username=name, password=password)
        assert answer.reason_code == ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD
        assert "ada" not in (answer.reason_str or "")
        await talker.closed()

    broker(folder, scenario)


def test_a_session_belongs_to_the_user_who_made_it(folder: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "phone", **as_user("ada"), **DAY) as phone:
            await phone.subscribe("secret", 1)
            for thief in (as_user("bob"), {}):
                other = await Talker.open(server)
                answer = await other.connect("phone", **thief, **DAY)
                assert answer.reason_code == ConnAckReasonCode.CLIENT_ID_NOT_VALID
            await phone.subscribe("still/mine")  # it was not even disturbed
        for clean in (True, False):
            other = await Talker.open(server)
            answer = await other.connect("phone", **as_user("bob"), clean_start=clean)
            assert answer.reason_code == ConnAckReasonCode.CLIENT_ID_NOT_VALID
        again = await Talker.open(server)
        assert (await again.connect("phone", **as_user("ada"), **DAY)).session_present

    guarded(folder, scenario)


def test_a_session_belongs_to_its_user_after_a_restart_too(folder: Path) -> None:
    async def story() -> None:
        async with serving(folder) as server, talking(server, "phone", **as_user("ada"), **DAY):
            pass
        async with serving(folder) as server:
            other = await Talker.open(server)
            answer = await other.connect("phone", **as_user("bob"), **DAY)
            assert answer.reason_code == ConnAckReasonCode.CLIENT_ID_NOT_VALID

    run_scenario(story())


# What they may say


@pytest.mark.parametrize("topic", ["secret/plan", "$near/severity=4/secret/plan", "public/news"])
def test_a_publish_that_no_rule_allows_is_refused_and_goes_nowhere(folder: Path, topic: str) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "ada", **as_user("ada")) as ada, talking(server, "guest") as guest:
            await ada.subscribe("#", 2)
            answer = await guest.tell(topic, b"1")
            assert answer.reason_code == PubAckReasonCode.NOT_AUTHORIZED
            assert "guest" not in (answer.reason_str or "") or "rule" in (answer.reason_str or "")
            guest.send(PublishPacket(topic, b"2", qos=QoS.EXACTLY_ONCE, packet_id=9))
            assert int((await guest.next(PubRecPacket)).reason_code) == int(PubAckReasonCode.NOT_AUTHORIZED)
            guest.publish(topic, b"3")
            guest.publish(topic, b"4", retain=True)
            await guest.tell("guests/a", b"allowed")
            assert (await ada.heard()).payload == b"allowed"
            await ada.nothing()

    guarded(folder, scenario)


def test_a_refused_publish_ends_a_connection_of_3_1_1_which_cannot_be_told(folder: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "guest", 4) as guest:
            guest.send(PublishPacket("secret", b"1", qos=QoS.AT_LEAST_ONCE, packet_id=1))
            await guest.closed()

    guarded(folder, scenario)


def test_a_will_that_no_rule_allows_is_refused_with_its_client(folder: Path) -> None:
    async def scenario(server: Server) -> None:
        for will in (
            Will("secret", payload=b"1"),
            Will("$near/severity=4/secret", payload=b"1"),
            Will("guests/a", payload=b"1", user_properties=[("nc-to", "kind = 'car'")]),
        ):
            guest = await Talker.open(server)
            answer = await guest.connect("guest", will=will)
            assert answer.reason_code == ConnAckReasonCode.NOT_AUTHORIZED

    guarded(folder, scenario)


def test_a_will_that_is_refused_does_not_say_where_somebody_else_is(folder: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "phone", **as_user("ada"), **DAY) as phone:
            await phone.tell("$nearcast/position", b"48.123456,11.654321")
            will = Will("town/jam", payload=b"1", user_properties=[("nc-place", "here"), ("nc-reach", "400")])
            thief = await Talker.open(server)
            answer = await thief.connect("phone", will=will, **as_user("bob"))
            assert answer.reason_code == ConnAckReasonCode.CLIENT_ID_NOT_VALID
            assert "48.1" not in (answer.reason_str or "")

    guarded(folder, scenario)


@pytest.mark.parametrize("topic", ["$nearcast/problems", "$nearcast/scheme", "$nearcast/position"])
def test_a_will_cannot_speak_in_the_name_of_the_broker(tmp_path: Path, topic: str) -> None:
    async def scenario(server: Server) -> None:
        guest = await Talker.open(server)
        answer = await guest.connect("guest", will=Will(topic, payload=b"1"))
        assert int(answer.reason_code) >= 0x80

    broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("properties", "allowed"),
    [
        ([("nc-place", "49.8730,8.6512"), ("nc-reach", "400")], True),
        ([("nc-place", "49.9730,8.6512"), ("nc-reach", "400")], False),
        ([("nc-reach", "600")], False),
        ([("nc-reach", '{"circle": 400, "at": [8.6512, 49.8728]}')], True),
        ([("nc-reach", '{"circle": 400, "at": [8.6652, 49.8728]}')], False),  # a kilometre away
        ([("nc-place", "49.8730,8.6512")], False),  # without a reach it goes to everybody
        ([], False),
        ([("nc-reach", "400"), ("nc-to", "kind = 'car'")], False),
    ],
)
@pytest.mark.parametrize("qos", [0, 1])
def test_area_and_reach_of_events_are_limited(
    folder: Path, properties: list[tuple[str, str]], allowed: bool, qos: int
) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "ada", **as_user("ada")) as ada, talking(server, "bob", **as_user("bob")) as bob:
            await ada.subscribe("town/#")
            await ada.tell("$nearcast/position", b"49.8728,8.6512")
            await bob.tell("$nearcast/position", b"49.8728,8.6512")
            if qos:
                answer = await bob.tell("town/a", b"1", properties)
                assert (answer.reason_code == PubAckReasonCode.NOT_AUTHORIZED) is not allowed, answer
            else:
                bob.publish("town/a", b"1", properties)
            if allowed:
                assert (await ada.heard()).payload == b"1"
            else:
                await ada.nothing()

    guarded(folder, scenario)


def test_an_announced_reach_is_limited_too(folder: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "bob", **as_user("bob")) as bob:
            await bob.tell("$nearcast/position", b"49.8728,8.6512")
            await bob.tell("$nearcast/announce/town/a", b"5000")
            answer = await bob.tell("town/a", b"1")
            assert answer.reason_code == PubAckReasonCode.NOT_AUTHORIZED

    guarded(folder, scenario)


# What they may hear


@pytest.mark.parametrize("pattern", ["secret/plan", "#", "+/plan", "secret/#", "$share/g/#", "$near/area=500/#", "+/+"])
def test_a_subscription_to_more_than_is_allowed_is_refused_and_nothing_leaks(folder: Path, pattern: str) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "ada", **as_user("ada")) as ada, talking(server, "guest") as guest:
            await ada.tell("secret/plan", b"retained", retain=True)
            answer = await guest.subscribe(pattern, 2)
            assert answer.reason_codes == [SubAckReasonCode.NOT_AUTHORIZED]
            await ada.tell("secret/plan", b"live")
            ada.publish("secret/plan", b"quality 0")
            await guest.subscribe("public/#", 1)
            await ada.tell("public/news", b"for all")
            assert (await guest.heard()).payload == b"for all"
            await guest.nothing()

    guarded(folder, scenario)


def test_what_is_addressed_to_a_context_does_not_reach_whom_no_rule_allows_its_topic(folder: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "ada", **as_user("ada")) as ada, talking(server, "guest") as guest:
            await guest.tell("$nearcast/context/me", b'{"kind": "car"}')
            await guest.tell("$nearcast/accept", b"true")
            await ada.tell("secret/plan", b"1", [("nc-to", "kind = 'car'")])
            await ada.tell("public/news", b"2", [("nc-to", "kind = 'car'")])
            assert (await guest.heard()).payload == b"2"
            await guest.nothing()

    guarded(folder, scenario)


def test_the_past_may_be_asked_for_only_so_far(folder: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "bob", **as_user("bob")) as bob:
            for since, allowed in (("-30m", True), ("-2h", False), ("..", False)):
                answer = await bob.subscribe("town/#", 0, [("nc-since", since)])
                assert (answer.reason_codes == [SubAckReasonCode.NOT_AUTHORIZED]) is not allowed, since

    guarded(folder, scenario)


def test_rules_that_became_stricter_hold_for_old_sessions(folder: Path) -> None:
    async def story() -> None:
        async with serving(folder) as server, talking(server, "guest", **DAY) as guest:
            await guest.subscribe("secret/#", 1)
        async with (
            serving(folder, access={"rules": RULES}) as server,
            talking(server, "guest", **DAY) as guest,
            talking(server, "ada", **as_user("ada")) as ada,
        ):
            await ada.tell("secret/plan", b"1")
            await guest.nothing()

    run_scenario(story())


# How much


def test_who_publishes_too_fast_is_read_more_slowly(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "reader") as reader, talking(server, "writer") as writer:
            await reader.subscribe("a")
            (limits,) = {
                each._limits for each in server.broker.services.open if each.session and each.session.client == "writer"
            }
            for number in range(30):
                writer.publish("a", b"%d" % number)
            heard = [(await reader.heard()).payload for _ in range(30)]
            assert heard == [b"%d" % number for number in range(30)]  # later, but nothing is lost
            assert limits.statistics().slowed > 0

    broker(tmp_path, scenario, limits={"loopback": True, "publishes_per_second": 50.0, "burst": 200_000})


def test_positions_and_subscriptions_that_come_too_fast_are_refused(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "client") as client:
            reasons = [(await client.tell("$nearcast/position", b"1,1")).reason_code for _ in range(5)]
            assert PubAckReasonCode.QUOTA_EXCEEDED in reasons
            codes = [(await client.subscribe(f"a/{n}")).reason_codes[0] for n in range(5)]
            assert SubAckReasonCode.QUOTA_EXCEEDED in codes

    slow = {"positions_per_second": 0.5, "subscribes_per_second": 0.5, "burst": 2_000_000, "loopback": True}
    broker(tmp_path, scenario, limits=slow)


def test_quotas_of_topics_contexts_subscriptions_and_retained_messages(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "client") as client:
            assert (await client.tell("a/" * 9 + "a")).reason_code == PubAckReasonCode.TOPIC_NAME_INVALID
            assert (await client.tell("a" * 65)).reason_code == PubAckReasonCode.TOPIC_NAME_INVALID
            for number in range(3):
                answer = await client.tell(f"$nearcast/context/{number}", b'{"a": 1}')
                assert (answer.reason_code == PubAckReasonCode.QUOTA_EXCEEDED) == (number == 2)
            for number in range(3):
                codes = (await client.subscribe(f"b/{number}")).reason_codes
                assert (codes == [SubAckReasonCode.QUOTA_EXCEEDED]) == (number == 2)
            for number in range(3):
                answer = await client.tell(f"r/{number}", b"1", retain=True)
                assert (answer.reason_code == PubAckReasonCode.QUOTA_EXCEEDED) == (number == 2)

    small = {
        "topic_levels": 5,
        "topic_bytes": 64,
        "contexts_per_client": 2,
        "subscriptions_per_client": 2,
        "retained_messages": 2,
    }
    broker(tmp_path, scenario, limits=small)


def test_one_packet_cannot_ask_for_more_subscriptions_than_are_allowed(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "client") as client:
            client.send(SubscribePacket(1, [TopicFilter(f"a/{number}") for number in (0, 1, 1, 2, 3)]))
            codes = (await client.next(SubAckPacket)).reason_codes
            assert [code == SubAckReasonCode.QUOTA_EXCEEDED for code in codes] == [False, False, False, True, True]
            assert len(server.broker.sessions.all["client"].held) == 2

    broker(tmp_path, scenario, limits={"subscriptions_per_client": 2})


def test_areas_and_filters_of_a_clients_subscriptions_are_bounded_together(tmp_path: Path) -> None:
    """One packet would otherwise have the broker read a long one for each of its filters, and hold all events against them."""

    async def scenario(server: Server) -> None:
        async with talking(server, "client") as client:
            where = " AND ".join(f"a{number} = {number}" for number in range(30))
            filters = [TopicFilter(f"a/{number}") for number in range(20)]
            client.send(SubscribePacket(1, filters, user_properties=[("nc-where", where)]))
            codes = (await client.next(SubAckPacket)).reason_codes
            granted = [code for code in codes if int(code) < 0x80]
            assert 0 < len(granted) <= 2_000 // len(where)
            refused = codes[len(granted) :]
            assert refused == [SubAckReasonCode.QUOTA_EXCEEDED] * len(refused)
            again = await client.subscribe("a/0", 0, [("nc-where", where)])  # in place of itself
            assert int(again.reason_codes[0]) < 0x80
            assert int((await client.subscribe("plain")).reason_codes[0]) < 0x80
            longer = await client.subscribe("a/0", 0, [("nc-where", f"{where} AND name <> '{'x' * 1_000}'")])
            assert longer.reason_codes == [SubAckReasonCode.QUOTA_EXCEEDED]
            client.send(UnsubscribePacket(7, [each.pattern for each in filters]))
            await client.next(UnsubAckPacket)
            assert int((await client.subscribe("a/9", 0, [("nc-where", where)])).reason_codes[0]) < 0x80

    broker(tmp_path, scenario, limits={"subscription_bytes_per_client": 2_000})


@pytest.mark.parametrize("qos", [0, 1])
def test_user_properties_of_a_packet_are_bounded(tmp_path: Path, qos: int) -> None:
    async def scenario(server: Server) -> None:
        long = [("name", "x" * 500), ("other", "x" * 500)]
        async with talking(server, "client") as client, talking(server, "reader") as reader:
            await reader.subscribe("#")
            if qos:
                assert (await client.tell("a", b"1", long)).reason_code == PubAckReasonCode.QUOTA_EXCEEDED
            else:
                client.publish("a", b"1", long)
            await client.tell("a", b"2", long[:1])
            assert (await reader.heard()).payload == b"2"
            assert (await client.subscribe("b", 0, long)).reason_codes == [SubAckReasonCode.QUOTA_EXCEEDED]
        other = await Talker.open(server)
        answer = await other.connect("other", will=Will("a", payload=b"1", user_properties=long))
        assert answer.reason_code == ConnAckReasonCode.QUOTA_EXCEEDED

    broker(tmp_path, scenario, limits={"properties": 1_000})


def test_who_may_not_observe_is_not_told_whether_somebody_is_there(folder: Path) -> None:
    properties = [("nc-place", "49.8730,8.6512"), ("nc-reach", "400")]

    async def scenario(server: Server) -> None:
        async with talking(server, "ada", **as_user("ada")) as ada, talking(server, "bob", **as_user("bob")) as bob:
            await bob.tell("$nearcast/position", b"49.8728,8.6512")
            nobody = await bob.tell("town/a", b"1", properties)
            await ada.tell("$nearcast/position", b"49.8728,8.6512")
            await ada.subscribe("town/#")
            somebody = await bob.tell("town/a", b"2", properties)
            assert (await ada.heard()).payload == b"2"
            assert nobody.reason_code == somebody.reason_code == PubAckReasonCode.SUCCESS

    guarded(folder, scenario)


def test_client_ids_are_bounded(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        for client, code in (("ä" * 50, SUCCESS), ("ä" * 50 + "b", ConnAckReasonCode.CLIENT_ID_NOT_VALID)):
            assert (await (await Talker.open(server)).connect(client)).reason_code == code

    broker(tmp_path, scenario, limits={"topic_bytes": 100})


def test_properties_of_retained_messages_count_as_well(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "client") as client:
            answer = await client.tell("a", b"1", [("name", "x" * 2_000)], retain=True)
            assert answer.reason_code == PubAckReasonCode.QUOTA_EXCEEDED
        will = Will("b", payload=b"1", retain=True, user_properties=[("name", "x" * 2_000)])
        async with talking(server, "other", will=will):
            pass
        await until(lambda: len(server.broker.services.open) == 0)
        assert not server.broker.retained.messages

    broker(tmp_path, scenario, limits={"retained_bytes": 1_000})


def test_a_retained_message_cannot_grow_beyond_the_quota(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "client") as client:
            assert (await client.tell("a", b"1", retain=True)).reason_code != PubAckReasonCode.QUOTA_EXCEEDED
            answer = await client.tell("a", bytes(2_000), retain=True)
            assert answer.reason_code == PubAckReasonCode.QUOTA_EXCEEDED
            assert (await client.tell("a", bytes(900), retain=True)).reason_code != PubAckReasonCode.QUOTA_EXCEEDED

    broker(tmp_path, scenario, limits={"retained_bytes": 1_000})


def test_connections_of_one_address_are_limited_and_freed(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        first, second = await Talker.open(server), await Talker.open(server)
        await first.connect("one")
        await second.connect("two")
        third = await Talker.open(server)
        await third.closed()
        second.send(DisconnectPacket())
        await second.closed()
        await until(lambda: len(server.broker.services.open) == 1)
        fourth = await Talker.open(server)
        assert (await fourth.connect("four")).reason_code == SUCCESS

    broker(tmp_path, scenario, limits={"connections_per_address": 2, "loopback": True})


def test_a_client_that_connects_twice_at_once_is_served_once(tmp_path: Path) -> None:
    """The second of two connections that come in the same moment has the session, and a working one."""

    async def scenario(server: Server) -> None:
        for _ in range(20):
            first, second = await Talker.open(server), await Talker.open(server)
            will = Will("wills/hasty", payload=b"gone")
            answers = await asyncio.gather(
                first.connect("hasty", will=will), second.connect("hasty", will=will), return_exceptions=True
            )
            winners = [
                talker
                for talker, answer in zip((first, second), answers, strict=True)
                if not isinstance(answer, BaseException)
            ]
            assert winners
            last = server.broker.lifecycle.conversations["hasty"]
            session = server.broker.sessions.all["hasty"]
            assert session.alive
            assert session.connection is not None
            assert last.session is session  # type: ignore[attr-defined]
            (alive,) = [talker for talker in winners if not await _ended(talker)]
            await alive.subscribe("a")
            await alive.tell("b", b"1")
            first.close()
            second.close()
            await until(lambda: not server.broker.services.open)

    broker(tmp_path, scenario)


async def _ended(talker: Talker) -> bool:
    from mqtt5 import PingReqPacket, PingRespPacket

    try:
        talker.send(PingReqPacket())
        return not isinstance(await talker.next(object), PingRespPacket)
    except (ConnectionError, TimeoutError):
        return True


def test_without_tls_other_machines_are_not_let_in_by_accident(tmp_path: Path) -> None:
    from nearcast.errors import InvalidSettings

    with pytest.raises(InvalidSettings, match=r"listen\.host"):
        settings_for(tmp_path, listen={"host": "0.0.0.0"})  # noqa: S104 - that is the point
