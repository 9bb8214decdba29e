"""Metrics as Prometheus takes them, and the dashboard, alerts and documents that name them."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st
from mqtt5 import ConnAckPacket, ConnectPacket
from prometheus_client.parser import text_string_to_metric_families
from tests.broker.federation.brokers import FederatedBroker, federation
from tests.broker.talker import Talker, run, serving, talking
from tests.dashboard.looking import showing
from tests.documents import ROOT
from tests.waiting import until

from nearcast.broker.refusals import REASONS
from nearcast.broker.server import Server
from nearcast.runtime.durations import FAST, SLOW, Durations

DEPLOY = ROOT / "deploy"
RULES, RULES_TEST = (DEPLOY / "prometheus" / name for name in ("nearcast.rules.yml", "nearcast.rules.test.yml"))
GRAFANA = DEPLOY / "grafana" / "nearcast.json"
DOCUMENTS = [ROOT / "docs" / "operations.md", ROOT / "docs" / "how-to" / "back-up-and-monitor.md"]
NAME = re.compile(r"\b(?:nearcast|process)_[a-z0-9_]+\b(?!\.(?:py|toml|db))")
FROM_ELSEWHERE = {"up"}

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed; scripts/install-promtool does it"
)


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[FederatedBroker]]:
    """Of a federation, and one that traces: so that all metrics are there."""
    folder = tmp_path_factory.mktemp("brokers")
    with federation(folder, 2, '[tracing]\nendpoint = "http://127.0.0.1:9/v1/traces"\nsample = 0.0\n') as brokers:
        yield brokers


def scraped(broker: FederatedBroker) -> str:
    return httpx.get(f"{broker.http}/metrics", timeout=30).text


def names_in(text: str) -> set[str]:
    return set(NAME.findall(text))


def exported(text: str) -> set[str]:
    """Names of samples, as expressions use them."""
    return {sample.name for family in text_string_to_metric_families(text) for sample in family.samples}


def promtool(*arguments: str, text: str | None = None) -> str:
    done = subprocess.run(["promtool", *arguments], input=text, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@needs_promtool
def test_promtool_finds_nothing_in_the_metrics(brokers: list[FederatedBroker]) -> None:
    assert promtool("check", "metrics", text=scraped(brokers[0])) == ""
    broken = subprocess.run(
        ["promtool", "check", "metrics"], input="a_count 1\n", text=True, capture_output=True, check=False
    )
    assert broken.returncode != 0  # it looks at all


@needs_promtool
def test_promtool_finds_nothing_in_the_rules_and_every_alert_fires() -> None:
    assert "SUCCESS" in promtool("check", "rules", str(RULES))
    assert "SUCCESS" in promtool("test", "rules", str(RULES_TEST))


def test_every_alert_is_among_those_that_are_seen_firing() -> None:
    alerts = {rule["alert"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]}
    cases = yaml.safe_load(RULES_TEST.read_text())["tests"]
    samples = [each["labels"] for case in cases for test in case["promql_expr_test"] for each in test["exp_samples"]]
    assert {found for label in samples for found in re.findall(r'alertname="(\w+)"', label)} == alerts


@needs_promtool
def test_the_tests_of_the_rules_can_fail(tmp_path: Path) -> None:
    shutil.copy(RULES_TEST, tmp_path)
    for old, new in (("nearcast_journal_writable == 0", "nearcast_journal_writable == 2"), ("0.25", "0.0001")):
        text = RULES.read_text()
        assert old in text
        (tmp_path / RULES.name).write_text(text.replace(old, new))
        with pytest.raises(AssertionError):
            promtool("test", "rules", str(tmp_path / RULES_TEST.name))


def test_what_dashboard_alerts_and_documents_name_is_exported(brokers: list[FederatedBroker]) -> None:
    text = scraped(brokers[0])
    families, samples = {family.name for family in text_string_to_metric_families(text)}, exported(text)
    for path in (GRAFANA, RULES, RULES_TEST):
        named = names_in(path.read_text())
        assert named
        assert named <= samples, path.name
    for path in DOCUMENTS:
        named = {name.rstrip("_") for name in names_in(path.read_text())}
        known = samples | families
        assert {name for name in named if not any(each.startswith(name) for each in known)} == set(), path.name
    # And what is exported is told of: nobody finds a metric in the code alone.
    told = DOCUMENTS[0].read_text()
    own = {name for name in families if name.startswith("nearcast_")}
    missing = {name for name in own if name not in told and f"{name}_total" not in told}
    assert {name for name in missing if not name.startswith("nearcast_federation_")} == set()


def test_the_dashboard_can_be_read_and_asks_what_can_be_asked(tmp_path: Path) -> None:
    dashboard = json.loads(GRAFANA.read_text())
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = {
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    }
    assert len(taken) == sum(panel["gridPos"]["w"] * panel["gridPos"]["h"] for panel in panels)  # none above another
    assert all(0 <= x < 24 for x, _ in taken)
    asked = [target["expr"] for panel in panels for target in panel["targets"]]
    assert asked
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed; scripts/install-promtool does it")
    rules = [
        {"record": f"x:{number}", "expr": expression.replace("$__rate_interval", "5m").replace("$instance", ".*")}
        for number, expression in enumerate(asked)
    ]
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    promtool("check", "rules", str(file))


def test_no_label_is_anybodys_name_and_there_are_few_of_them(tmp_path: Path) -> None:
    async def story(server: Server) -> None:
        host, port = server.addresses["http"]
        async with httpx.AsyncClient(base_url=f"http://{host}:{port}") as client:
            before = (await client.get("/metrics")).text
            async with talking(server, "client-marker") as ada, talking(server, "source-marker") as source:
                await ada.subscribe("topic-marker/#", 1)
                for number in range(20):
                    await source.tell(f"topic-marker/{number}", b"payload-marker", [("nc-place", "49.87,8.65")])
                    await ada.heard()
                after = (await client.get("/metrics")).text
        assert "marker" not in after
        assert exported(before) == exported(after)
        assert before.count("\n") == after.count("\n")
        for family in text_string_to_metric_families(after):
            for sample in family.samples:
                assert set(sample.labels) <= {"le", "listener", "reason", "version"}, sample

    async def scenario() -> None:
        async with serving(tmp_path, listen={"http_port": "any"}) as server:
            await story(server)

    run(scenario())


def value(text: str, name: str, **labels: str) -> float:
    [found] = [
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and sample.labels == labels
    ]
    return float(found)


def test_what_is_measured_is_what_happened(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, listen={"http_port": "any"}) as server:
            host, port = server.addresses["http"]
            async with (
                httpx.AsyncClient(base_url=f"http://{host}:{port}") as client,
                talking(server, "a") as ada,
                talking(server, "b") as bob,
                talking(server, "c") as source,
            ):
                for each in (ada, bob):
                    await each.subscribe("news/#", 1)
                for number in range(5):
                    await source.tell("news/x", b"x", [("nc-place", "49.87,8.65")] if number % 2 else None)
                source.publish("news/y", b"x", [("nc-place", "49.87,8.65")])
                await until(lambda: server.broker.publishing.statistics().delivered == 12)
                await until(lambda: server.broker.statistics().loop_lag.count > 0, pause=0.05)
                text = (await client.get("/metrics")).text
        assert value(text, "nearcast_delivery_duration_seconds_count") == 12
        assert value(text, "nearcast_delivered_messages_total") == 12
        assert 0 < value(text, "nearcast_delivery_duration_seconds_sum") < 12 * 60
        assert value(text, "nearcast_match_duration_seconds_count") == value(text, "nearcast_matched_events_total") > 0
        assert value(text, "nearcast_journal_commit_duration_seconds_count") >= 1

    run(scenario())


def test_refusals_are_counted_by_listener_and_reason(tmp_path: Path) -> None:
    async def refused(server: Server, **parts: object) -> None:
        talker = await Talker.open(server)
        talker.send(ConnectPacket("x", **parts))  # type: ignore[arg-type]
        assert int((await talker.next(ConnAckPacket)).reason_code) >= 0x80
        await talker.closed()

    async def scenario() -> None:
        access = {"anonymous": "never"}
        async with showing(tmp_path, access=access) as server:
            host, port = server.addresses["http"]
            await refused(server)
            await refused(server, username="nobody", password=b"wrong")
            odd = await Talker.open(server)
            odd.send_bytes(b"GET / HTTP/1.1\r\n\r\n")
            await odd.closed()
            async with httpx.AsyncClient(base_url=f"http://{host}:{port}") as client:
                assert (await client.get("/status")).status_code == 401
                assert (await client.get("/metrics")).status_code == 401
                assert (await client.get("/dashboard/api/sessions")).status_code == 401
            counted = server.broker.statistics().refusals
            assert set(counted) == {"mqtt", "http"}
            assert counted["mqtt"] == dict.fromkeys(REASONS, 0) | {"credentials": 2, "protocol": 1}
            assert counted["http"] == dict.fromkeys(REASONS, 0) | {"credentials": 3}

    run(scenario())


@given(st.lists(st.tuples(st.floats(-1, 100), st.integers(0, 5)), max_size=30), st.sampled_from([FAST, SLOW]))
def test_a_histogram_is_how_many_were_not_longer(added: list[tuple[float, int]], bounds: tuple[float, ...]) -> None:
    durations = Durations(bounds)
    for seconds, count in added:
        durations.add(seconds, count)
    found = durations.statistics()
    each = [max(seconds, 0.0) for seconds, count in added for _ in range(count)]
    for place, bound in enumerate(bounds):
        assert sum(found.counts[: place + 1]) == sum(seconds <= bound for seconds in each)
    assert found.count == len(each)
    assert found.total == pytest.approx(sum(each))


def test_a_metric_is_read_while_much_is_published(tmp_path: Path) -> None:
    """Counters never fall."""

    async def scenario() -> None:
        async with serving(tmp_path, listen={"http_port": "any"}) as server:
            host, port = server.addresses["http"]
            async with talking(server, "a") as ada, httpx.AsyncClient(base_url=f"http://{host}:{port}") as client:

                async def publish() -> None:
                    for number in range(200):
                        await ada.tell(f"n/{number % 7}", b"x")

                busy = asyncio.create_task(publish())
                before = 0.0
                while not busy.done():
                    text = (await client.get("/metrics")).text
                    now = value(text, "nearcast_published_messages_total")
                    assert now >= before
                    before = now
                await busy

    run(scenario())
