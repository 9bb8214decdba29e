"""What all schemes with channels share: the world is cut into channels, and filtering is looking one up (BYPASS.KOM 4.2.4).

Of the two ways that the document names, subscriptions are copied into each channel of their client (average O(1) for an event)
rather than resolved when an event comes: events far outnumber assignments.  A copy is the subscription under a topic that
begins with the number of its channel, so that the matcher's topic index is the channels' hash table.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from typing import Final, Literal, NamedTuple

from nearcast.filtering.broker_half import BrokerHalf, Cloud
from nearcast.filtering.client_half import ClientHalf, Surroundings
from nearcast.filtering.context import NEVER, ClientContext
from nearcast.filtering.holdings import Holdings
from nearcast.filtering.messages import Assignment, AssignmentRequest, ContextUpdate, FromClient, ToClient
from nearcast.matching import Matcher
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.model.time import Instant
from nearcast.runtime.ports import Fix

ANYWHERE: Final = "anywhere"
"""The channel of subscriptions without an area: every event passes through it."""

UNPLACED: Final = "unplaced"
"""That of subscriptions with one: only events without a place do, which are not filtered by location (BYPASS.KOM 4.2.1)."""

UnknownChannels = Literal["place", "discard"]
"""What to do with an event whose publisher put a channel on it that is not known (any more): look at its place, or, as the
document has it, discard it."""


class Assigned(NamedTuple):
    """Where a client belongs."""

    channels: tuple[str, ...]
    own: str | None
    """The one that it publishes under."""


class ChannelBroker(BrokerHalf):
    """Clients by channel."""

    def __init__(
        self, cloud: Cloud, unknown_channels: UnknownChannels = "place", *, remember_location: bool = True
    ) -> None:
        super().__init__(cloud)
        self._unknown_channels: Final = unknown_channels
        self._remember_location: Final = remember_location
        self._matcher = Matcher()
        self._numbers: dict[str, int] = {}
        self._indexed: dict[str, tuple[str, ...]] = {}
        self._anywhere: Final = Holdings()
        """Subscriptions without an area."""

        self._announced: dict[str, tuple[str, ...]] = {}

    # To be said by each scheme

    @property
    @abstractmethod
    def channel_count(self) -> int:
        """How many channels there are, as the documents count them."""

    @abstractmethod
    def _assign(self, position: Point, radius: float) -> Assigned:
        """The channels of a client at that position."""

    def _kept(self, context: ClientContext) -> Assigned:
        """The channels of a client whose position is not known: those that it had, or has chosen, as far as they exist."""
        channels = tuple(channel for channel in context.channels if self._is_known(channel))
        own = context.own if context.own in channels else None
        return Assigned(channels, channels[0] if own is None and len(channels) == 1 else own)

    @abstractmethod
    def _channels_at(self, place: Point) -> tuple[str, ...]:
        """The channels of an event that happens there."""

    @abstractmethod
    def _is_known(self, channel: str) -> bool: ...

    # Events

    def receivers(self, event: Event, channel: str | None) -> list[str]:
        looked_up = self._channels_of(event, channel)
        if self._anywhere.total:
            looked_up = (*looked_up, ANYWHERE)
        tally, found = self._tally, dict[str, None]()
        tally.counted += self.channel_count
        tally.done += len(looked_up)
        for name in looked_up:
            number = self._numbers.get(name)
            members = () if number is None else self._matcher.match(event.under(_under(number, event.topic)))
            tally.multicasts += bool(members)
            found.update(dict.fromkeys(members))
        return list(found)

    def knows_place(self, client: str) -> bool:
        # Who is known to be in no channel (ATTRACT, between the points) is known well enough.
        context = self.contexts[client]
        return bool(context.channels) or context.position is not None

    def greet(self, clients: Collection[str]) -> None:
        for client in clients:
            if self.contexts[client].channels:
                self._announce(client)

    def hear(self, client: str, message: FromClient) -> bool:
        if not super().hear(client, message):
            return False
        # Who asks is answered, also if nothing has changed: the answer to an earlier request may have been lost.
        asks = not isinstance(message, ContextUpdate)
        if asks or self._announced.get(client, ()) != self.contexts[client].channels:
            self._announce(client, answers=asks)
        return True

    def subscribe(self, client: str, subscription: Subscription) -> None:
        super().subscribe(client, subscription)
        self._correct(client)

    def unsubscribe(self, client: str, subscription_id: str) -> None:
        super().unsubscribe(client, subscription_id)
        self._correct(client)

    def _correct(self, client: str) -> None:
        """A client that needs more channels asks for them; but one that has fewer, now that its areas of interest are smaller,
        would walk on in those that it believes to have.
        """
        if not set(self._announced.get(client, ())) <= set(self.contexts[client].channels):
            self._announce(client)

    def _channels_of(self, event: Event, channel: str | None) -> tuple[str, ...]:
        if event.place is None:
            return (UNPLACED,)
        if channel is not None and self._unknown_channels == "discard":
            return self._channels_tagged(channel, event.place) if self._is_known(channel) else ()
        return self._channels_at(event.place)

    def _channels_tagged(self, channel: str, _place: Point) -> tuple[str, ...]:
        """The channels of an event whose publisher says that it is in that one."""
        return (channel,)

    # Clients

    def _index(self, client: str, subscription: Subscription) -> None:
        self._anywhere.add(client, subscription.area is None)
        for channel in self._channels_for(client, subscription):
            self._copy(client, channel, subscription)

    def _deindex(self, client: str, subscription: Subscription) -> None:
        self._anywhere.add(client, -(subscription.area is None))
        for channel in self._channels_for(client, subscription):
            self._matcher.unsubscribe(client, _copy_id(self._number(channel), subscription))

    def _moved(self, client: str, context: ClientContext) -> None:
        if context.position is not None:
            context.channels, context.own = self._assign(context.position, context.radius())
            # It is forgotten when it has served: who asks before its subscription has come would be assigned to too little.
            if not self._remember_location and context.has_area():
                context.position = None
        else:
            context.channels, context.own = self._kept(context)
        channels, before = context.channels, self._indexed.get(client, ())
        if channels == before:
            return
        located = [held for held in context.subscriptions.values() if held.area is not None]
        for channel in before:
            if channel not in channels:
                for held in located:
                    self._matcher.unsubscribe(client, _copy_id(self._number(channel), held))
        for channel in channels:
            if channel not in before:
                for held in located:
                    self._copy(client, channel, held)
        self._indexed[client] = channels

    def _drop(self, client: str) -> None:
        self._anywhere.forget(client)
        self._indexed.pop(client, None)
        self._announced.pop(client, None)
        if client in self._matcher:
            self._matcher.remove_client(client)

    def _channels_for(self, client: str, subscription: Subscription) -> tuple[str, ...]:
        return (ANYWHERE,) if subscription.area is None else (*self._indexed.get(client, ()), UNPLACED)

    def _copy(self, client: str, channel: str, subscription: Subscription) -> None:
        number = self._number(channel)
        copy = Subscription(
            _under(number, subscription.topic),
            subscription.where,
            None,
            subscription.frame,
            _copy_id(number, subscription),
            subscription.qos,
            no_local=subscription.no_local,
        )
        self._matcher.subscribe(client, copy)

    def _number(self, channel: str) -> int:
        return self._numbers.setdefault(channel, len(self._numbers))

    def _announce(self, client: str, *, answers: bool = False) -> None:
        context = self.contexts[client]
        self._announced[client] = context.channels
        self._say(client, Assignment(context.measured, context.own, context.channels, answers))


def _under(number: int, topic: str) -> str:
    """The topic, or topic filter, within a channel.

    Those that servers keep for themselves begin with $ and are hidden from wildcards (MQTT 5.0, 4.7.2): also when they are not the
    first level any more.
    """
    return f"${number}/{topic}" if topic.startswith("$") else f"{number}/{topic}"


def _copy_id(number: int, subscription: Subscription) -> str:
    return f"{number}/{subscription.id}"


class ChannelClient(ClientHalf):
    """Asks for new channels when it has left those that it has."""

    def __init__(self, surroundings: Surroundings) -> None:
        super().__init__(surroundings)
        self.assigned: tuple[str, ...] = ()
        self.own: str | None = None
        self._assigned_by: Instant = NEVER
        self._asked: Instant = NEVER
        self._answered: Instant = NEVER

    def moved(self, fix: Fix) -> None:
        # As long as it has no answer to what it said last, it does not know what the broker believes.
        if self._answered < self._asked or not self._stays(fix):
            self._surroundings.say(self._request(fix))

    def piggyback(self) -> FromClient | None:
        fix = self._surroundings.newest()
        return None if fix is None else self._request(fix)

    def receive(self, message: ToClient) -> None:
        if message.answers:
            self._answered = max(self._answered, message.measured)
        if message.measured < self._assigned_by:
            return
        self._assigned_by, self.own, self.assigned = message.measured, message.channel, message.channels
        # A broker that has forgotten positions (LCN 2016, T3), or has old ones, cannot know all channels of a client that has
        # come to this scheme: the client notices.  Once for each fix, or two that disagree would go on for ever.
        fix = self._surroundings.newest()
        if fix is not None and fix.time > self._asked and not self._stays(fix):
            self._surroundings.say(self._request(fix))

    def channel(self) -> str | None:
        return self.own

    @abstractmethod
    def _stays(self, fix: Fix) -> bool:
        """Whether the assigned channels are still the right ones."""

    def _request(self, fix: Fix) -> FromClient:
        self._asked = fix.time
        return AssignmentRequest(fix.time, fix.position.lat, fix.position.lon)
