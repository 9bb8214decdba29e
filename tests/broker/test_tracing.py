"""Traces from the publisher through the broker to the receivers: real brokers, real clients, a real OTLP receiver."""

from __future__ import annotations

import asyncio
import queue
import sys
import time
from pathlib import Path

import httpx
import pytest
from mqtt5 import PubAckPacket, PublishPacket
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from tests.broker.collector import Collector, collecting
from tests.broker.federation.brokers import federation
from tests.broker.talker import run, serving, settings_for, talking
from tests.child import run_python
from tests.served import served
from tests.waiting import PATIENCE, until, wait_until

from nearcast.broker.server import Server
from nearcast.broker.tracing.exporting import provider_for
from nearcast.broker.tracing.settings import TracingSettings
from nearcast.broker.tracing.tracer import MOST_RECEIVERS, Tracer
from nearcast.errors import InvalidSettings
from nearcast.mqtt.trace_context import trace_context

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"

APPLICATION = """
import asyncio, sys
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
import nearcast

provider = TracerProvider(resource=Resource.create({{"service.name": "application"}}))
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter("{endpoint}")))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("application")

async def main():
    async with nearcast.connect("{url}", client_id="receiver-of-secrets") as me:
        async with me.subscribe("traffic/#", within=500) as events:
            await me.update(lat=49.87281, lon=8.65123, role="plumber-role")
            with tracer.start_as_current_span("work"):
                await me.publish("traffic/jam", b"payload-marker", place=nearcast.Point(49.87281, 8.65123), mood="attribute-marker")
            event = await events.next(30.0)
            with nearcast.traced(event), tracer.start_as_current_span("react"):
                await me.publish("reaction", b"payload-marker")
    provider.shutdown()

asyncio.run(main())
"""


def settings(collector: Collector, **changes: object) -> str:
    words = {"endpoint": collector.endpoint, "sample": 0.0, **changes}
    return "[tracing]\n" + "\n".join(
        f"{key} = {str(value).lower() if isinstance(value, bool) else repr(value)}" for key, value in words.items()
    )


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spans leave soon, so that nobody waits for the five seconds that are the SDK's habit."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")


def test_one_trace_from_the_publisher_through_the_broker_to_two_receivers(tmp_path: Path) -> None:
    with collecting() as collector, served(tmp_path, settings(collector)) as broker:
        heard: queue.Queue[dict[str, str]] = queue.Queue()
        plain = Client(CallbackAPIVersion.VERSION2, "name-of-paho", protocol=MQTTProtocolVersion.MQTTv5)
        plain.on_message = lambda _client, _data, message: heard.put(
            dict(getattr(message.properties, "UserProperty", ()))
        )
        subscribed: queue.Queue[None] = queue.Queue()
        plain.on_subscribe = lambda *_: subscribed.put(None)
        plain.connect("127.0.0.1", broker.port)
        plain.loop_start()
        plain.subscribe("traffic/#", qos=1)
        subscribed.get(timeout=PATIENCE)
        before = time.time_ns()
        run_python("-c", APPLICATION.format(endpoint=collector.endpoint, url=broker.url))
        properties = heard.get(timeout=PATIENCE)
        plain.disconnect()
        plain.loop_stop()
        wait_until(lambda: sum(span.name == "acknowledge" for span in collector.spans) >= 2)
        spans = collector.wait("work", "react", "publish", "receive", "match", "journal", "deliver", "acknowledge")
        after = time.time_ns()

    work = collector.one("work")
    assert {span.trace for span in spans} == {work.trace}  # the reaction is part of it
    [publish, again] = sorted((span for span in spans if span.name == "publish"), key=lambda span: span.start)
    [received] = [
        span for span in spans if span.name == "receive" and span.service == "nearcast" and span.parent == publish.id
    ]
    [reacted] = [
        span for span in spans if span.name == "receive" and span.service == "nearcast" and span.parent == again.id
    ]
    taken = collector.one("receive", "application")
    react = collector.one("react")
    assert publish.parent == work.id
    # Both receivers, the one that traces and the one that knows nothing of it, are told the broker's span.
    assert taken.parent == received.id
    context = trace_context(properties.items())
    assert context is not None
    assert (f"{context.trace:032x}", f"{context.span:016x}", context.sampled) == (work.trace, received.id, True)
    assert (react.parent, again.parent) == (taken.id, react.id)
    inside = {span.name: span for span in spans if span.parent == received.id and span.service == "nearcast"}
    assert set(inside) == {"match", "journal", "deliver"}
    acknowledged = [span for span in spans if span.name == "acknowledge" and span.parent == inside["deliver"].id]
    assert len(acknowledged) == 2
    assert inside["match"].values["nearcast.receivers"] == inside["deliver"].values["nearcast.receivers"] == 2
    assert reacted.values["nearcast.quality"] == 1
    # In their order, and inside of what they are a part of.
    for span in spans:
        assert before <= span.start <= span.end <= after
    assert inside["match"].end <= inside["journal"].start
    assert inside["journal"].end <= inside["deliver"].start
    for span in inside.values():
        assert received.start <= span.start <= span.end <= received.end
    slack = 2_000_000  # of two processes on one machine
    assert publish.start - slack <= received.start
    assert received.end <= publish.end + slack
    assert inside["deliver"].start - slack <= taken.start
    # How long, how many: never who, where or what.
    for secret in (
        "payload-marker",
        "attribute-marker",
        "plumber-role",
        "receiver-of-secrets",
        "name-of-paho",
        "49.87",
        "8.65",
    ):
        assert secret.encode() not in collector.raw, secret
    own = {key for span in spans if span.service == "nearcast" for key in span.values}
    assert "messaging.destination.name" not in own


@pytest.mark.parametrize(
    "given",
    [
        [("traceparent", "")],
        [("traceparent", "nonsense")],
        [("traceparent", f"ff-{TRACE}-{SPAN}-01")],
        [("traceparent", f"00-{'0' * 32}-{SPAN}-01")],
        [("traceparent", f"00-{TRACE}-{'0' * 16}-01")],
        [("traceparent", PARENT.upper())],
        [("traceparent", PARENT + "-more")],
        [("traceparent", PARENT), ("traceparent", PARENT)],
        [("traceparent", f"00-{TRACE}-{SPAN}-00")],  # whole, and not recorded by who began it
        [("tracestate", "a=b")],
    ],
)
def test_a_context_that_cannot_be_is_passed_on_and_otherwise_ignored(
    tmp_path: Path, given: list[tuple[str, str]]
) -> None:
    async def story(server: Server) -> None:
        async with talking(server, "ada") as ada, talking(server, "src") as source:
            await ada.subscribe("#", 1)
            await source.tell("news", b"x", given)
            packet = await ada.heard()
            assert packet.user_properties == given
            assert server.broker.tracer is not None
            assert server.broker.tracer.statistics().traced == 0

    with_tracing(tmp_path, story)


def with_tracing(folder: Path, story: object, **changes: object) -> Collector:
    with collecting() as collector:

        async def scenario() -> None:
            tracing = {"endpoint": collector.endpoint, "sample": 0.0, **changes}
            async with serving(folder, listen={"http_port": "any"}, tracing=tracing) as server:
                await story(server)  # type: ignore[operator]

        run(scenario())
        return collector


def test_a_long_or_odd_state_does_not_end_the_trace(tmp_path: Path) -> None:
    async def story(server: Server) -> None:
        async with talking(server, "ada") as ada, talking(server, "src") as source:
            await ada.subscribe("#", 1)
            for state, kept in (
                ("a=1,b=2", "a=1,b=2"),
                ("a=1 ,\t b=2", "a=1,b=2"),
                ("=", None),
                ("a=1,a=2", None),
                ("x" * 600, None),
                ("a=ü", None),
                (",".join(f"k{n}=v" for n in range(33)), None),
            ):
                await source.tell("news", b"x", [("traceparent", PARENT), ("tracestate", state)])
                told = dict((await ada.heard()).user_properties)
                assert told["traceparent"].startswith(f"00-{TRACE}-")
                assert told["traceparent"] != PARENT
                assert told.get("tracestate") == kept, state

    with_tracing(tmp_path, story)


def test_what_waits_for_somebody_who_is_away_is_seen_waiting(tmp_path: Path) -> None:
    async def story(server: Server) -> None:
        async with talking(server, "src") as source:
            async with talking(server, "ada", clean_start=False, session_expiry_interval=1_000) as ada:
                await ada.subscribe("#", 1)
            await until(lambda: server.broker.sessions.all["ada"].connection is None)
            await source.tell("news", b"x", [("traceparent", PARENT)])
            sent = time.time_ns()
            async with talking(server, "ada", clean_start=False, session_expiry_interval=1_000) as ada:
                packet = await ada.heard()
                assert packet.payload == b"x"
                ada.send(PubAckPacket(packet.packet_id or 0))
                await until(lambda: not server.broker.sessions.all["ada"].in_flight)
            collected.append(sent)

    collected: list[int] = []
    collector = with_tracing(tmp_path, story)
    waited, acknowledged = collector.one("queue"), collector.one("acknowledge")
    assert waited.parent == acknowledged.id
    assert acknowledged.start <= waited.start <= collected[0] <= waited.end <= acknowledged.end


def test_by_http_the_header_or_the_event_itself_says_it(tmp_path: Path) -> None:
    async def story(server: Server) -> None:
        host, port = server.addresses["http"]
        async with talking(server, "ada") as ada, httpx.AsyncClient(base_url=f"http://{host}:{port}") as client:
            await ada.subscribe("#", 1)
            event = {"specversion": "1.0", "id": "h-1", "source": "/s", "type": "t", "subject": "news", "data": "x"}
            for number, (body, headers, trace) in enumerate(
                (
                    (event, {"traceparent": PARENT, "tracestate": "a=1"}, TRACE),
                    (
                        event | {"traceparent": PARENT.replace("4bf9", "aaaa")},
                        {"traceparent": PARENT},
                        TRACE.replace("4bf9", "aaaa"),
                    ),
                    (event, {"traceparent": "broken"}, None),
                    (event, {}, None),
                )
            ):
                answer = await client.post("/events", json=body | {"id": f"h-{number}"}, headers=headers)
                assert answer.status_code == 201, answer.text
                told = dict((await ada.heard()).user_properties)
                if trace is None:
                    assert "traceparent" not in told
                else:
                    assert told["traceparent"].split("-")[1] == trace
                    assert told["traceparent"] != PARENT

    collector = with_tracing(tmp_path, story)
    assert {span.values["nearcast.source"] for span in collector.spans if span.name == "receive"} == {"http"}
    assert sum(span.name == "receive" for span in collector.spans) == 2


def test_without_tracing_what_publishers_say_is_passed_on_as_it_is_and_nothing_is_loaded(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path, listen={"http_port": "any"}) as server:
            host, port = server.addresses["http"]
            assert server.broker.tracer is None
            async with talking(server, "ada") as ada, talking(server, "src") as source, httpx.AsyncClient() as client:
                await ada.subscribe("#", 1)
                await source.tell("news", b"x", [("traceparent", PARENT)])
                assert (await ada.heard()).user_properties == [("traceparent", PARENT)]
                event = {"specversion": "1.0", "id": "h-1", "source": "/s", "type": "t", "subject": "news"}
                await client.post(f"http://{host}:{port}/events", json=event, headers={"traceparent": PARENT})
                assert dict((await ada.heard()).user_properties)["traceparent"] == PARENT

    run(story())
    program = "import sys; from nearcast.broker import core, server; from nearcast.broker.http import app; print([name for name in sys.modules if name.startswith('opentelemetry')])"
    assert run_python("-c", program).strip() == "[]"


def test_another_broker_of_the_federation_goes_on_with_it(tmp_path: Path) -> None:
    async def story(here: object, there: object) -> None:
        async with talking(there, "ada") as ada, talking(here, "src") as source:  # type: ignore[arg-type]
            await ada.subscribe("news", 1)
            while True:  # until the interest has got around
                ack = await source.tell("news", b"x", [("traceparent", PARENT)])
                if ack is None or int(ack.reason_code) == 0:
                    break
                await asyncio.sleep(0.02)
            told.append(dict((await ada.heard()).user_properties)["traceparent"])

    told: list[str] = []
    with collecting() as collector, federation(tmp_path, 2, settings(collector)) as brokers:
        run(story(*brokers))
        wait_until(lambda: any(span.values.get("nearcast.source") == "federation" for span in collector.spans))
        there = next(span for span in collector.spans if span.values.get("nearcast.source") == "federation")
        wait_until(lambda: any(span.id == there.parent for span in collector.spans))
    here = next(span for span in collector.spans if span.id == there.parent)
    assert (here.name, here.parent, here.trace) == ("receive", SPAN, TRACE)
    assert told == [f"00-{TRACE}-{there.id}-01"]


def test_refusals_are_told_by_their_kind_alone(tmp_path: Path) -> None:
    async def story(server: Server) -> None:
        async with talking(server, "src") as source:
            await source.tell("news", b"x", [("traceparent", PARENT), ("nc-place", "secret-place")])

    collector = with_tracing(tmp_path, story)
    received = collector.one("receive")
    assert (received.failed, received.values["error.type"]) == (True, "InvalidPosition")
    assert b"secret-place" not in collector.raw


def test_a_collector_that_is_away_holds_up_nobody(tmp_path: Path) -> None:
    async def story() -> None:
        tracing = {"endpoint": "http://127.0.0.1:9/v1/traces", "sample": 1.0, "most_per_second": 1e6}
        async with serving(tmp_path, tracing=tracing) as server:
            async with talking(server, "ada") as ada, talking(server, "src") as source:
                await ada.subscribe("#", 0)
                for number in range(300):
                    source.send(PublishPacket("news", str(number).encode()))
                assert [(await ada.heard()).payload for _ in range(300)] == [str(n).encode() for n in range(300)]
            assert server.broker.tracer is not None
            assert server.broker.tracer.statistics().traced == 300

    run(story())


def test_share_rate_and_trust_are_as_set() -> None:
    def traced(count: int, context: str | None, seconds: float = 10.0, **changes: object) -> int:
        now = 0

        def clock() -> int:
            nonlocal now
            now += round(seconds * 1e6 / count)
            return now

        settings = TracingSettings(endpoint="http://127.0.0.1:9/", **changes)  # type: ignore[arg-type]
        tracer = Tracer(settings, clock, provider)
        for _ in range(count):
            trace = tracer.begin([] if context is None else [("traceparent", context)], "mqtt")
            if trace is not None:
                trace.end()
        return tracer.statistics().traced

    from opentelemetry.sdk.trace import TracerProvider

    provider = TracerProvider(shutdown_on_exit=False)
    unlimited = {"most_per_second": 1e9}
    assert traced(1_000, None, sample=0.0, **unlimited) == 0
    assert traced(1_000, None, sample=1.0, **unlimited) == 1_000
    assert 60 < traced(1_000, None, sample=0.1, **unlimited) < 150
    assert traced(1_000, PARENT, sample=0.0, **unlimited) == 1_000
    assert traced(1_000, PARENT, sample=0.0, follow=False, **unlimited) == 0
    assert traced(1_000, PARENT[:-1] + "0", sample=1.0, **unlimited) == 0
    assert traced(1_000, PARENT[:-1] + "0", sample=1.0, follow=False, **unlimited) == 1_000
    assert 40 <= traced(1_000, PARENT, most_per_second=5) <= 60  # whoever asks for it


def test_of_very_many_receivers_some_are_followed(tmp_path: Path) -> None:
    async def story(server: Server) -> None:
        async with talking(server, "src") as source:
            from contextlib import AsyncExitStack

            async with AsyncExitStack() as stack:
                for number in range(MOST_RECEIVERS + 4):
                    talker = await stack.enter_async_context(talking(server, f"r-{number}"))
                    await talker.subscribe("#", 1)
                await source.tell("news", b"x", [("traceparent", PARENT)])
                await until(lambda: server.broker.publishing.statistics().delivered == MOST_RECEIVERS + 4)

    collector = with_tracing(tmp_path, story)
    assert collector.one("deliver").values["nearcast.receivers"] == MOST_RECEIVERS + 4
    assert sum(span.name == "acknowledge" for span in collector.spans) <= MOST_RECEIVERS


@pytest.mark.parametrize(
    "wrong", [{"endpoint": "ftp://x/"}, {"endpoint": "http://user:word@host/"}, {"endpoint": "nowhere"}]
)
def test_wrong_settings_are_refused_without_repeating_a_password(wrong: dict[str, str]) -> None:
    with pytest.raises(InvalidSettings) as error:
        TracingSettings(**wrong)  # type: ignore[arg-type]
    assert "word" not in str(error.value).replace("password", "")


def test_who_wants_traces_and_has_not_installed_it_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nearcast.errors import SetupError

    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(SetupError, match=r"nearcast\[tracing\]"):
        provider_for(settings_for(tmp_path, tracing={"endpoint": "http://127.0.0.1:9/"}).tracing)
