"""STE: like RADIAL, but the area of interest reaches ahead, to where its holder is likely to be soon (BYPASS.KOM 4.2.4)."""

from __future__ import annotations

from typing import Final

from nearcast.filtering.broker_half import Cloud
from nearcast.filtering.context import ClientContext
from nearcast.filtering.envelope import Envelope
from nearcast.filtering.messages import ContextUpdate
from nearcast.filtering.radial import RadialBroker, RadialClient
from nearcast.matching.matches import Receivers
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.subscription import Subscription
from nearcast.runtime.ports import Fix


class SteBroker(RadialBroker):
    """The matcher finds those whose envelope may hold the event; the envelope, made once for each update, decides.

    Only circles have one; other areas are what they are in RADIAL.
    """

    def __init__(self, cloud: Cloud, alpha: float, angle: float) -> None:
        super().__init__(cloud)
        self._alpha: Final = alpha
        self._angle: Final = angle
        self._envelopes: dict[str, dict[str, Envelope]] = {}
        """Of those who move, by client and subscription."""

    def _refined(self, event: Event, found: Receivers) -> list[str]:
        place, envelopes = event.place, self._envelopes
        if place is None or not envelopes:
            return list(found)
        asked: dict[str, frozenset[str]] = {}
        kept = []
        for client in found:
            ahead = envelopes.get(client)
            if ahead is None:
                kept.append(client)
                continue
            if len(self.contexts[client].subscriptions) == 1:
                wanted = any(envelope.covers(place) for envelope in ahead.values())
            else:
                # Found by one of its subscriptions: it counts whether the envelope of that one holds the event.
                asked = asked or {each.client: each.subscriptions for each in found.deliveries()}
                wanted = any(name not in ahead or ahead[name].covers(place) for name in asked[client])
            if wanted:
                kept.append(client)
        return kept

    def _deindex(self, client: str, subscription: Subscription) -> None:
        super()._deindex(client, subscription)
        # Or a subscription that replaces this one would seem to be in the matcher already, as wide as it has to be.
        self._envelopes.get(client, {}).pop(subscription.id, None)

    def _moved(self, client: str, context: ClientContext) -> None:
        super()._moved(client, context)
        before, ahead = self._envelopes.pop(client, {}), self._ahead(context)
        for name, held in context.subscriptions.items():
            was, now = before.get(name), ahead.get(name)
            if now is None:
                if was is not None:
                    self._matcher.subscribe(client, held)
            elif was is None or was.bounding_radius != now.bounding_radius:  # who only turns stays in the same circle
                self._matcher.subscribe(client, _with_area(held, Circle(now.bounding_radius)))
        if ahead:
            self._envelopes[client] = ahead

    def _drop(self, client: str) -> None:
        super()._drop(client)
        self._envelopes.pop(client, None)

    def _ahead(self, context: ClientContext) -> dict[str, Envelope]:
        position, heading = context.position, context.heading
        if position is None or heading is None or not context.speed or not self._alpha:
            return {}
        return {
            name: Envelope(position, held.area.radius, heading, context.speed, self._alpha, self._angle)
            for name, held in context.subscriptions.items()
            if isinstance(held.area, Circle) and held.area.is_relative
        }


def _with_area(subscription: Subscription, area: Circle) -> Subscription:
    return Subscription(
        subscription.topic,
        subscription.where,
        area,
        subscription.frame,
        subscription.id,
        subscription.qos,
        no_local=subscription.no_local,
    )


class SteClient(RadialClient):
    """Reports how it moves, too."""

    def _report(self, fix: Fix) -> ContextUpdate:
        self._policy.reported(fix.time, fix.position)
        position = fix.position
        return ContextUpdate(fix.time, position.lat, position.lon, fix.speed, fix.heading)
