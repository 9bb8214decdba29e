"""Candidates in miniature: what another scheme would do, for some of the clients, with what they report to the one that runs.

Halves and messages are those of the scheme itself, so whatever can be run can be tried like this, before anybody is switched.
There is no network between the halves of a shadow: messages arrive at once, and only their size is noted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from nearcast.filtering.broker_half import Cloud, Tally
from nearcast.filtering.channels import ChannelBroker
from nearcast.filtering.client_half import ClientHalf, Surroundings
from nearcast.filtering.context import ClientContext
from nearcast.filtering.messages import FromClient, ToClient
from nearcast.filtering.registry import scheme_of
from nearcast.filtering.scheme import Territory
from nearcast.model.event import Event
from nearcast.model.subscription import Subscription
from nearcast.runtime.messages import Message, encoded
from nearcast.runtime.ports import Address, Fix
from nearcast.transition.specification import MechanismSpec


@dataclass(frozen=True, slots=True)
class ShadowStatistics:
    clients: int
    context_messages: int
    """That clients would have sent, since the start and without their first ones."""

    context_bytes: int
    """Of these and of the answers to them."""

    match_operations: int


class _ShadowClient:
    """What a client half may use: the reports of its client, instead of a sensor."""

    def __init__(self) -> None:
        self.newest: Fix | None = None
        self.radius = 0.0
        self.half: ClientHalf
        self.settled = False
        """Whether it has said what everybody says at first; that belongs to the price of a switch."""


class Shadow:
    """One candidate.  ``overhead`` are bytes of headers of each message."""

    def __init__(self, spec: MechanismSpec, territory: Territory, overhead: int) -> None:
        self.spec: Final = spec
        self._scheme: Final = scheme_of(spec)
        self._territory: Final = territory
        self._overhead: Final = overhead
        self._tally: Final = Tally()
        self._broker: Final = self._scheme.broker_half(territory, Cloud(self._answer, self._tally))
        self._clients: Final[dict[Address, _ShadowClient]] = {}
        self._messages = self._bytes = 0

    @property
    def looks_up(self) -> bool:
        """Whether matching is looking up channels, which does not become more with more clients."""
        return isinstance(self._broker, ChannelBroker)

    def report(self, client: Address, fix: Fix, subscriptions: dict[str, Subscription]) -> None:
        """The client was there."""
        shadow = self._clients.get(client)
        if shadow is None:
            shadow = self._clients[client] = self._add(client)
        held = self._broker.contexts[client].subscriptions
        if held.keys() != subscriptions.keys():
            for name in [name for name in held if name not in subscriptions]:
                self._broker.unsubscribe(client, name)
            for name, subscription in subscriptions.items():
                if name not in held:
                    self._broker.subscribe(client, subscription)
        shadow.newest, shadow.radius = fix, self._broker.contexts[client].radius()
        shadow.half.moved(fix)
        shadow.settled = True

    def forget(self, client: Address) -> None:
        if self._clients.pop(client, None) is not None:
            self._broker.forget(client)

    def radius_of(self, client: Address) -> float:
        """Of a circle around it that holds all its areas of interest."""
        return self._broker.contexts[client].radius()

    def receivers(self, event: Event) -> list[Address]:
        return self._broker.receivers(event, None)

    def statistics(self) -> ShadowStatistics:
        return ShadowStatistics(len(self._clients), self._messages, self._bytes, self._tally.done)

    def _add(self, client: Address) -> _ShadowClient:
        shadow = _ShadowClient()
        surroundings = Surroundings(
            say=lambda message: self._hear(client, message),
            newest=lambda: shadow.newest,
            radius=lambda: shadow.radius,
        )
        shadow.half = self._scheme.client_half(self._territory, surroundings)
        self._broker.adopt(client, ClientContext())
        return shadow

    def _hear(self, client: Address, message: FromClient) -> None:
        if self._clients[client].settled:
            self._messages += 1
            self._bytes += self._size(message)
        self._broker.hear(client, message)

    def _answer(self, client: Address, message: ToClient) -> None:
        shadow = self._clients.get(client)
        if shadow is None:
            return
        if shadow.settled:
            self._bytes += self._size(message)
        shadow.half.receive(message)

    def _size(self, message: Message) -> int:
        # With the tag that the carrier puts on it.
        tagged = msgspec.structs.replace(message, scheme=self.spec.name)
        return len(encoded(tagged)) + self._overhead
