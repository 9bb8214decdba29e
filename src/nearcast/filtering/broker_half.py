"""The half of a filter scheme that runs at the broker."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass
from types import NoneType
from typing import Annotated, Final

from nearcast.filtering.context import ClientContext
from nearcast.filtering.messages import AssignmentRequest, ContextUpdate, FromClient, Joining, ToClient
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.transition.mechanism import Mechanism
from nearcast.transition.null import neutral
from nearcast.transition.state import Transferred

Say = Callable[[str, ToClient], None]
"""Send a message to a client; never from ``start_mechanism``."""


@dataclass(slots=True)
class Tally:
    """How much work it was to find receivers: one for all halves of a broker, those that have been and gone included."""

    counted: int = 0
    """Match operations as the documents count: one for each subscription (RADIAL, STE) or for each channel there is (LCN
    2016, IV-A)."""

    done: int = 0
    """As they were really done: distance tests after the grid, or look-ups of a channel."""

    multicasts: int = 0
    """Messages to clients, if one message served a whole channel (cellular multicast: LCN 2016, III-C2; BYPASS.KOM 7.2)."""


@dataclass(frozen=True, slots=True)
class Cloud:
    """What a broker half may use of its host; it stays when the half is exchanged."""

    say: Say
    tally: Tally


class BrokerHalf(Mechanism):
    """Knows its clients and finds the receivers of events among them.

    ``contexts`` is what it knows, apart from what it does with it; everything else that a half holds is an index over that, and
    is made anew by whoever takes over.
    """

    contexts: Annotated[dict[str, ClientContext], Transferred(per_member=True)]

    def __init__(self, surroundings: Cloud) -> None:
        self.contexts = {}
        self._say: Final = surroundings.say
        self._tally: Final = surroundings.tally

    # Clients

    @neutral(NoneType)
    def adopt(self, client: str, context: ClientContext) -> None:
        """Take a client in, with whatever is known of it; this replaces what was known before."""
        self._drop(client)
        self.contexts[client] = context
        for subscription in context.subscriptions.values():
            self._index(client, subscription)
        self._moved(client, context)

    @neutral(NoneType)
    def forget(self, client: str) -> None:
        """The client is gone."""
        if self.contexts.pop(client, None) is not None:
            self._drop(client)

    @neutral(NoneType)
    def subscribe(self, client: str, subscription: Subscription) -> None:
        context = self.contexts[client]
        self._withdraw(client, context, subscription.id)
        context.subscriptions[subscription.id] = subscription
        self._index(client, subscription)
        self._moved(client, context)

    @neutral(NoneType)
    def unsubscribe(self, client: str, subscription_id: str) -> None:
        context = self.contexts[client]
        if self._withdraw(client, context, subscription_id):
            self._moved(client, context)

    def _withdraw(self, client: str, context: ClientContext, subscription_id: str) -> bool:
        held = context.subscriptions.pop(subscription_id, None)
        if held is not None:
            self._deindex(client, held)
        return held is not None

    @neutral(bool)
    def hear(self, client: str, message: FromClient) -> bool:
        """What a client says of itself, in the words of this scheme or another; false if it is old news."""
        context = self.contexts[client]
        # One fix may be told twice, by the old scheme and by the new one, which may tell more of it (STE): the newer tag counts.
        if (message.measured, message.clock) < (context.measured, context.clock):
            return False
        context.measured, context.clock = message.measured, message.clock
        match message:
            case ContextUpdate():
                context.position = Point(message.lat, message.lon)
                context.speed, context.heading = message.speed, message.heading
            case AssignmentRequest():
                context.position = Point(message.lat, message.lon)
                context.speed, context.heading = 0.0, None
            case Joining():
                context.position, context.channels, context.own = None, message.channels, None
        self._moved(client, context)
        return True

    # Transitions: what others have brought is copied, because they go on with their own if the exchange fails.

    def start_mechanism(self) -> None:
        brought, self.contexts = self.contexts, {}
        for client, context in brought.items():
            self.adopt(client, context.copy())

    def bootstrap(self) -> None:
        self.greet(self.contexts)

    def members_joined(self, members: Collection[str]) -> None:
        known = [client for client in members if client in self.contexts]
        for client in known:
            self.adopt(client, self.contexts[client].copy())
        self.greet(known)

    def members_left(self, members: Collection[str]) -> None:
        for client in members:
            self._drop(client)

    @neutral(NoneType)
    def greet(self, clients: Collection[str]) -> None:
        """Tell clients that have just come under this scheme what they need to know."""

    # Events

    @neutral(list)
    @abstractmethod
    def receivers(self, event: Event, channel: str | None) -> list[str]:
        """The clients that shall get the event; ``channel`` is what its publisher, if it publishes where it is, put on it."""

    @neutral(bool)
    @abstractmethod
    def knows_place(self, client: str) -> bool:
        """Whether enough is known of the client to filter for it."""

    # The index

    @abstractmethod
    def _index(self, client: str, subscription: Subscription) -> None:
        """A subscription was added."""

    @abstractmethod
    def _deindex(self, client: str, subscription: Subscription) -> None:
        """A subscription has ended."""

    @abstractmethod
    def _moved(self, client: str, context: ClientContext) -> None:
        """The client's position, movement or channels may have changed, or what it is interested in."""

    @abstractmethod
    def _drop(self, client: str) -> None:
        """The client is gone, with all its subscriptions; or it was never here."""
