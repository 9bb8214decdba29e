"""What a subscription accepts, for whoever knows one position and no history: the receiver itself, or a broker."""

from __future__ import annotations

from nearcast.model.delivery import in_area, within_reach
from nearcast.model.evaluation import evaluate
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.model.time import EVER
from nearcast.model.topic import topic_matches


def wanted(subscription: Subscription, event: Event, client: str, position: Point | None) -> bool:
    """The last check: whether the subscription of a client that is there now accepts the event.

    The same meaning as ``model.delivery.interested``, for the one who knows its own position best.
    """
    return (
        accepted(subscription, event, client)
        and in_area(subscription.area, event.place, position)
        and (event.reach is None or within_reach(event.reach, position))
    )


def accepted(subscription: Subscription, event: Event, client: str) -> bool:
    """The part of the last check that does not ask where the client is."""
    return (
        not (subscription.no_local and event.publisher == client)
        and (subscription.topic == event.topic or topic_matches(subscription.topic, event.topic))
        and (subscription.frame is EVER or subscription.frame.contains(event.published))
        and (subscription.where is None or evaluate(subscription.where, event.properties()) is True)
    )
