"""The Python client: publish and subscribe with place, context and time.

Everything that an application may do is a method of ``Client``; none of them waits for ever.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import quote

from mqtt5 import PublishPacket

from nearcast.client.address import address_in, tls_context
from nearcast.client.attributes import Place, attributes_of, moment_text, point_of, quality_of
from nearcast.client.events import Events
from nearcast.client.inbox import ADDRESSED, Inbox, InboxStatistics, Stream, StreamStatistics, checked
from nearcast.client.link import Link, LinkStatistics, Listener, Terms
from nearcast.client.notices import Notices
from nearcast.client.presence import Motion, Presence, Statement, position_statement
from nearcast.client.protocol import Delivered
from nearcast.client.publications import HERE, Here, Outgoing, made
from nearcast.client.refusals import publication_refused
from nearcast.client.scheming import Scheming
from nearcast.client.subscriptions import Subscriptions
from nearcast.client.tracing import publishing
from nearcast.errors import InvalidSubscription, NearcastError
from nearcast.model.area import Area, Circle
from nearcast.model.area_text import area_text
from nearcast.model.geometry import Point
from nearcast.model.predicate import Predicate
from nearcast.model.predicate_text import to_text as predicate_text
from nearcast.model.temporal import TemporalPredicate
from nearcast.model.time import MICROSECONDS, duration_text, instant
from nearcast.mqtt import names
from nearcast.mqtt.client_ids import generated
from nearcast.mqtt.names import ReservedTopic
from nearcast.mqtt.observations import Consent, consent_of
from nearcast.mqtt.positions import PositionReport
from nearcast.mqtt.requests import subscription_request
from nearcast.runtime.live.clock import LiveClock
from nearcast.runtime.ports import Clock

if TYPE_CHECKING:
    from nearcast.client.schemes import ClientSchemesStatistics

log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClientStatistics:
    """What a client has done, and what it waits for."""

    published: int
    subscriptions: int
    inbox: InboxStatistics
    link: LinkStatistics
    schemes: ClientSchemesStatistics | None
    """None if this client takes no part in them."""


class Client(Listener):
    """A connection to a broker, for as long as its ``async with`` block.

    It keeps itself connected: what was published and not acknowledged is sent again, and what was subscribed stays subscribed.
    """

    def __init__(self, terms: Terms, clock: Clock | None = None) -> None:
        self.client_id: Final = terms.client_id
        clock = clock or LiveClock()
        self._now: Final = clock.now
        self._presence: Final = Presence(self._now)
        self._link: Final = Link(terms, self)
        self._inbox: Final = Inbox(self._presence.own, self._now, self._link.acknowledge)
        self._schemes: Final = Scheming(terms.client_id, clock, self._link, self._inbox)
        self._subscriptions: Final = Subscriptions(
            self._link, self._inbox, self._schemes, self._presence, self._say, self._now
        )
        self._prefix: Final = secrets.token_hex(8)
        self._published = 0
        self._restoring: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        await self._schemes.start()
        if not await self._link.open():
            self._presence.own.begin(self._now(), self._presence.contexts)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Leave.  A session that nobody could resume ends with it; one with a client id of its own is kept by the broker."""
        for task in self._restoring:
            task.cancel()
        await self._link.close()
        self._schemes.stop()

    async def go_to(self, url: str) -> None:
        """Go to another broker of the same federation: what was subscribed stays subscribed, and what waits there follows."""
        here = self._link.address
        await self._link.go_to(address_in(url, here.user, here.password))

    def statistics(self) -> ClientStatistics:
        """How often it has connected, what is in flight, sent again, waiting and dropped."""
        return ClientStatistics(
            self._published,
            len(self._inbox.streams),
            self._inbox.statistics(),
            self._link.statistics(),
            self._schemes.statistics(),
        )

    def streams(self) -> list[StreamStatistics]:
        """What each subscription has had, in the order in which they began."""
        return [stream.statistics() for stream in self._inbox.streams.values()]

    @property
    def position(self) -> Point | None:
        """Where this client is, as it last said."""
        return self._presence.track.newest

    # Place and context

    async def update(
        self,
        *,
        lat: float | None = None,
        lon: float | None = None,
        speed: float | None = None,
        heading: float | None = None,
        fixed_at: str | datetime | None = None,
        accuracy: float | None = None,
        qos: int = 1,
        attributes: Mapping[str, object] | None = None,
        **named: object,
    ) -> None:
        """Say where this client is, and what its context is; attributes that are not named stay as they are, ``None`` takes one away.

        A text that begins with ``/`` is a ``Path``; in ``attributes`` everything is taken as it stands.  ``fixed_at`` says when it was
        there, if that was not now, and ``accuracy`` within how many metres.
        """
        now = self._now()
        time = None if fixed_at is None else instant(fixed_at)
        report = self._presence.move(now, Motion(lat, lon, speed, heading, time, accuracy))
        by_scheme = report is not None and self._schemes.moved(now, report)
        # Whoever is observed, or watches what is around it, must be known exactly.
        told = None if by_scheme and not self._is_exact else report
        plain = told is None or told.is_plain
        context = self._presence.context(named, attributes, told.point if told is not None and plain else None)
        if context is not None:
            await self._say(context, qos)
        if told is not None and (context is None or not plain):
            await self._say(position_statement(told), qos)
        if qos:
            await self._schemes.heard()

    async def forget_position(self) -> None:
        """From now on nobody knows where this client is; subscriptions around it get nothing until the next update."""
        self._presence.track.add(self._now(), None)
        await self._say(position_statement(None))

    async def register(self, name: str, *, attributes: Mapping[str, object] | None = None, **named: object) -> None:
        """Register a context beside the others, or replace the one of that name; constraints of senders hold within one context."""
        await self._say(self._presence.register(name, attributes_of(named, attributes)))

    async def deregister(self, name: str) -> None:
        """The context of that name is not valid any more."""
        await self._say(self._presence.deregister(name))

    async def accept_addressed(self, accept: bool = True) -> None:
        """Whether events that are addressed to a context of this client come without a subscription (read ``addressed``)."""
        await self._say(self._presence.accept(accept))

    async def observable(
        self, everybody: bool = False, *, users: Iterable[str] = (), clients: Iterable[str] = ()
    ) -> None:
        """Say who may observe this client (``presence``): everybody, these, or nobody any more."""
        consent = Consent(everybody=True) if everybody else consent_of(users, clients)
        began = self._presence.consent.is_empty and not consent.is_empty
        await self._say(self._presence.observable(consent))
        if began and self.position is not None and self._schemes.active:
            await self._say(position_statement(PositionReport(self.position)))

    def presence(
        self,
        kind: str = "+",
        *,
        within: Area | float,
        at: Place | None = None,
        around: str | None = None,
        who: str | None = None,
        where: str | Predicate | None = None,
        stay: str | timedelta | None = None,
        qos: int = 1,
        name: str | None = None,
        limit: int = 1000,
    ) -> Notices:
        """Be told of other clients that let this one know; read the result with ``async for``.

        ``kind`` is ``enter``, ``leave``, ``cross``, ``stay`` or ``near`` (``+``: all that fits).  ``within`` is the area that is watched,
        or metres around ``at``; without ``at``, those around this client or around the one that ``around`` names, to be told who comes near.
        """
        given = {
            names.AREA: _area_text(within, at),
            names.WHERE: predicate_text(where) if isinstance(where, Predicate) else where,
            names.STAY: _duration_text(stay),
            names.AROUND: around,
            names.NAME: name or None,
        }
        topic = f"{ReservedTopic.PRESENCE.topic}{kind}/{'+' if who is None else quote(who, safe='')}"
        request = subscription_request(topic, [(key, value) for key, value in given.items() if value is not None])
        return Notices(self._subscriptions.events(Stream(ADDRESSED, request, limit, qos, None, retained=False)))

    @property
    def _is_exact(self) -> bool:
        """Whether the broker is told exactly where this client is, whatever its filter scheme says."""
        watching = (
            stream.request is not None and stream.request.observation for stream in self._inbox.streams.values()
        )
        return not self._presence.consent.is_empty or any(watching)

    # Publishing

    async def publish(
        self,
        topic: str,
        payload: bytes | str = b"",
        *,
        place: Place | Here | None = HERE,
        reach: Area | float | None = None,
        to: str | Predicate | None = None,
        when: str | TemporalPredicate | None = None,
        tags: Iterable[str] = (),
        lifetime: str | float | timedelta | None = None,
        qos: int = 1,
        retain: bool = False,
        id: str | None = None,  # noqa: A002 - the word for it
        timeout: float | None = None,  # noqa: ASYNC109 - instead of the client's own
        attributes: Mapping[str, object] | None = None,
        **named: object,
    ) -> str:
        """Publish an event; its id is what ``unpublish`` takes.

        It happens where this client is, unless ``place`` says otherwise (``None``: nowhere).  ``reach`` is where it matters
        (a number: metres around this client), ``to`` whom it concerns, ``when`` at which time.  Everything else that is named
        is an attribute.  With quality of service 1 or 2 it is stored when this returns; an event that is published again under
        the same ``id`` is recognised by the broker.
        """
        given = Outgoing(topic, payload, place, to, when, tuple(tags), lifetime, attributes_of(named, attributes))
        at, channel = given.at(self.position), None
        if at is not None and isinstance(place, Here):
            channel, at = self._schemes.happening(at)
        event = made(given, id or self._next_id(), self._now(), at, self._presence.reach(topic, reach), channel)
        self._published += 1
        properties, over = publishing(topic, event.event.id, event.properties)

        def packet(number: int | None) -> PublishPacket:
            return PublishPacket(
                topic,
                event.event.payload,
                qos=quality_of(qos),
                retain=retain,
                packet_id=number,
                message_expiry_interval=event.expiry,
                user_properties=properties,
            )

        try:
            await self._publish(packet, qos, f"the event on {topic!r}", timeout)
        except BaseException as error:
            over(error)
            raise
        over(None)
        return event.event.id

    async def unpublish(self, event: str) -> None:
        """Take an event back: nobody gets it from now on."""
        await self._say(Statement(ReservedTopic.UNPUBLISH.topic, event.encode(), f"taking back the event {event!r}"))

    async def announce(self, topic: str, area: Area | float, at: Place | None = None) -> None:
        """STEAM's announcement: from now on what this client publishes on the topic reaches that area.

        ``at`` makes it stationary; otherwise it moves with this client.
        """
        await self._say(self._presence.announce(topic, area, None if at is None else point_of(at, "at")))

    async def unannounce(self, topic: str) -> None:
        """From now on my events on that topic have no reach unless they say one."""
        await self._say(self._presence.unannounce(topic))

    # Subscribing

    def subscribe(
        self,
        topic: str,
        *,
        within: Area | float | None = None,
        at: Place | None = None,
        where: str | Predicate | None = None,
        since: str | datetime | timedelta | None = None,
        until: str | datetime | timedelta | None = None,
        batch: int | None = None,
        qos: int = 1,
        no_local: bool = False,
        retained: bool = True,
        name: str | None = None,
        limit: int = 1000,
    ) -> Events:
        """Subscribe to a topic filter; read the result with ``async for``.

        ``within`` is an area, or metres around this client (or around ``at``); ``where`` a filter on the event; ``since`` and
        ``until`` the time frame, from now on if it does not begin in the past.  Stored events come first, ``batch`` of them at a
        time.  ``limit`` bounds the events of quality 0 that may wait to be read; others are held back at the broker.
        """
        given = {
            names.AREA: _area_text(within, at),
            names.WHERE: predicate_text(where) if isinstance(where, Predicate) else where,
            names.SINCE: moment_text(since),
            names.UNTIL: moment_text(until),
            names.BATCH: None if batch is None else str(batch),
            names.NAME: name or None,
        }
        request = subscription_request(topic, [(key, value) for key, value in given.items() if value is not None])
        check = checked(request, self._now(), qos, no_local=no_local)
        stream = Stream(ADDRESSED, request, limit, qos, check, retained)  # its identifier follows when it begins
        return self._subscriptions.events(stream)

    def addressed(self, limit: int = 1000) -> Events:
        """What is addressed to a context of this client, whatever its topic (Contextcast: the sender chooses); access rules hold."""
        return self._subscriptions.events(Stream(ADDRESSED, None, limit))

    # What happens on the link

    def delivered(self, delivery: Delivered) -> None:
        if delivery.packet.topic == ReservedTopic.SCHEME.topic:
            self._schemes.receive(delivery.packet.payload)
            if delivery.receipt is not None:
                self._link.acknowledge(delivery.receipt)
        else:
            self._inbox.deliver(delivery)

    def lost(self) -> None:
        self._schemes.disconnected()

    def resumed(self, *, session_present: bool) -> None:
        if not session_present:
            self._presence.own.begin(self._now(), self._presence.contexts)
            task = asyncio.create_task(self._restore())
            self._restoring.add(task)
            task.add_done_callback(self._restoring.discard)

    def ended(self, error: NearcastError | None) -> None:
        for stream in list(self._inbox.streams.values()):
            stream.end(error)

    async def _restore(self) -> None:
        """The broker has forgotten this client: tell it everything again."""
        statements = list(self._presence.everything())
        if self.position is not None and (self._is_exact or not self._schemes.active):
            statements.insert(0, position_statement(PositionReport(self.position)))
        if not self._presence.consent.is_empty:  # before anything that others are to be told of
            statements.insert(0, self._presence.observable(self._presence.consent))
        for statement in statements:
            try:
                await self._say(statement)
            except NearcastError as error:
                log.warning("after the session was lost: %s", error)
        await self._subscriptions.restore()

    # Sending

    async def _say(self, statement: Statement, qos: int = 1) -> None:
        """Publish to a topic that the broker keeps for itself."""

        def packet(number: int | None) -> PublishPacket:
            return PublishPacket(statement.topic, statement.payload, qos=quality_of(qos), packet_id=number)

        await self._publish(packet, qos, statement.what, None)

    async def _publish(
        self, packet: Callable[[int | None], PublishPacket], qos: int, what: str, patience: float | None
    ) -> None:
        answer = await self._link.publish(packet, qos, what, patience)
        if answer is not None and answer.refused:
            raise publication_refused(what, max(answer.reasons), answer.message)

    def _next_id(self) -> str:
        return f"{self._prefix}-{self._published:x}"


def connect(
    url: str = "mqtt://localhost",
    *,
    user: str | None = None,
    password: str | None = None,
    client_id: str | None = None,
    clean_start: bool = False,
    session_expiry: str | float | timedelta = 3600,
    keep_alive: int = 30,
    timeout: float = 30,
    tls: ssl.SSLContext | str | None = None,
    receive_maximum: int = 1000,
    max_in_flight: int = 256,
    schemes: bool = True,
    others: Iterable[str] = (),
) -> Client:
    """A client of the broker at ``mqtt://``, ``mqtts://``, ``ws://`` or ``wss://``; to be used with ``async with``.

    Without a ``client_id`` it gets one for its lifetime.  With one, the broker keeps its session for ``session_expiry`` after it
    has left, and whoever connects with that id goes on with it.  Every operation gives up after ``timeout`` seconds.  With
    ``schemes`` it tells the broker of its position only what the broker's filter scheme needs to know.  ``others`` are brokers of
    the same federation, to which it goes if this one is gone.
    """
    address = address_in(url, user, password)
    return Client(
        Terms(
            address,
            client_id or generated(),
            tls_context(address, tls),
            clean_start,
            _seconds(session_expiry),
            client_id is not None,
            keep_alive,
            timeout,
            receive_maximum,
            max_in_flight,
            properties=((names.SCHEMES, "1"),) if schemes else (),
            others=tuple(address_in(other, address.user, address.password) for other in others),
        )
    )


def _area_text(within: Area | float | None, at: Place | None) -> str | None:
    if within is None:
        if at is not None:
            raise InvalidSubscription(
                "`at` says where the area lies, but `within` names none; give metres, such as within=500"
            )
        return None
    area = within if isinstance(within, Area) else Circle(within)
    return area_text(area if at is None else area.anchored(point_of(at, "at")))


def _duration_text(length: str | timedelta | None) -> str | None:
    return duration_text(length // timedelta(microseconds=1)) if isinstance(length, timedelta) else length


def _seconds(expiry: str | float | timedelta) -> int:
    from nearcast.client.attributes import lifetime_of

    if expiry == 0:
        return 0
    microseconds = lifetime_of(expiry)
    assert microseconds is not None
    return min(-(-microseconds // MICROSECONDS), 0xFFFF_FFFF)
