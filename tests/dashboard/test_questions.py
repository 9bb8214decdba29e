"""What an operator asks for: tables, one client, why, what was before; each answer is what the broker and the model say."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from tests.broker.talker import Talker, talking
from tests.dashboard.looking import looking, shown
from tests.waiting import until

from nearcast.broker import recorded
from nearcast.broker.core import Broker
from nearcast.broker.explaining import LONGEST_PAYLOAD, names_of, term_of
from nearcast.broker.publishing.entries import event_in
from nearcast.broker.recorded import find_event
from nearcast.broker.server import Server
from nearcast.broker.sessions.session import Session
from nearcast.dashboard import one_client, past, tables
from nearcast.dashboard import turns as turns_of
from nearcast.dashboard.contract import SessionRow
from nearcast.dashboard.past import Pasts
from nearcast.journal.archive import Archive
from nearcast.model.time import instant, to_text

HERE, THERE = "49.8728,8.6512", "49.9900,8.6512"
REACH = '{"circle": 100, "at": [8.6512, 49.8728]}'
NEAR = [("nc-area", '{"circle": 500}')]


async def asked(client: httpx.AsyncClient, route: str, /, **words: Any) -> Any:
    answer = await client.get(f"/dashboard/api/{route}", params=words)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def report(talker: Talker, where: str) -> None:
    await talker.tell("$nearcast/position", where.encode())


async def placed(talker: Talker, where: str, properties: list[tuple[str, str]] | None = None) -> None:
    await report(talker, where)
    await talker.subscribe("traffic/#", 0, [*NEAR, *(properties or ())])


def test_sessions_and_subscriptions_are_searched_sorted_and_turned(tmp_path: Path) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        async with talking(server, "ada") as ada, talking(server, "bob") as bob, talking(server, "cid") as cid:
            await placed(ada, HERE)
            await placed(bob, THERE, [("nc-where", "severity > 3")])
            await cid.subscribe("weather", 1)
            rows = (await asked(client, "sessions", sort="-client"))["rows"]
            assert [row["client"] for row in rows] == ["cid", "bob", "ada"]
            page = await asked(client, "sessions", sort="client", offset=1, limit=1)
            assert (page["total"], [row["client"] for row in page["rows"]]) == (3, ["bob"])
            [row] = (await asked(client, "sessions", search="AD"))["rows"]
            assert (row["lat"], row["lon"], row["subscriptions"], row["connected"]) == (49.8728, 8.6512, 1, True)
            assert row["address"] == "127.0.0.1"
            assert [each["lat"] for each in (await asked(client, "sessions", sort="lat"))["rows"]] == [
                49.8728,
                49.99,
                None,
            ]
            found = await asked(client, "subscriptions", search="severity")
            assert [(each["client"], each["filter"]) for each in found["rows"]] == [("bob", "traffic/#")]
            assert (await asked(client, "subscriptions"))["total"] == 3
            assert (await client.get("/dashboard/api/sessions?sort=colour")).status_code == 422
            assert (await client.get("/dashboard/api/sessions?limit=100000")).status_code == 400

    shown(tmp_path, story)


def test_one_client_sees_what_it_was_sent_and_what_was_withheld(tmp_path: Path) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        async with talking(server, "a/da") as ada, talking(server, "src") as source:
            await placed(ada, HERE)
            await ada.tell("$nearcast/context/me", b'{"role": "medic"}')
            await source.tell("traffic/near", b"jam", [("nc-place", HERE)])
            await source.tell("traffic/far", b"far", [("nc-place", THERE)])
            await source.tell("weather", b"rain", [("nc-place", HERE)])
            found = await asked(client, "clients/a%2Fda")
            assert [(row["topic"], row["payload"]) for row in found["sent"]] == [("traffic/near", "jam")]
            assert [row["topic"] for row in found["withheld"]] == [
                "traffic/far"
            ]  # nobody withholds what nobody asked for
            assert found["position"] == {"lat": 49.8728, "lon": 8.6512}
            assert found["contexts"] == [{"id": "me", "attributes": {"role": "medic"}}]
            [subscription] = found["subscriptions"]
            assert subscription["area"]["radius"] == 500
            assert subscription["area"]["geometry"]["type"] == "Polygon"
            assert (await client.get("/dashboard/api/clients/nobody")).status_code == 404
            async with looking(server) as page:
                await page.say(watch="a/da")
                await page.until(lambda page: page.of("client"))
                told = page.of("client")[-1]
                assert told["sent"] == found["sent"]
                await page.until(lambda page: page.kind_of("a/da") == ("", "medic"))
                await page.say(watch=None)

    shown(tmp_path, story)


@pytest.mark.parametrize(
    ("topic", "properties", "delivered"),
    [
        ("traffic/jam", [("nc-place", HERE), ("severity", "5")], True),
        ("traffic/jam", [("nc-place", THERE), ("severity", "5")], False),  # too far
        ("traffic/jam", [("nc-place", HERE), ("severity", "1")], False),  # too mild
        ("weather", [("nc-place", HERE), ("severity", "5")], False),  # another topic
        ("traffic/jam", [("nc-place", HERE), ("severity", "5"), ("nc-to", "role = 'medic'")], True),
        ("traffic/jam", [("nc-place", HERE), ("severity", "5"), ("nc-to", "role = 'police'")], False),
    ],
)
def test_an_explanation_is_that_of_the_matcher(
    tmp_path: Path, topic: str, properties: list[tuple[str, str]], delivered: bool
) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        async with talking(server, "ada") as ada, talking(server, "src") as source:
            await placed(ada, HERE, [("nc-where", "severity > 3")])
            await ada.tell("$nearcast/context/me", b'{"role": "medic"}')
            await source.tell(topic, b"x", [*properties, ("nc-id", "e-1")])
            found = await asked(client, "explain", event="e-1", client="ada")
            _, entry = find_event(server.broker.journal, tmp_path / "lake", "e-1")
            expected = server.broker.router.matcher.explain(event_in(entry, "src"), "ada")
            assert found["delivered"] is delivered
            assert found["tree"]["ok"] is delivered
            assert found["note"] is None
            assert _without_times(found["tree"]) == _without_times(_plain(term_of(expected)))

    shown(tmp_path, story)


def _plain(term: Any) -> dict[str, Any]:
    return {"ok": term.ok, "what": term.what, "text": term.text, "children": [_plain(each) for each in term.children]}


def _without_times(term: dict[str, Any]) -> dict[str, Any]:
    """The matcher does not know since when somebody has subscribed."""
    text = "" if term["what"] == "held" else term["text"]
    return {**term, "text": text, "children": [_without_times(each) for each in term["children"]]}


def test_what_was_is_explained_as_it_was_then(tmp_path: Path) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        async with talking(server, "ada") as ada, talking(server, "src") as source:
            await placed(ada, HERE)
            await source.tell("traffic/jam", b"x", [("nc-place", HERE), ("nc-id", "early")])
            await ada.heard()
            await report(ada, THERE)
            await source.tell("traffic/jam", b"x", [("nc-place", HERE), ("nc-id", "late")])
            assert (await asked(client, "explain", event="early", client="ada"))["delivered"] is True
            found = await asked(client, "explain", event="early", client="ada")
            assert found["tree"]["ok"] is True
            found = await asked(client, "explain", event="late", client="ada")
            assert (found["delivered"], found["tree"]["ok"]) == (False, False)
            for name, who in (("none", "ada"), ("early", "nobody")):
                answer = await client.get("/dashboard/api/explain", params={"event": name, "client": who})
                assert answer.status_code == 404

    shown(tmp_path, story)


def test_the_past_is_what_was_published_and_reported(tmp_path: Path) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        now = server.broker.clock.now
        empty = await asked(client, "past/extent")
        async with talking(server, "ada") as ada, talking(server, "src") as source:
            await placed(ada, HERE)
            await source.tell("traffic/jam", b"x", [("nc-place", HERE), ("nc-reach", REACH), ("nc-id", "e-1")])
            await ada.heard()
            between = now()
            await report(ada, THERE)
            await placed(source, HERE)
            await source.tell("traffic/jam", b"x", [("nc-place", THERE), ("nc-id", "e-2")])
            await until(lambda: now() > between + 1000)
            then = await asked(client, "past", at=to_text(between))
            assert [(each["client"], each["lat"]) for each in then["clients"]] == [("ada", 49.8728)]
            [event] = then["events"]
            assert (event["id"], event["receivers"], event["publisher"], event["count"]) == ("e-1", ["ada"], "src", 1)
            assert event["reach"]["type"] == "Polygon"
            later = await asked(client, "past", at=to_text(now()))  # goes on from what is remembered
            assert {each["client"]: each["lat"] for each in later["clients"]} == {"ada": 49.99, "src": 49.8728}
            assert [each["id"] for each in later["events"]] == ["e-1", "e-2"]
            assert later["complete"] is True
            narrow = await asked(client, "past", at=to_text(between - 10_000_000), window="1")
            assert (narrow["clients"], narrow["events"]) == ([], [])
            extent = await asked(client, "past/extent")
            assert extent["oldest"] < to_text(between) <= extent["newest"]
            assert empty["newest"] is None or empty["newest"] <= extent["newest"]
            for wrong in ("yesterday", to_text(now() + 10**9)):
                answer = await client.get("/dashboard/api/past", params={"at": wrong})
                assert answer.status_code == 422, answer.text

    shown(tmp_path, story)


def test_what_the_journal_has_deleted_is_found_in_the_lake(tmp_path: Path) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        broker = server.broker
        async with talking(server, "ada") as ada, talking(server, "src") as source:
            await placed(ada, HERE, [("nc-where", "severity > 3")])
            await source.tell("traffic/jam", b"x", [("nc-place", HERE), ("severity", "5"), ("nc-id", "old")])
            await source.tell("traffic/jam", b"x", [("nc-place", HERE), ("severity", "1"), ("nc-id", "mild")])
            at = broker.clock.now()
            before = [await asked(client, "explain", event=name, client="ada") for name in ("old", "mild")]
            await asyncio.to_thread(Archive(broker.journal, broker.settings.lake, 3_600.0).export)
            await until(lambda: broker.clock.now() > at + 1_500_000)
            await asyncio.wrap_future(broker.journal.trim())
            await source.tell("traffic/jam", b"x", [("nc-place", THERE), ("nc-id", "new")])
            assert broker.journal.oldest > 0
            then = await asked(client, "past", at=to_text(at))
            assert then["source"].startswith("the lake")
            assert [each["client"] for each in then["clients"]] == ["ada"]
            assert [each["id"] for each in then["events"]] == ["old", "mild"]
            after = [await asked(client, "explain", event=name, client="ada") for name in ("old", "mild")]
            assert [each["tree"] for each in after] == [each["tree"] for each in before]
            assert [each["delivered"] for each in after] == [True, False]
            assert (await asked(client, "past/extent"))["oldest"] <= to_text(at)

    shown(tmp_path, story, journal={"retention_age": 1_000_000})


def test_density_is_where_clients_are_and_recall_is_said_not_to_be_known(tmp_path: Path) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        assert (await asked(client, "heat"))["cells"] == []
        async with talking(server, "ada") as ada, talking(server, "bob") as bob, talking(server, "cid") as cid:
            for talker, where in ((ada, HERE), (bob, HERE), (cid, "49.8800,8.6512")):
                await report(talker, where)
            found = await asked(client, "heat", kind="density")
            assert sorted(cell["value"] for cell in found["cells"]) == [1, 2]
            [busy] = [cell for cell in found["cells"] if cell["value"] == 2]
            assert busy["south"] <= 49.8728 <= busy["north"]
            assert busy["west"] <= 8.6512 <= busy["east"]
            for kind in ("recall", "precision"):
                found = await asked(client, "heat", kind=kind)
                assert found["cells"] == []
                assert "not measured yet" in found["source"]
            assert (await client.get("/dashboard/api/heat?kind=joy")).status_code == 400

    shown(tmp_path, story)


def test_recall_by_place_is_what_the_pipeline_observed(tmp_path: Path) -> None:
    async def story(_: Server, client: httpx.AsyncClient) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        folder = tmp_path / "lake-warehouse" / "observed" / "places"
        folder.mkdir(parents=True)
        rows = {"lat": [49.87, 49.88], "lon": [8.65, 8.65], "cell": [50.0, 50.0]}
        counts = {"due": [4, 2], "notified": [3, 4], "correct": [3, 2]}
        pq.write_table(pa.table(rows | counts), folder / "part-0.parquet")
        found = {kind: await asked(client, "heat", kind=kind) for kind in ("recall", "precision")}
        assert {(cell["value"], cell["count"]) for cell in found["recall"]["cells"]} == {(0.75, 4), (1.0, 2)}
        assert {cell["value"] for cell in found["precision"]["cells"]} == {1.0, 0.5}
        assert "pipeline observe" in found["recall"]["source"]

    shown(tmp_path, story)


def test_the_world_is_that_of_the_map(tmp_path: Path) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        found = await asked(client, "world")
        assert found["bounds"]["south"] < 49.8728 < found["bounds"]["north"]
        assert len(found["streets"]) > 10
        assert all(len(street) >= 4 and len(street) % 2 == 0 for street in found["streets"])
        kinds = {each["kind"]: each for each in found["schemes"]}
        [factor] = [each for each in kinds["EGRID"]["parameters"] if each["name"] == "factor"]
        assert (factor["type"], factor["default"]) == ("int", 5)
        [cells] = [each for each in kinds["EGRID"]["parameters"] if each["name"] == "cells"]
        assert cells["choices"] == ["square", "hexagon"]
        assert kinds["RADIAL"]["about"]

    shown(tmp_path, story, dashboard={"map": Path("ar-darmstadt")})


@pytest.mark.parametrize("name", ["a/b", "/lead", "trail/", "a//b", "ü ñ", "100%", "%2F", "<b>x</b>", "a?b#c&d"])
def test_a_client_is_found_whatever_its_name(tmp_path: Path, name: str) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        async with talking(server, name.strip("/")), talking(server, name):
            assert (await asked(client, f"clients/{quote(name, safe='')}"))["client"] == name
            assert name in [row["client"] for row in (await asked(client, "sessions", search=name))["rows"]]

    shown(tmp_path, story)


@pytest.mark.parametrize("words", [{}, {"search": "TALKER"}, {"sort": "-client"}, {"search": "t", "sort": "client"}])
@pytest.mark.parametrize("table", ["sessions", "subscriptions"])
def test_whoever_turns_over_tables_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, words: dict[str, str]
) -> None:
    """Between some sessions and the next ones, everything else has its turn."""
    monkeypatch.setattr(turns_of, "AT_ONCE", 1)
    monkeypatch.setattr(turns_of, "A_TURN", 0.0)

    async def story(server: Server, _: httpx.AsyncClient) -> None:
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        async with AsyncExitStack() as stack:
            for number in range(8):
                talker = await stack.enter_async_context(talking(server, f"talker-{number}"))
                await talker.subscribe("traffic/#", 0)
            other = asyncio.create_task(others())
            look = tables.sessions_of if table == "sessions" else tables.subscriptions_of
            found = await look(server.broker, words.get("search", ""), words.get("sort", ""), 0, 50)
            other.cancel()
            assert (found.total, len(found.rows)) == (8, 8)
            assert turns >= 5

    shown(tmp_path, story)


def test_rows_are_made_for_the_page_only_however_it_is_sorted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    row_of = tables.session_row

    def counted(broker: Broker, session: Session, addresses: Mapping[str, str]) -> SessionRow:
        made.append(session.client)
        return row_of(broker, session, addresses)

    monkeypatch.setattr(tables, "session_row", counted)
    monkeypatch.setattr(tables, "A_RUN", 3)  # several are merged

    async def story(server: Server, client: httpx.AsyncClient) -> None:
        names = [f"c{number}" for number in range(8)]
        async with AsyncExitStack() as stack:
            for name in sorted(names, key=hash):
                await stack.enter_async_context(talking(server, name))
            for sort, right in (("client", names), ("-client", names[::-1])):
                for offset in range(0, 8, 2):
                    made.clear()
                    rows = (await asked(client, "sessions", sort=sort, offset=offset, limit=2))["rows"]
                    assert [row["client"] for row in rows] == made == right[offset : offset + 2]

    shown(tmp_path, story)


def test_of_too_many_the_same_are_shown_at_every_step_of_a_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past, "MOST_CLIENTS", 3)

    async def story(server: Server, client: httpx.AsyncClient) -> None:
        async with AsyncExitStack() as stack:
            talkers = [await stack.enter_async_context(talking(server, f"c{number}")) for number in range(6)]
            seen: list[set[str]] = []
            for order in (talkers, talkers[::-1]):
                for talker in order:
                    await report(talker, HERE)
                now = to_text(server.broker.clock.now())
                then = await asked(client, "past", at=now)
                assert then["complete"] is False
                seen.append({each["client"] for each in then["clients"]})
                past_of_now = Pasts(server.broker).past(instant(now), 60.0, names_of(server.broker))
                assert {each.client for each in past_of_now.clients} == seen[-1]
            assert seen[0] == seen[1]
            assert len(seen[0]) == 3

    shown(tmp_path, story)


def test_of_events_for_very_many_fewer_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_client, "MOST_RECEIVERS", 4)

    async def story(server: Server, client: httpx.AsyncClient) -> None:
        async with talking(server, "ada") as ada, talking(server, "bob") as bob, talking(server, "src") as source:
            await placed(ada, HERE)
            await placed(bob, HERE)
            for number in range(5):
                await source.tell("traffic/jam", b"x" * 1_000, [("nc-place", HERE), ("nc-id", f"e-{number}")])
            for _turn in range(2):
                await ada.heard()
            sent = (await asked(client, "clients/ada"))["sent"]
            assert [each["event"] for each in sent] == ["e-4", "e-3"]
            assert {len(each["payload"]) for each in sent} == {LONGEST_PAYLOAD}

    shown(tmp_path, story)


def test_of_many_events_the_last_of_a_time_are_shown_and_no_more_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        async with talking(server, "src") as source:
            for number in range(6):
                await source.tell("traffic/jam", b"x", [("nc-place", HERE), ("nc-id", f"e-{number}")])
            at = to_text(server.broker.clock.now())

            async def told() -> tuple[list[str], bool]:
                then = await asked(client, "past", at=at)
                return [each["id"] for each in then["events"]], then["complete"]

            assert await told() == ([f"e-{number}" for number in range(6)], True)
            monkeypatch.setattr(past, "MOST_EVENTS", 2)
            assert await told() == (["e-4", "e-5"], False)
            monkeypatch.setattr(past, "MOST_EVENTS", 100)
            for room in (recorded, past):
                monkeypatch.setattr(room, "MOST_READ", 3)
            events, complete = await told()
            assert 0 < len(events) <= 3
            assert events[-1] == "e-5"
            assert complete is False

    shown(tmp_path, story)
