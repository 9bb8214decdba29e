"""The client's part in filter schemes (``schemes``), between the application, the link and the inbox."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from mqtt5 import PublishPacket, QoS

from nearcast.client.inbox import Inbox
from nearcast.client.link import Link
from nearcast.errors import InvalidInput, TimedOut
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.model.time import Instant
from nearcast.mqtt.names import SCHEMES, ReservedTopic
from nearcast.mqtt.positions import PositionReport
from nearcast.runtime.live.timers import LiveTimers
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Clock, Fix

if TYPE_CHECKING:
    from nearcast.client.schemes import ClientSchemes, ClientSchemesStatistics

log: Final = logging.getLogger(__name__)


class Scheming:
    """Nothing happens here until the broker says that it runs schemes, and how the ground is divided."""

    def __init__(self, name: str, clock: Clock, link: Link, inbox: Inbox) -> None:
        self._name: Final = name
        self._clock: Final = clock
        self._link: Final = link
        self._inbox: Final = inbox
        self._wished: Final = any(key == SCHEMES for key, _ in link.terms.properties)
        self._observers: Final = Observers()
        self._timers: LiveTimers | None = None
        self._schemes: ClientSchemes | None = None
        self._sent: set[asyncio.Future[None]] = set()

    async def start(self) -> None:
        """On the running loop, before it is connected: the first words of the broker are about schemes."""
        if self._wished:
            # It takes a second (numba), once in a process; what else runs on the loop is not to wait for it.
            await asyncio.to_thread(import_module, "nearcast.client.schemes")
            from nearcast.client.schemes import ClientSchemes

            self._timers = LiveTimers(self._clock, _guarded, self._observers)
            self._schemes = ClientSchemes(self._name, self._clock, self._timers, self._send, observers=self._observers)

    def stop(self) -> None:
        if self._timers is not None:
            self._timers.end()

    def statistics(self) -> ClientSchemesStatistics | None:
        return None if self._schemes is None else self._schemes.statistics()

    @property
    def active(self) -> bool:
        """Whether the broker learns of this client's position through a scheme: because a subscription lies around it."""
        return (
            self._schemes is not None
            and self._schemes.ready
            and any(stream.is_relative and stream.active for stream in self._inbox.streams.values())
        )

    # The application's side

    def moved(self, now: Instant, report: PositionReport) -> bool:
        """Whether the scheme takes care of telling the broker."""
        if self._schemes is None:
            return False
        self._schemes.moved(Fix(now, report.point, 0.0, report.speed or 0.0, report.heading))
        return self.active

    def interested(self, subscription: Subscription) -> None:
        if self._schemes is not None:
            self._schemes.interested(subscription)
            self._judge()

    def uninterested(self, subscription_id: str) -> None:
        if self._schemes is not None:
            self._schemes.uninterested(subscription_id)

    def happening(self, place: Point) -> tuple[str | None, Point]:
        """Channel and place of an event that happens where this client is."""
        if self._schemes is None:
            return None, place
        happening = self._schemes.channel_for(place)
        return happening.channel, happening.place

    async def heard(self) -> None:
        """Wait until the broker has what was said so far."""
        if self._sent:
            patience = self._link.terms.timeout
            _, unheard = await asyncio.wait(self._sent, timeout=patience)
            if unheard:
                raise TimedOut(
                    f"the broker did not take the position within {patience:g} s; it will learn of the next one"
                )

    # The broker's side

    def receive(self, payload: bytes) -> None:
        if self._schemes is None:
            return
        try:
            self._schemes.receive(payload)
        except InvalidInput as error:
            log.warning("the broker's filter scheme says what this client does not understand: %s", error)
        self._judge()

    def disconnected(self) -> None:
        if self._schemes is not None:
            self._schemes.disconnected()

    def _judge(self) -> None:
        """Whoever is served by a scheme gets more than was asked for: it needs the last check."""
        ready = self._schemes is not None and self._schemes.ready
        for stream in self._inbox.streams.values():
            stream.by_scheme = ready and stream.is_relative
            self._inbox.own.vague = self._inbox.own.vague or stream.by_scheme

    def _send(self, payload: bytes) -> None:
        def packet(number: int | None) -> PublishPacket:
            return PublishPacket(ReservedTopic.SCHEME.topic, payload, qos=QoS.AT_LEAST_ONCE, packet_id=number)

        sent = self._link.post(packet)
        self._sent.add(sent)
        sent.add_done_callback(self._sent.discard)


def _guarded(callback: Callable[..., None], *arguments: Any) -> None:
    try:
        callback(*arguments)
    except Exception:
        log.exception("the filter scheme of this client has failed")
