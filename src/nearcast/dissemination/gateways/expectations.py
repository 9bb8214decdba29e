"""Who has not acknowledged an event in time, and who is to be told directly for a while because of that.

Beyond the document, where an event is lost to whom its gateway does not reach (BYPASS.KOM 4.3.4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nearcast.dissemination.wire import EventMessage
from nearcast.filtering.context import NEVER
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
    """How many each gateway was to reach; without those who are gone."""


class Expectations:
    """Acknowledgements that are to come before a deadline."""

    def __init__(self, clock: Clock, timers: Timers, deadline: float, doubt: float, missed: Missed) -> None:
        self._timers: Final = timers
        self._deadline: Final = deadline
        self._missed: Final = missed
        self._unreached: Final = Doubts(clock, doubt)
        self._silent: Final = Doubts(clock, doubt)
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
            if expected is not None and (gateway := expected.waiting.pop(client, None)) is not None:
                self.acknowledged += 1
                self._unreached.clear(client)
                self._silent.clear(gateway)

    def doubtful(self, client: Address) -> bool:
        """Whether it is of no use, for a while, to have it served by others, or serve others."""
        return self._unreached.concern(client) or self._silent.concern(client)

    @property
    def doubts(self) -> int:
        return len(self._unreached) + len(self._silent)

    def forget(self, client: Address) -> None:
        """It is gone, or was started anew: nothing is expected of it any more, nor of it as a gateway."""
        for expected in self._expected.values():
            expected.waiting.pop(client, None)
            expected.served.pop(client, None)
        self._unreached.clear(client)
        self._silent.clear(client)

    def _end(self, event: str) -> None:
        expected = self._expected.pop(event)
        if not expected.waiting:
            return
        self.missed += len(expected.waiting)
        unreached: dict[Address, int] = {}
        for member, gateway in expected.waiting.items():
            self._unreached.add(member)
            unreached[gateway] = unreached.get(gateway, 0) + 1
        for gateway, number in unreached.items():
            if number == expected.served.get(gateway, 0) > 1:  # one alone may be out of its range
                self._silent.add(gateway)
        self._missed(expected.message, list(expected.waiting))


PATIENCE: Final = 3
"""Failures in a row.  One alone is most likely a collision, or a gateway that was chosen without a look at the place."""


class Doubts:
    """Clients that have failed again and again: doubtful for a while, and then the next failure decides."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock: Final = clock
        self._lasting: Final = round(seconds * MICROSECONDS)
        self._failures: Final[dict[Address, int]] = {}
        self._until: Final[dict[Address, Instant]] = {}

    def add(self, client: Address) -> None:
        """It has failed once more."""
        failures = self._failures[client] = self._failures.get(client, 0) + 1
        if failures >= PATIENCE:
            self._until[client] = self._clock.now() + self._lasting

    def clear(self, client: Address) -> None:
        """It has not failed, or is gone."""
        self._failures.pop(client, None)
        self._until.pop(client, None)

    def concern(self, client: Address) -> bool:
        return self._until.get(client, NEVER) > self._clock.now()

    def __len__(self) -> int:
        now = self._clock.now()
        return sum(until > now for until in self._until.values())
