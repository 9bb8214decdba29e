"""Who has not acknowledged an event in time, and who is to be told directly for a while because of that.

Beyond the document, where an event is lost to whom its gateway does not reach (BYPASS.KOM 4.3.4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nearcast.dissemination.wire import EventMessage
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.ports import Address, Clock, Timers

Missed = Callable[[EventMessage, Sequence[Address]], None]
"""Told of an event, and of those who did not acknowledge it in time."""


@dataclass(frozen=True, slots=True)
class _Expected:
    message: EventMessage
    waiting: dict[Address, Address]
    """Those who have not acknowledged it yet, and their gateways."""

    served: dict[Address, int]
    """How many each gateway was to reach."""


class Expectations:
    """Acknowledgements that are to come before a deadline."""

    def __init__(self, clock: Clock, timers: Timers, deadline: float, doubt: float, missed: Missed) -> None:
        self._timers: Final = timers
        self._deadline: Final = deadline
        self._missed: Final = missed
        self.doubts: Final = Doubts(clock, doubt)
        self._expected: Final[dict[str, _Expected]] = {}
        self.acknowledged = self.missed = 0

    def __contains__(self, event: object) -> bool:
        return event in self._expected

    def __len__(self) -> int:
        return len(self._expected)

    def expect(self, message: EventMessage, served: Mapping[Address, Sequence[Address]]) -> None:
        """All of those whom gateways serve are to acknowledge the event; no other of that id is expected."""
        waiting = {member: gateway for gateway, members in served.items() for member in members}
        counts = {gateway: len(members) for gateway, members in served.items()}
        self._expected[message.id] = _Expected(message, waiting, counts)
        self._timers.after(self._deadline, lambda: self._end(message.id))

    def acknowledge(self, client: Address, events: Sequence[str]) -> None:
        for event in events:
            expected = self._expected.get(event)
            if expected is not None and expected.waiting.pop(client, None) is not None:
                self.acknowledged += 1

    def forget(self, client: Address) -> None:
        """It is gone, or was started anew: nothing is expected of it any more."""
        for expected in self._expected.values():
            expected.waiting.pop(client, None)
        self.doubts.forget(client)

    def _end(self, event: str) -> None:
        expected = self._expected.pop(event)
        if not expected.waiting:
            return
        self.missed += len(expected.waiting)
        unreached: dict[Address, int] = {}
        for member, gateway in expected.waiting.items():
            self.doubts.add(member)
            unreached[gateway] = unreached.get(gateway, 0) + 1
        for gateway, number in unreached.items():
            # One alone may be out of its range; if it has reached none of several, it is most likely not there.
            if number == expected.served[gateway] > 1:
                self.doubts.add(gateway)
        self._missed(expected.message, list(expected.waiting))


class Doubts:
    """Clients of whom it is doubtful that gateways reach them, or that they reach anybody: for a while, and then they get another chance."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock: Final = clock
        self._lasting: Final = round(seconds * MICROSECONDS)
        self._until: Final[dict[Address, Instant]] = {}

    def add(self, client: Address) -> None:
        self._until[client] = self._clock.now() + self._lasting

    def forget(self, client: Address) -> None:
        self._until.pop(client, None)

    def concern(self, client: Address) -> bool:
        until = self._until.get(client)
        if until is None:
            return False
        if until <= self._clock.now():
            del self._until[client]
            return False
        return True

    def __len__(self) -> int:
        now = self._clock.now()
        return sum(until > now for until in self._until.values())
