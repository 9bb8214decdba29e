"""PLAN-B: the farther a host is from the sender, the sooner it sends on; several events go in one frame (BYPASS.KOM 4.3.1; Holzer et al., 2011).

Every frame says where its sender is.  Whoever hears it waits, the less the farther away it is: so few hosts, far apart, cover the
area.  Who hears meanwhile that a host farther on has sent the event gives it up.  *Farther on*: beyond this host, seen from the one
it was heard from, that is, past the line through this host across the way from there.  A host that is farther away on the other side
does not count: those on this side would hear nothing.

The documents give no constants.  Ours leave time to hear who was faster: a frame takes two milliseconds at 1 Mbit/s, so that one from
the edge of the range is heard by all that are a few metres nearer before they send; and some of them fit into the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

from msgspec import Meta

from nearcast.dissemination.adhoc.hesitating import Hesitating
from nearcast.dissemination.adhoc.messages import Carried
from nearcast.dissemination.adhoc.spreading import Air, Manner, Spreading
from nearcast.model.geometry import Point, distance
from nearcast.runtime.messages import encoded
from nearcast.runtime.ports import Address, Cancellable
from nearcast.transition.declarations import Parameter
from nearcast.transition.registry import DURATION, LENGTH

Longest = Annotated[
    float,
    Meta(
        ge=0,
        le=10,
        extra=DURATION,
        description="how long a host waits that is beside the sender; at the end of the range: not at all",
    ),
]
Range = Annotated[float, Meta(gt=0, le=100_000, extra=LENGTH, description="how far a frame is heard")]
Tie = Annotated[
    float,
    Meta(ge=0, le=10, extra=DURATION, description="at random, up to so long is added: two may be equally far away"),
]
Window = Annotated[
    float,
    Meta(ge=0, le=10, extra=DURATION, description="events that are due within so long of each other share a frame"),
]

ROOM: Final = 1_200
"""Bytes of events in one frame: with all headers, less than an Ethernet frame, which the live half must not exceed."""


class PlanB(Manner, frozen=True, kw_only=True):
    """The farther a host is from the sender, the sooner it sends on; who hears somebody farther on does not."""

    hesitation: Longest = 0.050
    range: Range = 88.0
    tie: Tie = 0.001
    window: Window = 0.010

    def mechanism(self, air: Air) -> Spreading:
        return PlanBSpreading(air, self)


class PlanBSpreading(Hesitating):
    hesitation: Annotated[Longest, Parameter()]
    range: Annotated[Range, Parameter()]
    tie: Annotated[Tie, Parameter()]
    window: Annotated[Window, Parameter()]

    def __init__(self, air: Air, manner: PlanB) -> None:
        super().__init__(air)
        self.hesitation = manner.hesitation
        self.range = manner.range
        self.tie = manner.tie
        self.window = manner.window
        self._chance: Final = air.random("hesitation").random
        self._from: Final[dict[str, Point]] = {}
        """Of what waits, where it was heard from; nothing if that is not known."""

        self._ready: Final[dict[str, Carried]] = {}
        """Has waited long enough, and goes with the next frame."""

        self._leaving: Cancellable | None = None

    def stop_mechanism(self) -> None:
        super().stop_mechanism()
        if self._leaving is not None:
            self._leaving.cancel()

    def publish(self, carried: Carried, _targets: Sequence[Address]) -> None:
        self._air.broadcast((carried,), self._air.position())

    def heard(self, carried: Carried, place: Point | None) -> None:
        here = self._air.position()
        far = self._chance() if place is None or here is None else min(distance(place, here) / self.range, 1.0)
        if place is not None:
            self._from[carried.event.id] = place
        self._hold(carried, self.hesitation * (1.0 - far) + self.tie * self._chance())

    def copied(self, event: str, place: Point | None) -> None:
        if event not in self.waiting:
            return
        here, source = self._air.position(), self._from.get(event)
        if place is not None and here is not None and source is not None and farther_on(source, here, place):
            self._drop(event)

    def minds(self, event: str) -> bool:
        return event in self.waiting

    def _delay(self, _carried: Carried) -> float:
        return self._chance() * self.hesitation

    def _drop(self, name: str) -> None:
        self._from.pop(name, None)
        if self._ready.pop(name, None) is not None:
            del self.waiting[name]
            self._air.tally.cancelled += 1
        else:
            super()._drop(name)

    def _over(self, name: str) -> None:
        # Still among what waits: a copy may yet cancel it, and a successor takes it over.
        del self._due[name]
        self._ready[name] = self.waiting[name]
        if self._leaving is None:
            self._leaving = self._air.timers.after(self.window, self._leave)

    def _leave(self) -> None:
        self._leaving = None
        ready = list(self._ready.values())
        self._ready.clear()
        place = self._air.position()
        for carried in ready:
            self.waiting.pop(carried.event.id)
            self._from.pop(carried.event.id, None)
        for together in packed(ready):
            self._air.broadcast(tuple(carried.further() for carried in together), place)


def farther_on(source: Point, here: Point, there: Point) -> bool:
    """Whether ``there`` lies beyond ``here``, seen from ``source``: the angle at ``here`` between the two is not acute."""
    return distance(source, there) ** 2 >= distance(source, here) ** 2 + distance(here, there) ** 2


def packed(events: Sequence[Carried]) -> list[list[Carried]]:
    """In the same order, as many in a frame as there is room for; at least one."""
    frames: list[list[Carried]] = []
    room = 0
    for carried in events:
        size = len(encoded(carried.event))
        if not frames or size > room:
            frames.append([])
            room = ROOM
        frames[-1].append(carried)
        room -= size
    return frames
