"""Being told who comes and goes, over MQTT: what is told, to whom, in which order, and to whom not."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from mqtt5 import PubAckPacket, PubAckReasonCode
from tests.broker.talker import Talker, broker, run, serving, talking

from nearcast.broker.erasing.state import rows_of
from nearcast.broker.server import Server
from nearcast.broker.settings import load
from nearcast.journal.erasure.subject import Subject

PLACE = '{"circle": 100, "at": [8.65, 49.87]}'
OUTSIDE, INSIDE, BEYOND = b"49.868,8.65", b"49.87,8.65", b"49.872,8.65"
"""222 m south of the middle, the middle, 222 m north of it."""

POSITION, OBSERVABLE = "$nearcast/position", "$nearcast/observable"
LASTING = {"session_expiry_interval": 600, "clean_start": False}


def watched(area: str = PLACE, **more: str) -> list[tuple[str, str]]:
    return [("nc-area", area), *((f"nc-{name}", value) for name, value in more.items())]


async def told(talker: Talker) -> dict[str, Any]:
    packet = await talker.heard()
    notice: dict[str, Any] = json.loads(packet.payload)
    assert packet.topic.startswith("$nearcast/presence/")
    return notice


async def move(talker: Talker, *places: bytes) -> None:
    for place in places:
        assert (await talker.tell(POSITION, place)).reason_code == PubAckReasonCode.SUCCESS


def test_somebody_enters_leaves_and_crosses_between_two_reports(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "ada") as ada, talking(server, "bob") as bob:
            await ada.subscribe("$nearcast/presence/+/+", properties=watched(name="school"), identifier=7)
            await bob.tell(OBSERVABLE, b"true")
            await move(bob, OUTSIDE, INSIDE, BEYOND, OUTSIDE)
            first = await ada.heard()
            assert first.topic == "$nearcast/presence/enter/bob"
            assert first.subscription_ids == [7]
            notice = json.loads(first.payload)
            assert (notice["who"], notice["what"], notice["fence"]) == ("bob", "enter", "school")
            assert notice["lat"] == pytest.approx(49.8691, abs=1e-5)  # 100 m before the middle
            assert notice["lon"] == 8.65
            assert [(await told(ada))["what"] for _ in range(4)] == ["leave", "enter", "leave", "cross"]
            await ada.nothing()

    broker(tmp_path, scenario)


def test_only_what_was_asked_for_is_told(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "ada") as ada, talking(server, "b/o+b") as bob, talking(server, "eve") as eve:
            for walker, role in ((bob, b'{"role": "child"}'), (eve, b'{"role": "teacher"}')):
                await walker.tell(OBSERVABLE, b"true")
                await walker.tell("$nearcast/context/me", role)
            await ada.subscribe("$nearcast/presence/cross/+", properties=watched(where="role = 'child'"))
            await ada.subscribe("$nearcast/presence/leave/b%2Fo%2Bb", properties=watched(name="one"))
            await move(bob, OUTSIDE, BEYOND, INSIDE, OUTSIDE)
            await move(eve, OUTSIDE, BEYOND, INSIDE, OUTSIDE)
            packets = [await ada.heard() for _ in range(3)]
            assert [packet.topic for packet in packets] == [
                f"$nearcast/presence/{kind}/b%2Fo%2Bb" for kind in ("leave", "cross", "leave")
            ]
            await ada.nothing()

    broker(tmp_path, scenario)


def test_without_permission_nobody_is_told_and_no_answer_differs(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "ada") as ada, talking(server, "bob") as bob:
            answers = [
                await ada.subscribe(f"$nearcast/presence/{kind}", properties=properties)
                for kind, properties in (
                    ("+/bob", watched(name="1")),
                    ("+/nobody", watched(name="2")),
                    ("near/+", watched("500", around="bob")),
                    ("near/+", watched("500", around="nobody", name="2")),
                )
            ]
            assert {int(answer.reason_codes[0]) for answer in answers} == {0}
            await move(ada, OUTSIDE)
            await move(bob, OUTSIDE, INSIDE)
            await ada.nothing()
            for consent, heard in (
                (b"true", True),
                (b"false", False),
                (b'{"clients": ["ada"]}', True),
                (b"", False),
                (b'{"users": ["ada"]}', False),  # she has shown no password
                (b'{"clients": ["eve"]}', False),
            ):
                await bob.tell(OBSERVABLE, consent)
                await move(bob, OUTSIDE, INSIDE)
                if heard:
                    assert [(await told(ada))["what"] for _ in range(2)] == ["leave", "enter"]
                await ada.nothing()

    broker(tmp_path, scenario)


def test_permission_that_is_withdrawn_stops_what_waits_already(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "ada", **LASTING) as ada:
            await ada.subscribe("$nearcast/presence/+/+", 1, watched())
        async with talking(server, "bob") as bob, talking(server, "eve") as eve:
            for walker in (bob, eve):
                await walker.tell(OBSERVABLE, b"true")
                await move(walker, OUTSIDE, INSIDE)
            await bob.tell(OBSERVABLE, b"false")
            async with talking(server, "ada", **LASTING) as ada:
                assert (await told(ada))["who"] == "eve"
                await ada.nothing()
            assert server.broker.observation.statistics().waiting <= 1

    broker(tmp_path, scenario)


def test_who_appears_enters_and_who_is_gone_leaves(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "ada") as ada:
            await ada.subscribe("$nearcast/presence/+/+", properties=watched())
            async with talking(server, "bob") as bob:
                await bob.tell(OBSERVABLE, b"true")
                await move(bob, INSIDE, b"", INSIDE)
            notices = [await told(ada) for _ in range(4)]
            assert [(each["what"], each["reason"]) for each in notices] == [
                ("enter", "appeared"),
                ("leave", "gone"),
                ("enter", "appeared"),
                ("leave", "gone"),
            ]

    broker(tmp_path, scenario)


def test_two_who_move_come_near_each_other(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "ada") as ada, talking(server, "bob") as bob, talking(server, "eve") as eve:
            await ada.subscribe("$nearcast/presence/near/+", properties=watched("100", name="me"))
            await eve.subscribe("$nearcast/presence/near/+", properties=watched("100", around="ada", name="her"))
            await bob.tell(OBSERVABLE, b"true")
            await move(ada, INSIDE)
            await move(bob, OUTSIDE, BEYOND)
            notices = [await told(ada) for _ in range(3)]
            assert [(each["who"], each["what"], each["near"], each["metres"]) for each in notices] == [
                ("bob", what, "ada", 100) for what in ("enter", "leave", "cross")
            ]
            await move(ada, INSIDE)  # until now, while he passed
            ada.publish(POSITION, BEYOND)  # now it is she who comes
            notice = await told(ada)
            assert (notice["who"], notice["what"], notice["lat"]) == ("bob", "enter", 49.872)
            await eve.nothing()  # ada lets nobody observe her
            await ada.tell(OBSERVABLE, b'{"clients": ["eve"]}')
            ada.publish(POSITION, INSIDE)
            assert (await told(eve))["what"] == "leave"

    broker(tmp_path, scenario)


def test_a_notice_outlives_the_fall_of_the_broker_and_the_next_way_begins_where_the_last_one_ended(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as server:
            async with talking(server, "ada", **LASTING) as ada:
                await ada.subscribe("$nearcast/presence/+/+", 1, watched())
            async with talking(server, "bob", **LASTING) as bob:
                await bob.tell(OBSERVABLE, b"true")
                await move(bob, OUTSIDE, INSIDE)
        async with serving(tmp_path) as server:
            async with talking(server, "bob", **LASTING) as bob:
                await move(bob, BEYOND)
            async with talking(server, "ada", **LASTING) as ada:
                assert [(await told(ada))["what"] for _ in range(2)] == ["enter", "leave"]
                await ada.nothing()

    run(scenario())


@pytest.mark.parametrize(
    ("topic", "properties", "problem"),
    [
        ("$nearcast/presence/arrive/+", watched(), "there is no presence 'arrive'"),
        ("$nearcast/presence/enter", watched(), "is no presence to be told of"),
        ("$nearcast/presence/enter/a/b", watched(), "is no presence to be told of"),
        ("$nearcast/presence/enter/+", [], "nc-area is missing"),
        ("$nearcast/presence/enter/+", watched("100"), "is for \\$nearcast/presence/near"),
        ("$nearcast/presence/near/+", watched(), "lies around a client"),
        ("$nearcast/presence/near/+", watched('{"rectangle": [1, 1]}'), "is a circle"),
        ("$nearcast/presence/stay/+", watched(), "nc-stay is missing"),
        ("$nearcast/presence/stay/+", watched(stay="0s"), "longer than nothing"),
        ("$nearcast/presence/enter/+", watched(stay="5m"), "nc-stay is for"),
        ("$nearcast/presence/enter/+", watched(around="bob"), "leave one out"),
        ("$nearcast/presence/enter/+", watched(since="-2h"), "nc-since is for events"),
        ("$share/g/$nearcast/presence/enter/+", watched(), "is not shared"),
        ("news", [("nc-stay", "5m")], "nc-stay is for subscriptions to"),
    ],
)
def test_what_cannot_be_watched_says_why(
    tmp_path: Path, topic: str, properties: list[tuple[str, str]], problem: str
) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "ada") as ada:
            answer = await ada.subscribe(topic, properties=properties)
            assert int(answer.reason_codes[0]) >= 0x80

            assert re.search(problem, answer.reason_str or ""), answer.reason_str

    broker(tmp_path, scenario)


@pytest.mark.parametrize(
    "payload", [b"maybe", b"[]", b"{}", b'{"users": "ada"}', b'{"friends": ["ada"]}', b'{"users": [""]}']
)
def test_a_permission_that_cannot_be_read_changes_nothing(tmp_path: Path, payload: bytes) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "bob") as bob:
            await bob.tell(OBSERVABLE, b"true")
            answer = await bob.tell(OBSERVABLE, payload)
            assert answer.reason_code == PubAckReasonCode.PAYLOAD_FORMAT_INVALID
            consent = server.broker.presence.consent("bob")
            assert consent is not None
            assert consent.everybody

    broker(tmp_path, scenario)


def test_nobody_speaks_on_topics_of_the_broker_and_old_clients_watch_by_the_prefix(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with talking(server, "eve") as eve, talking(server, "ada", 4) as ada, talking(server, "bob") as bob:
            answer = await eve.tell("$nearcast/presence/enter/bob", b"{}")
            assert answer.reason_code == PubAckReasonCode.PAYLOAD_FORMAT_INVALID
            area = "%7B%22circle%22%3A100,%22at%22%3A[8.65,49.87]%7D"
            await ada.subscribe(f"$near/area={area}/$nearcast/presence/enter/+")
            await bob.tell(OBSERVABLE, b"true")
            await move(bob, OUTSIDE, INSIDE)
            assert (await told(ada))["what"] == "enter"

    broker(tmp_path, scenario)


RULES = """
[[access.rule]]
anonymous = true
clients = ["watcher"]
observe = true
within = { box = [8.6, 49.8, 8.7, 49.9] }

[[access.rule]]
anonymous = true
publish = ["#"]
subscribe = ["#"]
"""


def test_from_the_first_rule_on_only_rules_let_somebody_watch(tmp_path: Path) -> None:
    (tmp_path / "broker.toml").write_text(RULES)
    rules = load(tmp_path / "broker.toml").access.rules

    async def scenario(server: Server) -> None:
        async with talking(server, "watcher") as watcher, talking(server, "eve") as eve, talking(server, "bob") as bob:
            refused = await eve.subscribe("$nearcast/presence/+/+", properties=watched())
            assert int(refused.reason_codes[0]) == 0x87
            assert "observe = true" in (refused.reason_str or "")
            for area in ('{"circle": 100, "at": [9.65, 49.87]}', '{"circle": 9000, "at": [8.65, 49.87]}', "50"):
                refused = await watcher.subscribe("$nearcast/presence/+/+", properties=watched(area))
                assert "within" in (refused.reason_str or "")
            await watcher.subscribe("$nearcast/presence/+/+", properties=watched())
            await bob.tell(OBSERVABLE, b"true")
            await move(bob, OUTSIDE, INSIDE)
            assert (await told(watcher))["what"] == "enter"

    broker(tmp_path, scenario, access={"rules": rules})


def test_what_happens_in_one_turn_is_told_in_order(tmp_path: Path) -> None:
    """Many reports in one turn, and a listener that confirms late: nothing is missing, nothing overtakes."""

    async def scenario(server: Server) -> None:
        async with talking(server, "ada") as ada, talking(server, "bob") as bob:
            await ada.subscribe("$nearcast/presence/+/+", 1, watched())
            await bob.tell(OBSERVABLE, b"true")
            for _ in range(300):
                for place in (OUTSIDE, BEYOND):
                    bob.publish(POSITION, place)
            heard = []
            for _ in range(599 * 3):
                packet = await ada.heard()
                assert packet.packet_id is not None
                ada.send(PubAckPacket(packet.packet_id))
                heard.append(json.loads(packet.payload))
            assert [notice["what"] for notice in heard] == ["enter", "leave", "cross"] * 599
            assert [notice["at"] for notice in heard] == sorted(notice["at"] for notice in heard)

    broker(tmp_path, scenario)


def test_of_somebody_who_is_erased_nothing_waits_for_observers(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as server:
            async with talking(server, "ada", **LASTING) as ada:
                await ada.subscribe("$nearcast/presence/+/+", 1, watched(stay="1h"))
                await ada.subscribe("$nearcast/presence/enter/bob", 1, watched(name="his"))
                await ada.subscribe("$nearcast/presence/near/+", 1, watched("5", around="bob", name="near"))
            async with talking(server, "bob", **LASTING) as bob, talking(server, "eve", **LASTING) as eve:
                for walker in (bob, eve):
                    await walker.tell(OBSERVABLE, b"true")
                    await move(walker, OUTSIDE, INSIDE)
            rows = list(rows_of(server.broker.journal, Subject(frozenset()), frozenset({"bob"})))
            found = sorted(put.table for put in rows)
            assert [table for table in found if table not in {"presence", "sessions"}] == [
                *["notices"] * 3,  # he entered, twice told, and eve came near him
                "stays",
                *["subscriptions"] * 2,
            ]

    run(scenario())
