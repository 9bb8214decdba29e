"""Publish, query, take back."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Annotated, Any

import msgspec
from litestar import Controller, Request, Response, get, post
from litestar.di import NamedDependency
from litestar.params import QueryParameter

from nearcast.broker.access.limits import work_of
from nearcast.broker.access.people import Meter
from nearcast.broker.core import Broker
from nearcast.broker.http.authentication import CLIENT, principal_of
from nearcast.broker.http.description import PLACE
from nearcast.broker.http.formats import (
    CLOUD_EVENT,
    CLOUD_EVENTS,
    GEOJSON,
    Posted,
    cloud_event,
    cloud_event_in,
    feature,
    feature_in,
)
from nearcast.broker.http.scans import Scans
from nearcast.broker.on_disk import decision
from nearcast.broker.publishing.entries import event_in
from nearcast.broker.publishing.message import Message
from nearcast.broker.tracing.tracer import Trace
from nearcast.errors import InvalidEvent, JournalFailed, QuotaExceeded
from nearcast.journal.entries import EventEntry
from nearcast.journal.identities import BETWEEN
from nearcast.model.acceptance import accepted
from nearcast.model.area import Circle
from nearcast.model.delivery import in_area, within_reach
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.model.time import Instant
from nearcast.mqtt import names
from nearcast.mqtt.positions import point_in
from nearcast.mqtt.publication import delivery_properties
from nearcast.mqtt.requests import subscription_request
from nearcast.mqtt.trace_context import TRACEPARENT, TRACESTATE, Properties, trace_context

MOST_EVENTS = 10_000
MOST_BYTES = 64 * 1024 * 1024
"""Of payloads in one answer; the oldest are left out first."""


class Published(msgspec.Struct, frozen=True):
    ids: list[str]


class Events(Controller):
    """Events."""

    path = "/events"
    tags = ["events"]  # noqa: RUF012 - as the framework reads it

    @post("/", status_code=201, summary="Publish")
    async def publish(self, request: Request[Any, Any, Any], broker: NamedDependency[Broker]) -> Published:
        """Publish one event or several: a CloudEvent, a batch of them, a GeoJSON Feature or a FeatureCollection.

        Answered when all of them are on disk.
        """
        principal = await principal_of(broker.access, request)
        posted = _posted(await request.body(), request.headers.get("content-type", ""))
        now = broker.clock.now()
        # Under an identity of its own: what a user posts can be found, and erased, with the user.
        poster = None if principal.user is None else broker.identities.of(f"{principal.user}{BETWEEN}{CLIENT}")
        checked = []
        header = [(name, request.headers[name]) for name in (TRACEPARENT, TRACESTATE) if name in request.headers]
        for posted_event in posted:
            each, trace = _traced(broker, posted_event, header)
            broker.services.quotas.check_properties(each.properties)
            broker.services.quotas.check_topic(each.publication.topic)
            names.check_unreserved(each.publication.topic)
            event = each.publication.event(broker.publishing.next_id(), now, None, None)
            principal.check_event(event)
            message = Message(
                event.topic,
                event.payload,
                1,
                content_type=each.content_type,
                expires=None if event.lifetime is None else now + event.lifetime,
                properties=each.properties,
                near_properties=tuple(delivery_properties(event)),
                event=event.id,
                trace=trace,
                publisher=poster,
            )
            checked.append((event, message, broker.publishing.meter(principal, event)))
        # All are checked before the first goes out: nothing half-done.
        size = sum(
            len(event.payload) + work_of(each.properties) for (event, _, _), each in zip(checked, posted, strict=True)
        )
        broker.services.callers.check_publish(principal.user, principal.peer.address, len(checked), size, now)
        sender = broker.identity_of(principal.user, CLIENT)
        if any(meter is not None for _, _, meter in checked):
            await _one_by_one(broker, checked, sender)
        else:
            await asyncio.gather(*(_on_disk(broker, event, message, None, sender) for event, message, _ in checked))
        return Published([event.id for event, _, _ in checked])

    @get("/", summary="Query what is stored")
    async def query(
        self,
        request: Request[Any, Any, Any],
        broker: NamedDependency[Broker],
        scans: NamedDependency[Scans],
        topic: Annotated[
            str, QueryParameter(description="MQTT topic filter.", format="mqtt-topic-filter", min_length=1)
        ] = "#",
        where: Annotated[
            str | None, QueryParameter(description="CQL2 over attributes and tags.", format="cql2-text")
        ] = None,
        since: Annotated[
            str | None, QueryParameter(description="As in -2h, or RFC 3339.", format="nearcast-time")
        ] = None,
        until: Annotated[str | None, QueryParameter(description="As since.", format="nearcast-time")] = None,
        at: Annotated[
            str | None, QueryParameter(description="lat,lon: where the asking one is.", pattern=PLACE)
        ] = None,
        within: Annotated[
            float | None, QueryParameter(description="Metres around `at`, which is needed then.", ge=0, le=20_000_000)
        ] = None,
        limit: Annotated[int, QueryParameter(ge=1, le=MOST_EVENTS)] = 1_000,
    ) -> Response[Any]:
        """The newest events that a subscription of these words would have got, oldest first.

        GeoJSON, or CloudEvents if that is what is accepted.
        """
        principal = await principal_of(broker.access, request)
        now = broker.clock.now()
        properties = [(names.SINCE, since or "..")]
        properties += [(name, value) for name, value in ((names.WHERE, where), (names.UNTIL, until)) if value]
        subscription = subscription_request(topic, properties).subscription(now)
        place = None if at is None else point_in(at)
        if within is not None:
            if place is None:
                raise InvalidEvent("within needs to know around what; add at=lat,lon")
            frame, where_in = subscription.frame, subscription.where
            subscription = Subscription(subscription.topic, where_in, Circle(within, place), frame, subscription.id)
        principal.check_query(subscription, now)
        async with scans.turn():
            found = await asyncio.to_thread(_find, broker, subscription, place, limit, now)
        if "cloudevents" in request.headers.get("accept", ""):
            return Response([cloud_event(entry) for entry in found], media_type=CLOUD_EVENTS)
        collection = {"type": "FeatureCollection", "features": [feature(entry) for entry in found]}
        return Response(collection, media_type=GEOJSON)


def _traced(broker: Broker, posted: Posted, header: Properties) -> tuple[Posted, Trace | None]:
    """A trace is continued by what the event itself says (CloudEvents' extension for it), or else by the request's header."""
    said = [(name, str(value)) for name, value in posted.publication.attributes.items()]
    context = trace_context(said) or trace_context(header)
    given = [] if context is None else context.properties()
    trace = None if broker.tracer is None else broker.tracer.begin(given, "http")
    if trace is not None:
        context = trace.context
    return (posted if context is None else posted.in_trace(context)), trace


def _posted(body: bytes, content_type: str) -> list[Posted]:
    kind = content_type.partition(";")[0].strip().lower()
    try:
        tree = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise InvalidEvent(f"the body is no JSON: {error}") from None
    if isinstance(tree, list) and kind in {CLOUD_EVENTS, "application/json"}:
        return [cloud_event_in(_object(each)) for each in tree]
    tree = _object(tree)
    if kind == CLOUD_EVENT or (kind == "application/json" and "specversion" in tree):
        return [cloud_event_in(tree)]
    if kind in {GEOJSON, "application/json"}:
        if tree.get("type") == "FeatureCollection":
            features = tree.get("features")
            if not isinstance(features, list):
                raise InvalidEvent("the features of a FeatureCollection are a list")
            return [feature_in(_object(each)) for each in features]
        return [feature_in(tree)]
    raise InvalidEvent(f"send {CLOUD_EVENT}, {CLOUD_EVENTS} or {GEOJSON}, not {content_type or 'nothing'}")


def _object(tree: Any) -> dict[str, Any]:
    if not isinstance(tree, dict):
        raise InvalidEvent(f"an event is a JSON object, not {tree!r:.40}")
    return tree


async def _one_by_one(broker: Broker, events: list[tuple[Event, Message, Meter | None]], sender: str | None) -> None:
    """Of a sender with a quota of people: how many get one is known when its turn comes."""
    for done, (event, message, meter) in enumerate(events):
        try:
            await _on_disk(broker, event, message, meter, sender)
        except QuotaExceeded as error:
            if len(events) == 1:
                raise
            raise QuotaExceeded(f"{error}; of {len(events)} events the first {done} were published") from None


async def _on_disk(broker: Broker, event: Event, message: Message, meter: Meter | None, sender: str | None) -> None:
    decided, then = decision()

    def acknowledge(code: Any, why: str | None) -> None:
        then(JournalFailed(why or "not written") if int(code) >= 0x80 else None)

    broker.publishing.event(event, message, None, acknowledge, archived=True, meter=meter, sender=sender)
    await decided


def _find(
    broker: Broker, subscription: Subscription, place: Point | None, limit: int, now: Instant
) -> list[EventEntry]:
    """In a worker thread."""
    frame, journal = subscription.frame, broker.journal
    unpublished = broker.temporal.unpublishing.offsets
    found: deque[EventEntry] = deque()
    size = 0
    for chunk in journal.read(journal.oldest, since=frame.since, until=frame.until, kinds=(EventEntry,)):
        for offset, entry in chunk:
            if (
                isinstance(entry, EventEntry)
                and offset not in unpublished
                and _answers(entry, subscription, place, now)
            ):
                found.append(entry)
                size += len(entry.payload)
                while len(found) > limit or size > MOST_BYTES:
                    size -= len(found.popleft().payload)
    return list(found)


def _answers(entry: EventEntry, subscription: Subscription, place: Point | None, now: Instant) -> bool:
    """What is meant for certain people, or for a place where the asking one is not, is not shown."""
    if entry.to is not None or entry.when is not None:
        return False
    if entry.lifetime is not None and entry.published + entry.lifetime <= now:
        return False
    event = event_in(entry)
    return (
        accepted(subscription, event, "")
        and in_area(subscription.area, event.place, place)
        and within_reach(event.reach, place)
    )
