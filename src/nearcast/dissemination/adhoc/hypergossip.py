"""HYPERG: gossip that knows how many are near, and mends partitions (BYPASS.KOM 4.3.1; Khelil et al., Hypergossiping, 2007).

- Every host says hello, and so knows how many others are near.  The more there are, the less likely it sends an event on.
- It waits a little before it does.  If it hears enough copies meanwhile, others have done it.
- Two hosts that become neighbours tell each other which events they have.  If these have nothing in common, two partitions have met:
  then they send each other what they have kept.

The documents give the period of hellos (100 ms, 6.3.4) and the rules, but no other constant.  Those below are ours: about as many
frames as GOSSIP with p = 0.4 in the AR game, as A.3 reports; a neighbour may lose nine hellos in a row in a crowd without being taken
for gone; and events are kept for as long as anybody would want to hear of them late.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Final

from msgspec import Meta

from nearcast.dissemination.adhoc.hesitating import HESITATION, Hesitating, Hesitation
from nearcast.dissemination.adhoc.messages import Carried
from nearcast.dissemination.adhoc.spreading import Air, Manner, Spreading
from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.ports import Address, Cancellable
from nearcast.transition.declarations import Parameter, Transferred
from nearcast.transition.registry import DURATION

Period = Annotated[float, Meta(ge=0.001, le=3600, extra=DURATION, description="how often a host says hello")]
Patience = Annotated[
    float, Meta(ge=0.001, le=3600, extra=DURATION, description="a neighbour that was silent for so long is gone")
]
Forwarders = Annotated[
    float,
    Meta(gt=0, le=1000, description="of the hosts around, so many send an event on, on average; all if they are fewer"),
]
Copies = Annotated[
    int,
    Meta(ge=1, le=1000, description="a host that hears so many more copies while it waits does not send an event on"),
]
Keep = Annotated[
    float, Meta(ge=0, le=3600, extra=DURATION, description="how long events are kept, in case that two partitions meet")
]
Named = Annotated[
    int,
    Meta(ge=1, le=50, description="so many of the newest events are named to a new neighbour, and sent again at most"),
]


class HyperGossip(Manner, frozen=True, kw_only=True):
    """The fewer are near, the more likely a host sends it on; and partitions that meet exchange what they have."""

    hello: Period = 0.1
    patience: Patience = 1.0
    forwarders: Forwarders = 4.0
    copies: Copies = 3
    hesitation: Hesitation = HESITATION
    keep: Keep = 10.0
    named: Named = 16

    def mechanism(self, air: Air) -> Spreading:
        return HyperGossipSpreading(air, self)


class HyperGossipSpreading(Hesitating):
    forwarders: Annotated[Forwarders, Parameter()]
    copies: Annotated[Copies, Parameter()]
    hesitation: Annotated[Hesitation, Parameter()]
    neighbours: Annotated[dict[Address, Instant], Transferred()]
    """When each was last heard."""

    kept: Annotated[dict[str, tuple[Instant, Carried]], Transferred()]
    """Events of the last while, by when they came."""

    def __init__(self, air: Air, manner: HyperGossip) -> None:
        super().__init__(air)
        self.forwarders = manner.forwarders
        self.copies = manner.copies
        self.hesitation = manner.hesitation
        self.neighbours = {}
        self.kept = {}
        self._period: Final = manner.hello
        self._patience: Final = round(manner.patience * MICROSECONDS)
        self._keep: Final = round(manner.keep * MICROSECONDS)
        self._named: Final = manner.named
        self._heard: Final[dict[str, int]] = {}
        """Of what waits, how many more copies have come."""

        self._again: Final[dict[str, Cancellable]] = {}
        """What waits to be sent again.  Not for a successor, which sends everything on once."""

        self._new = False
        """Somebody has become a neighbour since the last hello."""

        self._met: Final[dict[Address, tuple[str, ...]]] = {}
        """Of those who have not said yet what they have: the newest events here when they came.  What came since may be theirs."""

        self._coin: Final = air.random("coin").random
        self._wait: Final = air.random("hesitation").random
        self._hello: Cancellable

    def start_mechanism(self) -> None:
        super().start_mechanism()
        self._hello = self._air.timers.every(self._period, self._greet, first=self._wait() * self._period)

    def stop_mechanism(self) -> None:
        super().stop_mechanism()
        for timer in (self._hello, *self._again.values()):
            timer.cancel()

    # Events

    def publish(self, carried: Carried, targets: Sequence[Address]) -> None:
        self._remember(carried)
        super().publish(carried, targets)

    def heard(self, carried: Carried, _place: Point | None) -> None:
        self._remember(carried)
        if self._coin() < self.probability():
            self._hold(carried, self._wait() * self.hesitation)

    def copied(self, event: str, _place: Point | None) -> None:
        if event not in self.waiting and event not in self._again:
            return
        self._heard[event] = self._heard.get(event, 0) + 1
        if self._heard[event] < self.copies:
            return
        del self._heard[event]
        self._drop(event)
        if event in self._again:
            self._again.pop(event).cancel()
            self._air.tally.cancelled += 1

    def minds(self, event: str) -> bool:
        return event in self.waiting or event in self.kept

    def probability(self) -> float:
        """With which an event is sent on, among so many neighbours."""
        return min(1.0, self.forwarders / max(len(self.neighbours), 1))

    def _delay(self, _carried: Carried) -> float:
        return self._wait() * self.hesitation

    def _send_on(self, carried: Carried) -> None:
        self._heard.pop(carried.event.id, None)
        super()._send_on(carried)

    # Neighbours

    def greeted(self, neighbour: Address, heard: tuple[str, ...] | None) -> None:
        if neighbour not in self.neighbours:
            self._new, self._met[neighbour] = True, self._newest()
        self.neighbours[neighbour] = self._air.now()
        if heard is not None and neighbour in self._met:
            self._compare(self._met.pop(neighbour), heard)

    def _greet(self) -> None:
        self._forget(self._air.now())
        new, self._new = self._new, False
        self._air.greet(self._newest() if new else None)

    def _compare(self, ours: tuple[str, ...], theirs: tuple[str, ...]) -> None:
        """Send again what we had when we met, if they have nothing of it: they come from another partition."""
        if not set(ours).isdisjoint(theirs):
            return
        for name in ours:
            if name not in self.waiting and name not in self._again:
                self._again[name] = self._air.timers.after(self._wait() * self.hesitation, partial(self._repeat, name))

    def _repeat(self, name: str) -> None:
        del self._again[name]
        self._heard.pop(name, None)
        _, carried = self.kept.get(name, (None, None))
        # It was kept for a while: this host may have left the place where the event matters.
        if carried is not None and self._air.inside(carried):
            self._air.tally.repeated += 1
            super()._send_on(carried)

    def _newest(self) -> tuple[str, ...]:
        return tuple(self.kept)[-self._named :]

    def _remember(self, carried: Carried) -> None:
        if self._keep:
            self.kept[carried.event.id] = self._air.now(), carried

    def _forget(self, now: Instant) -> None:
        for name in [name for name, last in self.neighbours.items() if last < now - self._patience]:
            del self.neighbours[name]
            self._met.pop(name, None)
        # In the order in which they came: the first that is young enough is followed by younger ones.
        while self.kept and next(iter(self.kept.values()))[0] < now - self._keep:
            del self.kept[next(iter(self.kept))]
