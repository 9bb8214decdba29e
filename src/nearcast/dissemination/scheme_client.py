"""A client's half of the filter schemes without a network: what the broker is to be told of the client's whereabouts, and when.

That is the active scheme's business.  Its messages pass through here and are tagged with the scheme and with the Lamport time of
the plan by which the client came to it.  How they travel is left to whoever hosts it: ``CloudClient`` on an unreliable link,
``client.schemes`` on MQTT.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

import msgspec

from nearcast.dissemination.cloud_messages import PROXY, Context
from nearcast.filtering.client_half import ClientHalf, Surroundings
from nearcast.filtering.messages import Assignment, ClientMessage
from nearcast.filtering.registry import client_halves
from nearcast.filtering.scheme import Territory
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.runtime.host import Host
from nearcast.runtime.ports import Cancellable, Fix
from nearcast.transition.agent import TransitionAgent
from nearcast.transition.engine import HostEngine
from nearcast.transition.plan import PlanId
from nearcast.transition.proxy import Proxy
from nearcast.transition.specification import MechanismSpec

M = TypeVar("M", bound=ClientMessage)


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """How a client takes part."""

    scheme: MechanismSpec
    """At first; plans change it."""

    pinned: bool = False
    """Whether it stays with that scheme, whatever plans say."""

    confirms: bool = True
    """As in ``Surroundings``."""

    resubscribes: bool = False
    """Whether it subscribes again after each transition, because the broker forgets what it knows (LCN 2016, without transfer)."""

    keep_alive: float = 20.0
    """Who has subscribed says how much at least every two times so many seconds; the broker must wait longer."""

    piggyback: float = 0.0
    """Context waits so many seconds for an event that can take it along (BYPASS.KOM 4.2.2); 0: it does not wait."""


class Happening(NamedTuple):
    """What an event that happens where the client is says of that."""

    channel: str | None
    place: Point


class SchemeClient:
    """The scheme that this client runs, and what it has to say."""

    def __init__(
        self,
        host: Host,
        territory: Territory,
        settings: ClientSettings,
        say: Callable[[Context], None],
        subscribe_again: Callable[[], None] | None = None,
    ) -> None:
        """The host has a ``HostEngine`` and a ``TransitionAgent``, both started.

        ``say`` gets messages with their tag; ``subscribe_again`` is called after each transition, in place of what else would be
        said then.
        """
        self.newest: Fix | None = None
        self.told = False
        """Whether anything was said of the client since this was last set to false."""

        self._settings: Final = settings
        self._timers: Final = host.timers
        self._say: Final = say
        self._subscribe_again: Final = subscribe_again
        self._held: Final[dict[str, Subscription]] = {}
        self._radius = 0.0
        self._said_under = 0
        self._early: Assignment | None = None
        self._waiting: Context | None = None
        self._flush: Cancellable | None = None
        engine = host.component(HostEngine).engine
        surroundings = Surroundings(
            say=engine.silence.guarded(self.say_context),
            newest=lambda: self.newest,
            radius=lambda: self._radius,
            confirms=settings.confirms,
        )
        self._agent: Final = host.component(TransitionAgent)
        make = client_halves(territory, surroundings)
        self._proxy: Final[Proxy[ClientHalf]] = engine.create_proxy(PROXY, ClientHalf, make, settings.scheme)
        self._agent.after(PROXY, self._switched)
        if settings.pinned:
            self._agent.pin(PROXY)

    @property
    def running(self) -> MechanismSpec:
        return self._proxy.spec

    @property
    def plan(self) -> PlanId:
        """By which it came to that."""
        return self._agent.goal.newest(PROXY)

    @property
    def pinned(self) -> MechanismSpec | None:
        """The scheme that it insists on."""
        return self._settings.scheme if self._settings.pinned else None

    @property
    def subscriptions(self) -> list[Subscription]:
        return list(self._held.values())

    # The application's side

    def interested(self, subscription: Subscription) -> None:
        self._held[subscription.id] = subscription
        self._measure()

    def uninterested(self, subscription_id: str) -> None:
        del self._held[subscription_id]
        self._measure()

    def moved(self, fix: Fix) -> None:
        """A new fix of the location sensor."""
        self.newest = fix
        self._proxy.active.moved(fix)

    def happening(self, here: Point) -> Happening:
        """What goes along with an event that happens where the client is; a scheme that keeps the position private says less."""
        half = self._proxy.active
        return Happening(half.channel(), half.place(here))

    def take_waiting(self) -> Context | None:
        """What has waited for an event that takes it along."""
        context, self._waiting = self._waiting, None
        self.told = self.told or context is not None
        return context

    def _measure(self) -> None:
        areas = [held.area for held in self._held.values()]
        self._radius = max((area.bounding_radius() for area in areas if area is not None), default=0.0)

    # The broker's side

    def assigned(self, message: Assignment) -> None:
        """What the broker's half of the scheme says."""
        ours = self.plan.clock
        if message.clock == ours:
            self._proxy.active.receive(message)
        elif message.clock > ours:  # it has overtaken the plan that it belongs to
            early = self._early
            if early is None or (early.clock, early.measured) <= (message.clock, message.measured):
                self._early = message

    def context(self) -> Context | None:
        """What goes along with a subscription; none before the first fix."""
        context = self._proxy.active.piggyback()
        return None if context is None else self.tagged(context)

    def say_context(self, context: Context) -> None:
        """Say that, or keep it for a while, for an event to take it along."""
        self.told, self._said_under = True, self.plan.clock
        if not self._settings.piggyback:
            self._say(self.tagged(context))
            return
        self._waiting = self.tagged(context)
        if self._flush is None:
            self._flush = self._timers.after(self._settings.piggyback, self._say_waiting)

    def tagged(self, message: M) -> M:
        return msgspec.structs.replace(
            message, scheme=self._proxy.spec.name, clock=self.plan.clock, subscriptions=len(self._held)
        )

    def _say_waiting(self) -> None:
        self._flush, context, self._waiting = None, self._waiting, None
        if context is not None:
            self._say(context)

    def _switched(self) -> None:
        """The scheme was exchanged, or got other parameters."""
        early, self._early = self._early, None
        if early is not None:
            self.assigned(early)
        if self._subscribe_again is not None:
            self._subscribe_again()
        elif self._settings.confirms and self._said_under < self.plan.clock:
            # It was in that scheme already, because it never heard of one in between: the broker waits for its word all the same.
            context = self._proxy.active.piggyback()
            if context is not None:
                self.say_context(context)
