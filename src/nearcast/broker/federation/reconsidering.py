"""What waits for brokers out of reach may be for somebody who can be reached by now: it is looked at again, a little at a time.

A dead broker may be owed a hundred thousand parcels, and to look at one takes as long as to publish an event.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from nearcast.broker.federation.custody import Custody, Kept
from nearcast.broker.federation.wire import EVENT, RELAY
from nearcast.model.time import MICROSECONDS, Instant

LOOKS: Final = (1.0, 5.0, 20.0)
"""Seconds after a client has gone elsewhere, at which what waits for its old broker is looked at: it may take a while until it
has told its new broker who it is."""

AT_ONCE: Final = 50
"""Parcels, before others have their turn."""

PER_SECOND: Final = 500
"""Parcels, on average, while nobody has gone anywhere."""


@dataclass(slots=True, eq=False)
class Reconsidering:
    custody: Custody
    copy: Callable[[Kept], None]
    """A copy for one client is looked at."""

    event: Callable[[Kept, Iterable[str]], None]
    """``event(kept, gone_to)``: so is an event, of whose brokers out of reach clients have gone to these."""

    later: Callable[[Callable[[], None]], object]
    """Has a function called a moment later."""

    now: Callable[[], Instant]
    _moves: dict[tuple[str, str], list[Instant]] = field(default_factory=dict)
    _due: dict[str, set[str]] = field(default_factory=dict)
    _gone_to: dict[str, set[str]] = field(default_factory=dict)
    """The same for the looks that are under way."""

    _keys: deque[str] = field(default_factory=deque)
    _not_before: Instant = 0

    def gone(self, before: str, to: str) -> None:
        """Some client has gone from one broker to another."""
        if before and before != to:
            at = self.now()
            self._moves[before, to] = [at + round(seconds * MICROSECONDS) for seconds in LOOKS]

    def tick(self) -> None:
        now = self.now()
        for (before, to), looks in list(self._moves.items()):
            if looks[0] <= now:
                self._due.setdefault(before, set()).add(to)
                looks.pop(0)
                if not looks:
                    del self._moves[before, to]
        if not self._keys and (self._due or now >= self._not_before):
            self._keys.extend(self.custody.stranded())
            self._not_before = now + len(self._keys) * MICROSECONDS // PER_SECOND
            self._gone_to, self._due = self._due, {}
            self._look()

    def end(self) -> None:
        self._keys.clear()

    def _look(self) -> None:
        some = [self._keys.popleft() for _ in range(min(AT_ONCE, len(self._keys)))]
        if self._keys:
            self.later(self._look)  # first: one that goes wrong does not hold up the others
        for key in some:
            kept = self.custody.get(key)
            if kept is None:
                continue
            missing = [broker for broker in kept.waiting if self.custody.directions.hop(broker) is None]
            if missing and kept.kind == RELAY:
                self.copy(kept)
            elif missing and kept.kind == EVENT:
                self.event(kept, {to for broker in missing for to in self._gone_to.get(broker, ())})
