"""MULTI: ATTRACT at attraction points and RADIAL everywhere else, as one scheme (BYPASS.KOM 4.2.4).

It is what partial transitions between the two achieve from outside (6.2.4), and agrees with them event by event: a client
in the open reports positions, by one of which the broker sees that it has come to a point and assigns the channel; in a channel
the client asks when it has left, and is answered that it has no channel.
"""

from __future__ import annotations

from collections.abc import Collection

from nearcast.filtering.attract import AttractBroker, AttractClient, Channels
from nearcast.filtering.broker_half import BrokerHalf, Cloud
from nearcast.filtering.channels import UnknownChannels
from nearcast.filtering.client_half import ClientHalf, Surroundings
from nearcast.filtering.context import ClientContext
from nearcast.filtering.messages import Assignment, AssignmentRequest, FromClient, ToClient
from nearcast.filtering.policies import UpdatePolicy
from nearcast.filtering.radial import RadialBroker, RadialClient
from nearcast.model.event import Event
from nearcast.model.subscription import Subscription
from nearcast.runtime.ports import Fix


class MultiBroker(BrokerHalf):
    """Two halves; each client is in one of them."""

    def __init__(self, cloud: Cloud, channels: Channels, unknown_channels: UnknownChannels = "place") -> None:
        super().__init__(cloud)
        self._channels = channels
        self._attract = AttractBroker(cloud, channels, unknown_channels)
        self._radial = RadialBroker(cloud)

    def receivers(self, event: Event, channel: str | None) -> list[str]:
        return [*self._attract.receivers(event, channel), *self._radial.receivers(event, channel)]

    def knows_place(self, client: str) -> bool:
        return self._half_of(client).knows_place(client)

    def adopt(self, client: str, context: ClientContext) -> None:
        self._drop(client)
        self.contexts[client] = context
        self._right_half(context).adopt(client, context)

    def subscribe(self, client: str, subscription: Subscription) -> None:
        self._half_of(client).subscribe(client, subscription)

    def unsubscribe(self, client: str, subscription_id: str) -> None:
        self._half_of(client).unsubscribe(client, subscription_id)

    def hear(self, client: str, message: FromClient) -> bool:
        before = self._half_of(client)
        if not before.hear(client, message):
            return False
        context = self.contexts[client]
        after = self._right_half(context)
        if after is not before:
            before.forget(client)
            after.adopt(client, context)
            after.greet([client])
        if after is self._radial and isinstance(message, AssignmentRequest) and before is self._radial:
            self._say(client, Assignment(context.measured, None, (), answers=True))
        return True

    def _half_of(self, client: str) -> BrokerHalf:
        return self._attract if client in self._attract.contexts else self._radial

    def _right_half(self, context: ClientContext) -> BrokerHalf:
        inside = context.position is not None and bool(self._channels.of(context.position))
        return self._attract if inside else self._radial

    # The index is that of the halves.

    def _index(self, client: str, subscription: Subscription) -> None: ...

    def _deindex(self, client: str, subscription: Subscription) -> None: ...

    def _moved(self, client: str, context: ClientContext) -> None: ...

    def _drop(self, client: str) -> None:
        self._half_of(client).forget(client)

    def greet(self, clients: Collection[str]) -> None:
        self._attract.greet([client for client in clients if client in self._attract.contexts])


class MultiClient(ClientHalf):
    """Behaves as in ATTRACT while it has a channel, else as in RADIAL."""

    def __init__(
        self, surroundings: Surroundings, channels: Channels, policy: UpdatePolicy, *, enable_updates: bool = False
    ) -> None:
        super().__init__(surroundings)
        self._attract = AttractClient(surroundings, channels, enable_updates=enable_updates)
        self._radial = RadialClient(surroundings, policy)

    def moved(self, fix: Fix) -> None:
        self._active().moved(fix)

    def piggyback(self) -> FromClient | None:
        return self._radial.piggyback()

    def bootstrap(self) -> None:
        self._radial.bootstrap()

    def receive(self, message: ToClient) -> None:
        self._attract.receive(message)

    def channel(self) -> str | None:
        return self._attract.channel()

    def _active(self) -> ClientHalf:
        return self._attract if self._attract.assigned else self._radial
