"""RADIAL, in LCN 2016 called LPS: the broker knows where everybody is and measures distances (BYPASS.KOM 4.2.4).

The documents substitute stored variables into parametric subscriptions when an event is evaluated; here that is what the matcher
does with a relative area.
"""

from __future__ import annotations

from typing import Final

from nearcast.filtering.broker_half import BrokerHalf, Cloud
from nearcast.filtering.client_half import ClientHalf, Surroundings
from nearcast.filtering.context import ClientContext
from nearcast.filtering.holdings import Holdings
from nearcast.filtering.messages import ContextUpdate, FromClient
from nearcast.filtering.policies import UpdatePolicy
from nearcast.matching import Matcher
from nearcast.matching.matches import Receivers
from nearcast.model.event import Event
from nearcast.model.subscription import Subscription
from nearcast.runtime.ports import Fix


class RadialBroker(BrokerHalf):
    """All positions and areas of interest, in one matcher."""

    def __init__(self, cloud: Cloud) -> None:
        super().__init__(cloud)
        self._matcher = Matcher()
        self._located: Final = Holdings()
        """Subscriptions with an area."""

    def receivers(self, event: Event, _channel: str | None) -> list[str]:
        before = self._matcher.distance_tests
        found = self._refined(event, self._matcher.match(event))
        self._tally.counted += self._located.total
        self._tally.done += self._matcher.distance_tests - before
        self._tally.multicasts += len(found)
        return found

    def _refined(self, _event: Event, found: Receivers) -> list[str]:
        return list(found)

    def knows_place(self, client: str) -> bool:
        return self.contexts[client].position is not None

    def _index(self, client: str, subscription: Subscription) -> None:
        self._matcher.subscribe(client, subscription)
        self._located.add(client, subscription.area is not None)

    def _deindex(self, client: str, subscription: Subscription) -> None:
        self._matcher.unsubscribe(client, subscription.id)
        self._located.add(client, -(subscription.area is not None))

    def _moved(self, client: str, context: ClientContext) -> None:
        if context.position is not None:
            self._matcher.move(client, context.position.lat, context.position.lon)
        elif client in self._matcher:
            self._matcher.forget_position(client)

    def _drop(self, client: str) -> None:
        self._located.forget(client)
        if client in self._matcher:
            self._matcher.remove_client(client)


class RadialClient(ClientHalf):
    """Reports where it is, as often as its policy says."""

    def __init__(self, surroundings: Surroundings, policy: UpdatePolicy) -> None:
        super().__init__(surroundings)
        self._policy = policy

    def moved(self, fix: Fix) -> None:
        if self._policy.due(fix.time, fix.position):
            self._surroundings.say(self._report(fix))

    def piggyback(self) -> FromClient | None:
        fix = self._surroundings.newest()
        return None if fix is None else self._report(fix)

    def bootstrap(self) -> None:
        # Needed in any case: the broker may know no position, or an old one.
        context = self.piggyback()
        if context is not None:
            self._surroundings.say(context)

    def _report(self, fix: Fix) -> ContextUpdate:
        self._policy.reported(fix.time, fix.position)
        return ContextUpdate(fix.time, fix.position.lat, fix.position.lon)
