"""The broker by HTTP: the same events by another door, with the same locks."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mqtt5 import PubAckPacket
from prometheus_client.parser import text_string_to_metric_families
from tests.broker.talker import run, serving, talking
from tests.broker.test_security import RULES

from nearcast.broker.access.users import add_user
from nearcast.broker.schemes.live import LiveSchemes
from nearcast.broker.server import Server
from nearcast.errors import TransitionFailed
from nearcast.records.arrow import table_in

CLOUD_EVENT = {"content-type": "application/cloudevents+json"}
CLOUD_EVENTS = {"content-type": "application/cloudevents-batch+json"}
GEOJSON = {"content-type": "application/geo+json"}
PROBLEM = "application/problem+json"
Story = Callable[[Server, httpx.AsyncClient], Coroutine[Any, Any, None]]


@asynccontextmanager
async def asking(server: Server, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    host, port = server.addresses["http"]
    async with httpx.AsyncClient(base_url=f"http://{host}:{port}", timeout=20.0, **options) as client:
        yield client


def by_http(folder: Path, story: Story, **changes: Any) -> None:
    async def with_broker() -> None:
        async with serving(folder, listen={"http_port": "any"}, **changes) as server, asking(server) as client:
            await story(server, client)

    run(with_broker())


def cloud_event(number: int, **parts: Any) -> dict[str, Any]:
    return {
        "specversion": "1.0",
        "id": f"e{number}",
        "source": "/test",
        "type": "jam",
        "subject": "traffic/jam",
        "data": f"jam {number}",
        **parts,
    }


def feature(number: int, **properties: Any) -> dict[str, Any]:
    return {
        "type": "Feature",
        "geometry": {"type": "Point", "coordinates": [8.6512, 49.8728]},
        "properties": {"topic": "traffic/jam", "payload": f"jam {number}", "severity": number, **properties},
    }


@pytest.mark.parametrize(
    ("headers", "body", "count"),
    [
        (CLOUD_EVENT, cloud_event(1, severity=1, place="49.8728,8.6512"), 1),
        (CLOUD_EVENTS, [cloud_event(n, severity=n, place="49.8728,8.6512") for n in (1, 2)], 2),
        (GEOJSON, feature(1), 1),
        (GEOJSON, {"type": "FeatureCollection", "features": [feature(1), feature(2)]}, 2),
    ],
)
def test_what_is_published_by_http_reaches_mqtt_subscribers(
    tmp_path: Path, headers: dict[str, str], body: Any, count: int
) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        async with talking(server, "reader") as reader:
            await reader.subscribe("traffic/#", 1, [("nc-area", '{"circle": 500, "at": [8.6512, 49.8728]}')])
            answer = await client.post("/events", json=body, headers=headers)
            assert answer.status_code == 201, answer.text
            ids = answer.json()["ids"]
            assert len(ids) == count
            for number in range(1, count + 1):
                event = await reader.heard()
                assert event.payload == b"jam %d" % number
                properties = dict(event.user_properties)
                assert properties["nc-place"] == "49.8728,8.6512"
                assert properties["severity"] == str(number)
                assert properties["nc-id"] == ids[number - 1]
                reader.send(PubAckPacket(event.packet_id or 0))

    by_http(tmp_path, story)


def test_what_is_published_by_mqtt_is_found_by_http(tmp_path: Path) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        async with talking(server, "writer") as writer:
            for number in range(5):
                place = f"49.87{number},8.65"  # 111 m apart
                await writer.tell("traffic/jam", b"%d" % number, [("nc-place", place), ("severity", str(number))])
            await writer.tell("weather", b"rain")
            await writer.tell("traffic/jam", b"not for all", [("nc-to", "kind = 'police'")])

        async def found(**words: Any) -> list[str]:
            answer = await client.get("/events", params=words)
            assert answer.status_code == 200, answer.text
            assert answer.headers["content-type"].startswith("application/geo+json")
            return [each["properties"]["payload"] for each in answer.json()["features"]]

        assert await found(topic="traffic/#") == ["0", "1", "2", "3", "4"]
        assert await found(topic="traffic/#", where="severity >= 3") == ["3", "4"]
        assert await found(topic="traffic/#", at="49.870,8.65", within="150") == ["0", "1"]
        assert await found(limit="2") == ["4", "rain"]
        assert await found(since="2099-01-01T00:00:00Z") == []
        answer = await client.get("/events", headers={"accept": "application/cloudevents-batch+json"})
        first = answer.json()[0]
        assert (first["specversion"], first["subject"], first["data"], first["severity"]) == (
            "1.0",
            "traffic/jam",
            "0",
            0,
        )

    by_http(tmp_path, story)


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        (CLOUD_EVENT, b"no json"),
        (CLOUD_EVENT, b"[]"),
        (CLOUD_EVENT, b"{}"),
        (CLOUD_EVENTS, b"[1]"),
        (GEOJSON, json.dumps({"type": "Feature", "properties": None}).encode()),
        (GEOJSON, json.dumps({"type": "FeatureCollection", "features": 5}).encode()),
        (GEOJSON, json.dumps(feature(1, topic="a/#")).encode()),
        (GEOJSON, json.dumps(feature(1, tags=5)).encode()),
        (GEOJSON, json.dumps(feature(1, reach="huge")).encode()),
        (GEOJSON, json.dumps({**feature(1), "geometry": {"type": "Point", "coordinates": [999, 999]}}).encode()),
        (CLOUD_EVENT, json.dumps(cloud_event(1, subject="$nearcast/problems")).encode()),
        (CLOUD_EVENT, json.dumps(cloud_event(1, data_base64="*")).encode()),
        ({"content-type": "text/plain"}, b"{}"),
        ({}, b"{}"),
    ],
)
def test_what_cannot_be_published_is_answered_with_a_problem_document(
    tmp_path: Path, headers: dict[str, str], body: bytes
) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        async with talking(server, "reader") as reader:
            await reader.subscribe("#")
            await reader.subscribe("$nearcast/problems")
            answer = await client.post("/events", content=body, headers=headers)
            assert answer.status_code == 400, answer.text
            assert answer.headers["content-type"].startswith(PROBLEM)
            problem = answer.json()
            assert problem["status"] == 400
            assert problem["detail"]
            await reader.nothing()

    by_http(tmp_path, story)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/events?where=severity%20%3E", 400),
        ("/events?topic=a%2F%23%2Fb", 400),
        ("/events?since=yesterday", 400),
        ("/events?within=500", 400),
        ("/events?at=999,999&within=5", 400),
        ("/events?at=1,1&within=-5", 400),
        ("/events?limit=0", 400),
        ("/events?limit=many", 400),
        ("/nowhere", 404),
        ("/journal?first=many", 400),
        ("/journal?first=-5", 400),
    ],
)
def test_what_cannot_be_asked_is_answered_with_a_problem_document(tmp_path: Path, path: str, status: int) -> None:
    async def story(_server: Server, client: httpx.AsyncClient) -> None:
        answer = await client.get(path)
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"].startswith(PROBLEM)
        assert "Traceback" not in answer.text

    by_http(tmp_path, story)


@pytest.mark.parametrize("path", ["/events", "/plans", "/transitions"])
def test_a_body_that_nests_too_deeply_is_no_mistake_of_the_broker(
    tmp_path: Path, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(_server: Server, client: httpx.AsyncClient) -> None:
        answer = await client.post(path, content=b"[" * 200_000, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json")

    by_http(tmp_path, story)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_one_bad_event_of_a_batch_keeps_all_of_it_back(tmp_path: Path) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        body = [cloud_event(1), cloud_event(2, place="nowhere")]
        assert (await client.post("/events", json=body, headers=CLOUD_EVENTS)).status_code == 400
        assert (await client.get("/events")).json()["features"] == []
        assert server.broker.statistics().publishing.published == 0

    by_http(tmp_path, story)


def test_a_body_that_is_too_large_is_refused(tmp_path: Path) -> None:
    async def story(_server: Server, client: httpx.AsyncClient) -> None:
        answer = await client.post("/events", json=cloud_event(1, data="x" * 20_000), headers=CLOUD_EVENT)
        assert answer.status_code == 413
        assert answer.headers["content-type"].startswith(PROBLEM)

    by_http(tmp_path, story, limits={"packet": 10_000})


WORDS = (
    "type properties geometry features coordinates topic payload place reach to when tags lifetime specversion id subject "
    "data data_base64 contenttype x"
)
json_trees = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS.split()), inner, max_size=5),
    max_leaves=12,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.sampled_from([CLOUD_EVENT, CLOUD_EVENTS, GEOJSON]), json_trees), min_size=100, max_size=100)
)
def test_any_json_is_published_or_refused(
    tmp_path_factory: pytest.TempPathFactory, those: list[tuple[dict[str, str], Any]]
) -> None:
    """By the forms themselves, without a server: thousands of them."""
    from nearcast.broker.http.events import _posted
    from nearcast.errors import InvalidInput

    for headers, tree in those:
        for body in (
            tree,
            {**cloud_event(1), "x": tree},
            feature(1, **(tree if isinstance(tree, dict) else {"x": tree})),
        ):
            try:
                posted = _posted(json.dumps(body).encode(), headers["content-type"])
            except InvalidInput:
                continue
            for each in posted:
                assert each.publication.topic


# Locks


def test_the_rules_hold_here_too(tmp_path: Path) -> None:
    add_user(tmp_path / "users", "ada", "ada's secret")

    async def story(server: Server, client: httpx.AsyncClient) -> None:
        ada = httpx.BasicAuth("ada", "ada's secret")
        secret = cloud_event(1, subject="secret/plan")
        answer = await client.post("/events", json=secret, headers=CLOUD_EVENT)
        assert (answer.status_code, answer.headers["content-type"]) == (403, PROBLEM)
        assert (await client.post("/events", json=secret, headers=CLOUD_EVENT, auth=ada)).status_code == 201
        wrong = await client.get("/events", auth=httpx.BasicAuth("ada", "guessed"))
        assert wrong.status_code == 401
        assert wrong.headers["www-authenticate"].startswith("Basic")
        for header in ("Bearer x", "Basic ***", "Basic /w=="):
            assert (await client.get("/events", headers={"authorization": header})).status_code == 401, header
        for topic in ("#", "secret/#", "secret/plan", "guests/#", "+/plan"):
            answer = await client.get("/events", params={"topic": topic})
            assert answer.status_code == 403, topic
            assert "jam" not in answer.text
        answer = await client.get("/events", params={"topic": "secret/#"}, auth=ada)
        assert len(answer.json()["features"]) == 1
        for path in ("/status", "/transitions", "/journal"):
            refused = await client.get(path)
            assert (refused.status_code, refused.headers["content-type"]) == (403, PROBLEM), path
            assert "plans = true" in refused.json()["detail"]
        order = {"scheme": "GRID"}
        assert (await client.post("/transitions", json=order)).status_code == 403
        assert (await client.get("/healthz")).status_code == 200
        assert server.broker.scheming.live.status().transitions == 0

    by_http(tmp_path, story, access={"rules": RULES})


# Operations


def test_health_metrics_and_the_description_of_the_interface(tmp_path: Path) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        assert (await client.get("/healthz")).text == "ok\n"
        ready = await client.get("/readyz")
        assert (ready.status_code, ready.text) == (200, "ready\n")
        async with talking(server, "writer") as writer:
            for _ in range(3):
                await writer.tell("a", b"1", retain=True)
            text = (await client.get("/metrics")).text
        families = {family.name: family for family in text_string_to_metric_families(text)}
        values = {sample.name: sample.value for family in families.values() for sample in family.samples}
        assert values["nearcast_connections"] == 1
        assert values["nearcast_retained_messages"] == 1
        assert values["nearcast_journal_writable"] == 1
        assert all(
            family.documentation and family.type in {"gauge", "counter", "histogram"} for family in families.values()
        )
        description = (await client.get("/schema/openapi.json")).json()
        assert description["openapi"].startswith("3.")
        assert description["info"]["title"] == "nearcast"
        paths = description["paths"]
        assert {"/events", "/status", "/transitions", "/journal", "/healthz", "/readyz", "/metrics"} <= paths.keys()
        assert {"get", "post"} <= paths["/events"].keys()
        for path, methods in paths.items():
            for method, operation in methods.items():
                assert operation["summary"], (path, method)
                assert operation["responses"], (path, method)

    by_http(tmp_path, story)


def test_transitions_are_commanded_and_shown(tmp_path: Path) -> None:
    async def story(_server: Server, client: httpx.AsyncClient) -> None:
        before = (await client.get("/transitions")).json()
        answer = await client.post("/transitions", json={"scheme": "EGRID(factor=10)"})
        assert answer.status_code == 200, answer.text
        assert answer.json()["scheme"].startswith("EGRID")
        assert answer.json()["transitions"] == before["transitions"] + 1
        bad: list[Any] = [{"scheme": "NOSUCH"}, {"scheme": "GRID(factor=-1)"}, {"plan": 1}, []]
        for body in bad:
            refused = await client.post("/transitions", json=body)
            assert refused.status_code in {400, 404}, refused.text
            assert refused.headers["content-type"].startswith(PROBLEM)
        # There is such a scheme, but not on this ground, which is the whole world.
        refused = await client.post("/transitions", json={"scheme": "EGRID(cells=hexagon)"})
        assert (refused.status_code, refused.headers["content-type"]) == (400, PROBLEM)
        assert "hexagons" in refused.json()["detail"]
        assert (await client.get("/transitions")).json() == answer.json()

    by_http(tmp_path, story)


def test_a_transition_that_fails_is_no_failure_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_self: object, _scheme: str, _clients: object) -> None:
        raise TransitionFailed("the old one goes on")

    async def story(_server: Server, client: httpx.AsyncClient) -> None:
        refused = await client.post("/transitions", json={"scheme": "STE"})
        assert (refused.status_code, refused.headers["content-type"]) == (409, PROBLEM)
        assert refused.json()["detail"] == "the old one goes on"

    monkeypatch.setattr(LiveSchemes, "transition", fail)
    by_http(tmp_path, story)


def test_the_tail_of_the_journal_is_an_arrow_stream(tmp_path: Path) -> None:
    async def story(server: Server, client: httpx.AsyncClient) -> None:
        async with talking(server, "writer") as writer:
            for number in range(3):
                await writer.tell("a", b"%d" % number)
        answer = await client.get("/journal", params={"first": 0})
        assert answer.headers["content-type"].startswith("application/vnd.apache.arrow.stream")
        table = table_in(answer.content)
        rows = table.to_pylist()
        assert sum(row["kind"] == "event" for row in rows) == 3
        following = int(table.schema.metadata[b"nearcast.next"])
        assert following == rows[-1]["offset"] + 1
        rest = await client.get("/journal", params={"first": following + 1000})
        assert table_in(rest.content).num_rows == 0

    by_http(tmp_path, story)
