"""What all mechanisms share that wait a little before they send an event on."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Final

from msgspec import Meta

from nearcast.dissemination.adhoc.messages import Carried
from nearcast.dissemination.adhoc.spreading import Air, Spreading
from nearcast.runtime.ports import Address, Cancellable
from nearcast.transition.declarations import Transferred
from nearcast.transition.registry import DURATION

# Who hears the same frame gets it at the same instant: if all sent it on at once, they would collide, every time (RFC 5148).  Some
# frames long, which take about two milliseconds each.
Hesitation = Annotated[
    float, Meta(ge=0, le=10, extra=DURATION, description="a host waits up to so long before it sends an event on")
]
HESITATION: Final = 0.010


class Hesitating(Spreading):
    """Holds events back, each for a time of its own."""

    waiting: Annotated[dict[str, Carried], Transferred()]
    """By event, as they came.  What waits when the mechanism is exchanged, its successor sends on in its own way."""

    def __init__(self, air: Air) -> None:
        self.waiting = {}
        self._air: Final = air
        self._due: Final[dict[str, Cancellable]] = {}

    @abstractmethod
    def _delay(self, carried: Carried) -> float:
        """Seconds to wait with an event that a mechanism before this one has decided to send on."""

    def start_mechanism(self) -> None:
        for carried in list(self.waiting.values()):
            self._hold(carried, self._delay(carried))

    def stop_mechanism(self) -> None:
        for timer in self._due.values():
            timer.cancel()
        self._due.clear()

    def publish(self, carried: Carried, _targets: Sequence[Address]) -> None:
        self._air.broadcast((carried,))

    def _hold(self, carried: Carried, seconds: float) -> None:
        name = carried.event.id
        self.waiting[name] = carried
        self._due[name] = self._air.timers.after(seconds, partial(self._over, name))

    def _drop(self, name: str) -> None:
        """Others have done it."""
        if self.waiting.pop(name, None) is not None:
            self._due.pop(name).cancel()
            self._air.tally.cancelled += 1

    def _over(self, name: str) -> None:
        del self._due[name]
        self._send_on(self.waiting.pop(name))

    def _send_on(self, carried: Carried) -> None:
        self._air.broadcast((carried.further(),))
