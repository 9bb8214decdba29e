"""What jobs hand in: answers are delivered once, however often they come, and plans are carried out once."""

from __future__ import annotations

import asyncio
import re
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pyarrow as pa
import pytest
from mqtt5 import PubAckPacket, QoS
from tests.broker.talker import Talker, run, serving, talking
from tests.broker.test_http import PROBLEM, asking, by_http
from tests.broker.test_security import RULES
from tests.waiting import PATIENCE

import nearcast
from nearcast.broker import answering
from nearcast.broker.answer_rows import answers_in
from nearcast.broker.answering import ANSWERED
from nearcast.broker.schemes.plans import GATEWAYS
from nearcast.broker.schemes.scheming import NAMED, PLANS
from nearcast.broker.server import Server
from nearcast.errors import JournalFailed
from nearcast.journal import DeliveryEntry, Put, TransitionEntry
from nearcast.journal.group import Then
from nearcast.model.time import MICROSECONDS, to_text
from nearcast.records.answers import ANSWERS
from nearcast.records.arrow import plain_schema, stream_of

PUBLISHED = 1_790_000_000_000_000
LASTING = {"session_expiry_interval": 3_600}
ARROW = {"content-type": "application/vnd.apache.arrow.stream"}


def row(key: str, client: str, **more: Any) -> dict[str, Any]:
    plain = {"key": key, "client": client, "event": "e1", "offset": 0, "time": PUBLISHED, "topic": "city/jam"}
    return {**plain, "payload": b"slow", **more}


def stream(*rows: dict[str, Any]) -> bytes:
    schema = plain_schema(ANSWERS)
    return stream_of(pa.Table.from_pylist(list(rows), schema))


def compressed(*rows: dict[str, Any]) -> bytes:
    """A kilobyte of these may be a gigabyte of the other."""
    table, sink = pa.Table.from_pylist(list(rows), plain_schema(ANSWERS)), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written


async def hand_in(client: httpx.AsyncClient, *rows: dict[str, Any]) -> dict[str, int]:
    answer = await client.post("/notifications", content=stream(*rows), headers=ARROW)
    assert answer.status_code == 200, answer.text
    outcomes: dict[str, int] = answer.json()
    return outcomes


def identity(server: Server, client: str) -> str:
    return server.broker.sessions.all[client].identity


async def acknowledge(talker: Talker) -> Any:
    packet = await talker.heard()
    assert packet.qos is QoS.AT_LEAST_ONCE
    assert packet.packet_id is not None
    talker.send(PubAckPacket(packet.packet_id))
    return packet


def test_a_client_gets_an_event_of_the_past_with_all_that_its_row_says(tmp_path: Path) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        async with talking(server, "ada") as ada:
            await ada.subscribe("city/#", 1, identifier=7)
            told = row(
                *("k", identity(server, "ada")),
                lat=49.5,
                lon=8.25,
                tags=["slow"],
                attributes='{"speed": 3.5, "kind": {"path": "/vehicle/car"}}',
                number=2,
                total=5,
            )
            assert await hand_in(client, told) == {"delivered": 1}
            packet = await acknowledge(ada)
            assert (packet.topic, packet.payload, packet.subscription_ids) == ("city/jam", b"slow", [7])
            assert dict(packet.user_properties).items() >= {
                ("nc-id", "e1"),
                ("speed", "3.5"),
                ("kind", '{"path":"/vehicle/car"}'),
                ("nc-past", "2 of 5"),
                ("nc-published", to_text(PUBLISHED)),
            }
            assert await hand_in(client, told, told) == {"repeated": 2}
            await ada.nothing()

    by_http(tmp_path, story)


def test_the_subscription_that_asked_decides_on_quality_and_identifier(tmp_path: Path) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        async with talking(server, "ada") as ada:
            await ada.subscribe("city/#", 1, identifier=7)
            await ada.subscribe("#", 0, identifier=8)
            held = {each.filter: name for name, each in server.broker.sessions.all["ada"].held.items()}
            await hand_in(client, row("k", identity(server, "ada"), subscription=held["#"]))
            packet = await ada.heard()
            assert (packet.qos, packet.subscription_ids) == (QoS.AT_MOST_ONCE, [8])

    by_http(tmp_path, story)


def test_what_is_on_its_way_to_the_disk_is_delivered_even_if_whoever_handed_it_in_has_gone(tmp_path: Path) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        async with talking(server, "ada") as ada:
            await ada.subscribe("city/#", 1)
            broker = server.broker
            written, go_on = asyncio.Event(), threading.Event()
            broker.journal._writer.ask(lambda _store: (go_on.wait(PATIENCE), None)[1])
            plain_write = broker.journal.write

            def write(*parts: Any) -> int:
                written.set()
                return plain_write(*parts)

            broker.answering.journal = SimpleNamespace(  # type: ignore[assignment]
                write=write, known=broker.journal.known, load=broker.journal.load, is_behind=False
            )
            giving = asyncio.create_task(broker.answering.give(answers_in(stream(row("k", identity(server, "ada"))))))
            await written.wait()
            giving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await giving
            go_on.set()
            assert (await acknowledge(ada)).payload == b"slow"

    by_http(tmp_path, story)


def test_whoever_is_away_gets_it_later_even_if_the_broker_falls_in_between(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path, listen={"http_port": "any"}) as server, asking(server) as client:
            async with talking(server, "ada", **LASTING) as ada:
                await ada.subscribe("city/#", 1)
            who = identity(server, "ada")
            assert await hand_in(client, row("k", who, number=1, total=1)) == {"delivered": 1}
        async with serving(tmp_path, listen={"http_port": "any"}) as server, asking(server) as client:
            assert await hand_in(client, row("k", who)) == {"repeated": 1}
            async with talking(server, "ada", clean_start=False, **LASTING) as ada:
                packet = await acknowledge(ada)
                assert ("nc-past", "1 of 1") in packet.user_properties
                await ada.nothing()

    run(story())


def test_what_cannot_be_delivered_is_counted_and_not_tried_again(tmp_path: Path) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        async with talking(server, "ada") as ada, talking(server, "eve") as eve:
            await ada.subscribe("public/#", 1)
            await eve.tell("guests/a", b"")
            who = identity(server, "ada")
            server.broker.temporal.unpublishing.offsets.add(17)
            rows = [
                row("1", "nobody", topic="public/a"),
                row("2", who, topic="public/a", offset=17),
                row("3", who, topic="public/a", lifetime=1),
                row("4", who, topic="secret/a"),
            ]
            answer = await hand_in(client, *rows)
            assert answer == {"absent": 1, "unpublished": 1, "expired": 1, "denied": 1}
            assert server.broker.answering.statistics().outcomes == answer
            assert await hand_in(client, *rows) == {"repeated": 4}
            await ada.nothing()

    allowed = (*RULES, RULES[0].__class__(name="jobs", anonymous=True, plans=True))
    by_http(tmp_path, story, access={"rules": allowed})


def test_clients_that_get_the_same_share_one_record(tmp_path: Path) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        async with talking(server, "ada") as ada, talking(server, "bob") as bob:
            for each in (ada, bob):
                await each.subscribe("city/#", 1)
            people = [identity(server, name) for name in ("ada", "bob")]
            before = server.broker.journal.head
            await hand_in(client, *(row(f"k{who}", who) for who in people))
            assert [(await acknowledge(each)).payload for each in (ada, bob)] == [b"slow", b"slow"]
            [(_, entry)] = next(iter(server.broker.journal.read(before, kinds=(DeliveryEntry,))))
            assert isinstance(entry, DeliveryEntry)
            assert (entry.of, entry.event.receivers) == (0, tuple(people))

    by_http(tmp_path, story)


def test_what_could_not_be_written_is_not_delivered_and_may_be_handed_in_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        async with talking(server, "ada", **LASTING) as ada:
            await ada.subscribe("city/#", 1)
            told = row("k", identity(server, "ada"))
            journal = server.broker.journal
            write = journal.write

            def fails(records: Any = (), puts: Any = (), then: Then | None = None) -> int:
                assert then is not None
                server.broker.loop.call_soon(then, JournalFailed("the disk is full"))
                return journal.head

            server.broker.answering._tidied = server.broker.clock.now()
            monkeypatch.setattr(journal, "write", fails)
            answer = await client.post("/notifications", content=stream(told), headers=ARROW)
            monkeypatch.setattr(journal, "write", write)
            assert (answer.status_code, answer.headers["content-type"]) == (503, PROBLEM)
            await ada.nothing()
            assert not server.broker.sessions.all["ada"].pending
            assert await hand_in(client, told) == {"delivered": 1}
            await acknowledge(ada)

    by_http(tmp_path, story)


def test_keys_are_forgotten_after_a_week(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        await hand_in(client, row("old", "nobody"))
        now = server.broker.clock.now() + answering.KEPT + MICROSECONDS
        monkeypatch.setattr(server.broker.answering, "now", lambda: now)
        await hand_in(client, row("new", "nobody"))
        assert list(server.broker.journal.load(ANSWERED)) == ["new"]

    by_http(tmp_path, story)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"nonsense", "no Arrow stream"),
        (compressed(row("k", "a")), "compressed"),
        (stream(row("k", "a", attributes="[]")), r"row 0 \(from 0\) of the answers cannot be delivered"),
        (stream(row("k", "a"), row("k", "a", reach_area="x")), r"row 1 .*is no area"),
        (stream(row("k", "a", topic="a/#")), "row 0"),
        (stream(row("k", "a", offset=-1)), r"answers\.offset in row 0"),
    ],
)
def test_rows_that_cannot_be_are_refused(tmp_path: Path, data: bytes, said: str) -> None:
    async def story(_server: Server, client: httpx.AsyncClient) -> None:
        answer = await client.post("/notifications", content=data, headers=ARROW)
        assert answer.status_code == 400, answer.text
        assert re.search(said, answer.json()["detail"])

    by_http(tmp_path, story)


async def carry_out(client: httpx.AsyncClient, *plans: dict[str, Any]) -> dict[str, int]:
    answer = await client.post("/plans", json=list(plans))
    assert answer.status_code == 200, answer.text
    outcomes: dict[str, int] = answer.json()
    return outcomes


def test_a_plan_is_carried_out_once_and_recorded_under_its_id(tmp_path: Path) -> None:
    async def story() -> None:
        first = {"plan": "p1", "scheme": "EGRID(factor=10)"}
        second = {"plan": "p2", "scheme": "GRID(factor=20)"}
        async with serving(tmp_path, listen={"http_port": "any"}) as server, asking(server) as client:
            assert await carry_out(client, first) == {"carried out": 1}
            assert await carry_out(client, first, second, second) == {"repeated": 2, "carried out": 1}
            assert await carry_out(client, {**first, "plan": "p3", "clients": ["nobody"]}) == {"nobody": 1}
            assert str(server.broker.scheming.live.status().scheme).startswith("GRID")
            records = [
                record for chunk in server.broker.journal.read(0, kinds=(TransitionEntry,)) for _, record in chunk
            ]
            assert [record.plan for record in records if isinstance(record, TransitionEntry)] == ["p1", "p2"]
        async with serving(tmp_path, listen={"http_port": "any"}) as server, asking(server) as client:
            assert await carry_out(client, first, second) == {"repeated": 2}
            assert str(server.broker.scheming.live.status().scheme).startswith("GRID")

    run(story())


PARK = {"name": "park", "lat": 49.87, "lon": 8.65, "radius": 100.0}


def test_regions_and_switches_of_gateways_are_kept_and_shown(tmp_path: Path) -> None:
    async def shown(client: httpx.AsyncClient) -> tuple[list[Any], dict[str, bool]]:
        answer = (await client.get("/transitions")).json()
        return [(each["name"], each["scheme"], each["plan"]) for each in answer["regions"]], answer["gateways"]

    async def story() -> None:
        square = {**PARK, "name": "square", "lon": 8.66}
        first = {"plan": "p1", "scheme": "EGRID(factor=10)", "regions": [PARK]}
        others = [
            {"plan": "p2", "scheme": "RADIAL", "regions": [square]},
            {"plan": "p3", "gateways": "on", "regions": [PARK, square]},
            {"plan": "p4", "gateways": "off", "regions": [square]},
        ]
        async with serving(tmp_path, listen={"http_port": "any"}) as server, asking(server) as client:
            assert await carry_out(client, first, *others) == {"carried out": 2, "kept": 2}
            kept = await shown(client)
            regions = [("park", "EGRID(factor=10)", "p1"), ("square", "RADIAL", "p2")]
            assert kept == (regions, {"park": True, "square": False})
        async with serving(tmp_path, listen={"http_port": "any"}) as server, asking(server) as client:
            assert await shown(client) == kept
            assert await carry_out(client, first, *others) == {"repeated": 4}
            last = {"plan": "p5", "scheme": "STE", "regions": [PARK], "elsewhere": "EGRID(factor=4)"}
            assert await carry_out(client, last) == {"carried out": 1}
            assert (await shown(client))[0] == [("park", "STE", "p5")]
            assert str(server.broker.scheming.live.status().scheme) == "EGRID(factor=4)"
            assert await carry_out(client, {"plan": "p6", "scheme": "RADIAL"}) == {"carried out": 1}
            assert (await shown(client))[0] == []

    run(story())


def test_a_plan_that_cannot_be_is_refused_with_all_that_come_with_it(tmp_path: Path) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        good = {"plan": "p1", "scheme": "GRID(factor=20)"}
        nowhere = {**PARK, "lat": 91.0}
        bad: list[Any] = [[good, {"plan": "p2", "scheme": "NOSUCH"}], [{"scheme": "GRID"}], good, [{**good, "x": 1}]]
        bad += [
            [{"plan": "p2"}],
            [{"plan": "p2", "gateways": "on"}],
            [{"plan": "p2", "gateways": "perhaps", "regions": [PARK]}],
            [{**good, "regions": []}],
            [{**good, "regions": [PARK, PARK]}],
            [{**good, "regions": [nowhere]}],
            [{**good, "regions": [PARK], "clients": ["ada"]}],
            [{**good, "elsewhere": "RADIAL"}],
            [{**good, "regions": [PARK], "elsewhere": "NOSUCH"}],
            [{**good, "regions": [{**PARK, "name": str(number)} for number in range(257)]}],
            [{**good, "regions": [{**PARK, "radius": 1.7e308}]}],
            [{**good, "regions": [{**PARK, "radius": 3e7}]}],
            [{**good, "scheme": "EGRID(private=true)", "regions": [PARK]}],
            [{**good, "regions": [PARK], "elsewhere": "GRID(private=true)"}],
            # Not on the whole world, which is this broker's ground.
            [good, {"plan": "p2", "scheme": "EGRID(cells=hexagon)"}],
            [good, {"plan": "p2", "scheme": "EGRID(cells=hexagon)", "regions": [PARK]}],
            [good, {"plan": "p2", "scheme": "RADIAL", "regions": [PARK], "elsewhere": "EGRID(cells=hexagon)"}],
            [{"plan": "p2", "scheme": "EGRID(cells=hexagon)", "regions": [PARK], "gateways": "on"}],
        ]
        for body in bad:
            answer = await client.post("/plans", json=body)
            assert answer.status_code == 400, answer.text
        assert server.broker.scheming.live.status().transitions == 0
        assert server.broker.scheming.live.status().regions == ()
        assert server.broker.plans.gateways == {}
        assert await carry_out(client, good) == {"carried out": 1}

    by_http(tmp_path, story)


def test_gateways_that_are_off_make_room_for_others(tmp_path: Path) -> None:
    def plan(name: str, first: int, count: int, gateways: str) -> dict[str, Any]:
        regions = [{**PARK, "name": f"{number:03}"} for number in range(first, first + count)]
        return {"plan": name, "gateways": gateways, "regions": regions}

    async def story() -> None:
        async with serving(tmp_path, listen={"http_port": "any"}) as server, asking(server) as client:
            gateways = server.broker.plans.gateways
            assert await carry_out(client, plan("p1", 0, 200, "on"), plan("p2", 200, 56, "off")) == {"kept": 2}
            assert await carry_out(client, plan("p3", 300, 50, "on")) == {"kept": 1}
            assert len(gateways) == 256
            assert [name for name, each in gateways.items() if not each.on] == [f"{each}" for each in range(250, 256)]
            too_many = {**plan("p4", 400, 7, "on"), "scheme": "RADIAL"}
            answer = await client.post("/plans", json=[too_many])
            assert answer.status_code == 400
            assert "257 regions are too many" in answer.json()["detail"]
            assert server.broker.scheming.live.status().regions == (), "nor the other half of the plan"
            kept = set(gateways)
        async with serving(tmp_path, listen={"http_port": "any"}) as server:
            assert set(server.broker.plans.gateways) == kept

    run(story())


def test_gateways_stay_as_they_are_when_there_are_too_many_regions_with_schemes(tmp_path: Path) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        regions = [{**PARK, "name": str(number)} for number in range(256)]
        assert await carry_out(client, {"plan": "p1", "scheme": "STE", "regions": regions}) == {"carried out": 1}
        one_more = {"plan": "p2", "scheme": "STE", "regions": [PARK], "gateways": "on"}
        assert (await client.post("/plans", json=[one_more])).status_code == 400
        assert server.broker.plans.gateways == {}
        assert await carry_out(client, {**one_more, "elsewhere": "RADIAL"}) == {"carried out": 1}
        assert set(server.broker.plans.gateways) == {"park"}

    by_http(tmp_path, story)


def test_a_broker_starts_without_regions_and_gateways_that_it_cannot_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with serving(tmp_path, listen={"http_port": "any"}) as server, asking(server) as client:
            square = {**PARK, "name": "square"}
            assert await carry_out(client, {"plan": "p1", "gateways": "on", "regions": [PARK, square]}) == {"kept": 1}
            unreadable = [Put(PLANS, "regions", b"\xc1"), Put(GATEWAYS, "park", b"\xa1\xff")]
            server.broker.journal.write(puts=unreadable)
        async with serving(tmp_path, listen={"http_port": "any"}) as server, asking(server) as client:
            answer = (await client.get("/transitions")).json()
            assert (answer["regions"], answer["gateways"]) == ([], {"square": True})
        assert "regions cannot be read" in caplog.text
        assert "gateways of region 'park' cannot be read" in caplog.text

    run(story())


def test_a_broker_that_restarts_knows_whom_plans_have_named(tmp_path: Path) -> None:
    everywhere = {**PARK, "radius": 20_000_000.0}

    async def story() -> None:
        async with serving(tmp_path, listen={"http_port": "any"}) as server, asking(server) as http:
            for name in ("ada", "bob"):
                async with nearcast.connect(url(server), client_id=name) as client:
                    await client.update(lat=49.87, lon=8.65)
                    await client.subscribe("news", within=100).__aenter__()
            assert (await http.post("/transitions", json={"scheme": "STE", "clients": ["ada"]})).status_code == 200
        async with serving(tmp_path, listen={"http_port": "any"}) as server, asking(server) as http:
            assert await carry_out(http, {"plan": "p1", "scheme": "GRID", "regions": [everywhere]}) == {
                "carried out": 1
            }
            live = server.broker.scheming.live
            assert [live.scheme_of(name).name for name in ("ada", "bob")] == ["STE", "GRID"]
            async with nearcast.connect(url(server), client_id="ada", clean_start=True) as client:
                await client.update(lat=49.87, lon=8.65)
                await client.subscribe("news", within=100).__aenter__()
            assert server.broker.journal.load(NAMED) == {}

    run(story())


def url(server: Server) -> str:
    return f"mqtt://127.0.0.1:{server.addresses['mqtt'][1]}"


def test_only_operators_hand_something_in(tmp_path: Path) -> None:
    async def story(_server: Server, client: httpx.AsyncClient) -> None:
        assert (await client.post("/notifications", content=stream(), headers=ARROW)).status_code == 403
        assert (await client.post("/plans", json=[])).status_code == 403
        for path in ("/journal/extent", "/journal/stretches?first=0&last=1"):
            assert (await client.get(path)).status_code == 403

    by_http(tmp_path, story, access={"rules": RULES})


@pytest.mark.parametrize("query", ["first=0", "first=-1&last=2", "first=0&last=1&kinds=gossip"])
def test_questions_for_stretches_that_cannot_be_are_refused(tmp_path: Path, query: str) -> None:
    async def story(_server: Server, client: httpx.AsyncClient) -> None:
        assert (await client.get(f"/journal/stretches?{query}")).status_code == 400

    by_http(tmp_path, story)
