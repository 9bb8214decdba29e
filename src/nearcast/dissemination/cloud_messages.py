"""What clients and the broker say to each other, whatever the filter scheme (BYPASS.KOM 4.2.2)."""

from __future__ import annotations

from typing import Final, TypeAlias

from nearcast.errors import InvalidSubscription
from nearcast.filtering.messages import Assignment, AssignmentRequest, ClientMessage, ContextUpdate, Joining
from nearcast.model.area import Circle
from nearcast.model.predicate_text import to_text
from nearcast.model.subscription import Subscription
from nearcast.model.time import Instant, TimeFrame
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address
from nearcast.transition.plan import PlanId
from nearcast.transition.specification import MechanismSpec

PORT: Final = 1
PATH: Final = "cloud"
HOPS: Final = 2  # publisher to broker, broker to receiver
PROXY: Final = "filter scheme"

Context: TypeAlias = ContextUpdate | AssignmentRequest | Joining


class SubscriptionMessage(Message, frozen=True, tag="subscription content"):
    """A subscription, as it is sent."""

    id: str
    topic: str
    radius: float | None
    where: str | None
    no_local: bool


class Subscribe(ClientMessage, frozen=True, tag="subscription"):
    subscription: SubscriptionMessage
    context: Context | None = None
    """What the client's scheme has to say of it goes along, so that the broker can filter for it at once."""

    pinned: MechanismSpec | None = None
    """The client insists on this scheme, whatever others run: it wants to be known no better (LCN 2016, VI)."""


class SubscribeReachable(Subscribe, frozen=True, kw_only=True, tag="subscription 2"):
    """In hybrid modes clients tell the cloud of two addresses, also where it makes no use of the second one (BYPASS.KOM 6.3.2, footnote 5).

    Where there are gateways, their registration says it (``gateways.messages``).
    """

    local: Address
    """On the local link."""


class Unsubscribe(ClientMessage, frozen=True, tag="unsubscription"):
    id: str


class Alive(ClientMessage, frozen=True, tag="alive"):
    """The client is still there: from one that did not say anything lately, because nobody needs its position that often."""


class Goodbye(Message, frozen=True, tag="goodbye"):
    """The client leaves; the broker forgets it."""


class SubscribeAgain(Message, frozen=True, tag="subscribe again"):
    """The broker does not know what the client is subscribed to."""


class AllSubscriptions(ClientMessage, frozen=True, tag="all subscriptions"):
    """The answer: these, and no others.  It says also which scheme the client runs, for a broker that has forgotten everything."""

    subscriptions_held: tuple[SubscriptionMessage, ...]
    running: MechanismSpec
    plan: PlanId
    """By which it came to that."""

    context: Context | None = None
    pinned: MechanismSpec | None = None


FROM_CLIENT: Final = (
    Subscribe,
    SubscribeReachable,
    Unsubscribe,
    AllSubscriptions,
    ContextUpdate,
    AssignmentRequest,
    Joining,
    Alive,
    Goodbye,
)
TO_CLIENT: Final = (SubscribeAgain, Assignment)


def message_of(subscription: Subscription) -> SubscriptionMessage:
    where = to_text(subscription.where) if subscription.where else None
    radius = radius_of(subscription)
    return SubscriptionMessage(subscription.id, subscription.topic, radius, where, subscription.no_local)


def subscription_in(message: SubscriptionMessage, since: Instant) -> Subscription:
    area = None if message.radius is None else Circle(message.radius)
    frame = TimeFrame(since, None)
    return Subscription(message.topic, message.where, area, frame, message.id, no_local=message.no_local)


def radius_of(subscription: Subscription) -> float | None:
    """Metres around the client; none: everywhere."""
    match subscription.area:
        case None:
            return None
        case Circle(radius=radius, center=None):
            return radius
    raise InvalidSubscription(
        f"only circles around the client can be sent to the broker yet, not {subscription.area!r}"
    )
