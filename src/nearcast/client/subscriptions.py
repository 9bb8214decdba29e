"""The subscriptions of a client at its broker: begun, ended, and begun again where the broker has forgotten them."""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final

from mqtt5 import RetainHandling, SubscribePacket, TopicFilter, UnsubscribePacket

from nearcast.client.attributes import quality_of
from nearcast.client.events import Events
from nearcast.client.inbox import Inbox, Stream, checked
from nearcast.client.link import Link
from nearcast.client.presence import Presence, Statement, position_statement
from nearcast.client.refusals import subscription_refused
from nearcast.client.scheming import Scheming
from nearcast.errors import InvalidInput, InvalidSubscription, NearcastError
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.model.time import to_text as instant_text
from nearcast.mqtt import names
from nearcast.mqtt.names import ReservedTopic
from nearcast.mqtt.positions import PositionReport
from nearcast.mqtt.requests import SubscriptionRequest

_MOST_IDENTIFIERS: Final = 268_435_455
_OVERLAP: Final = 1 * MICROSECONDS
"""How far before the newest event a subscription is taken up again: events of several publishers do not come in the exact
order of their publication.  What comes twice is recognised."""


@dataclass(frozen=True, slots=True, eq=False)
class Subscriptions:
    """Those of one client; what they have received is in its inbox."""

    _link: Link
    _inbox: Inbox
    _schemes: Scheming
    _presence: Presence
    _say: Callable[[Statement], Awaitable[None]]
    _now: Callable[[], Instant]

    def events(self, stream: Stream) -> Events:
        """The subscription as an application reads it; it begins when that does."""
        return Events(stream, self._begin, self._finish, self._more, self._now)

    async def restore(self) -> None:
        """The broker has forgotten this client."""
        for stream in [stream for stream in self._inbox.streams.values() if stream.active]:
            if stream.request is not None:
                try:
                    await self._subscribe(stream, _from_where_it_was(stream, stream.request))
                except NearcastError as error:
                    stream.end(error)

    async def _begin(self, stream: Stream) -> None:
        if stream.request is not None:
            self._give_name(stream, stream.request)
        if stream.identifier in self._inbox.streams:
            raise InvalidSubscription("there is such a subscription already; give this one another `name`")
        self._inbox.add(stream)
        try:
            if stream.request is None:
                await self._say(self._presence.accept(True))
            else:
                if stream.is_relative and stream.check is not None:
                    self._schemes.interested(stream.check)
                    if self._schemes.active and stream.request.begins_in_the_past:
                        await self._tell_position()  # what is stored is judged by it, once, and by the broker
                await self._subscribe(stream, stream.request)
        except BaseException:
            self._drop(stream)
            raise
        stream.active = True

    async def _finish(self, stream: Stream) -> None:
        if self._inbox.streams.get(stream.identifier) is not stream:
            return
        by_schemes = self._schemes.active
        self._drop(stream)
        request = stream.request
        if self._link.is_over:
            return
        if by_schemes and not self._schemes.active:
            await self._tell_position()  # from now on nobody else does
        if request is None:
            await self._say(self._presence.accept(False))
            return

        def write(number: int) -> bytes:
            return UnsubscribePacket(number, [request.filter], user_properties=[(names.NAME, request.name)]).write()

        answer = await self._link.ask(write, f"the end of the subscription to {request.filter!r}")
        if answer.refused:
            raise subscription_refused(
                f"to end the subscription to {request.filter!r}", max(answer.reasons), answer.message
            )

    async def _tell_position(self) -> None:
        position = self._presence.track.newest
        if position is not None:
            await self._say(position_statement(PositionReport(position)))

    def _drop(self, stream: Stream) -> None:
        self._inbox.remove(stream)
        if stream.is_relative and stream.check is not None:
            self._schemes.uninterested(stream.check.id)

    async def _subscribe(self, stream: Stream, request: SubscriptionRequest) -> None:
        retained = RetainHandling.SEND_ALWAYS if stream.retained else RetainHandling.SEND_NEVER
        wanted = TopicFilter(
            request.filter,
            max_qos=quality_of(stream.qos),
            no_local=stream.check is not None and stream.check.no_local,
            retain_handling=retained,
        )
        properties = request.properties()

        def write(number: int) -> bytes:
            return SubscribePacket(
                number, [wanted], subscription_id=stream.identifier, user_properties=properties
            ).write()

        answer = await self._link.ask(write, f"the subscription to {request.filter!r}")
        if answer.refused:
            raise subscription_refused(f"the subscription to {request.filter!r}", max(answer.reasons), answer.message)

    async def _more(self, stream: Stream) -> bool:
        request = stream.request
        if request is None:
            return False
        topic = ReservedTopic.MORE.about(request.filter)
        try:
            await self._say(Statement(topic, request.name.encode(), f"more of {request.filter!r}"))
        except InvalidInput:
            return False  # nothing waits for it
        return True

    def _give_name(self, stream: Stream, request: SubscriptionRequest) -> None:
        """So that it can be told from others of the same filter: here, by the broker, and after this client was restarted."""
        request = replace(request, name=request.name or self._free_name(request.filter))
        stream.request, stream.identifier = request, self._identifier(request)
        stream.begun = self._now()
        stream.ends = request.subscription(stream.begun).frame.until
        if request.observation is not None:
            return  # the broker alone knows of the others: there is nothing to check here
        no_local = stream.check is not None and stream.check.no_local
        stream.check = checked(request, stream.begun, stream.qos, no_local=no_local)

    def _identifier(self, request: SubscriptionRequest) -> int:
        """The same in every process, so that a resumed session is understood."""
        number = zlib.crc32(request.id.encode()) % _MOST_IDENTIFIERS + 1
        while number in self._inbox.streams and _id(self._inbox.streams[number]) != request.id:
            number = number % _MOST_IDENTIFIERS + 1
        return number

    def _free_name(self, topic: str) -> str:
        used = {
            stream.request.name
            for stream in self._inbox.streams.values()
            if stream.request is not None and stream.request.filter == topic
        }
        number = 1
        while str(number) in used:
            number += 1
        return str(number)


def _from_where_it_was(stream: Stream, request: SubscriptionRequest) -> SubscriptionRequest:
    if not request.begins_in_the_past:
        return request
    resolved = request.resolved(stream.begun)
    return resolved if stream.newest is None else replace(resolved, since=instant_text(stream.newest - _OVERLAP))


def _id(stream: Stream) -> str | None:
    return None if stream.request is None else stream.request.id
