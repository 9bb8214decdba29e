"""What adaptive propagation measures on one link, and what that says: which composites are worth their updates (5.3.2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from nearcast.matching.context_columns import Questions
from nearcast.model.values import same
from nearcast.overlay.routing.benefit import Rate, benefit
from nearcast.overlay.routing.composites import Held, Names, Partial, Sent
from nearcast.overlay.routing.messages import Stream
from nearcast.overlay.routing.settings import AdaptiveSettings
from nearcast.overlay.routing.streams import Incoming
from nearcast.overlay.routing.wire import Routed, asked


class AdaptiveLink:
    """What is known of, and was said to, one neighbour."""

    def __init__(self, incoming: Incoming[Stream]) -> None:
        self.held: Final[dict[Names, Held]] = {}
        self.sent: Final[dict[Names, Sent]] = {}
        self.in_vain: Final[dict[Names, Rate]] = {}
        """False positives: messages that came from there, by the attributes that they asked for."""

        self.updates: Final[dict[str, Rate]] = {}
        """By attribute: changes behind that link."""

        self.incoming: Final = incoming

    def covering(self, names: Names) -> Held | None:
        """A complete composite for these attributes: the smallest."""
        if not self.incoming.begun:
            return None
        found = [held for held in self.held.values() if names <= held.names]
        return min(found, key=lambda held: (len(held.names), sorted(held.names)), default=None)

    def worth_sending(
        self, others: Iterable[Mapping[str, float]], settings: AdaptiveSettings, can_send: Callable[[Names], bool]
    ) -> list[Names]:
        """Alg. 5.3, at the end of a window: for which attributes; ``others``: how often what it would be made of changes."""
        rates = list(others)
        chosen: list[Names] = []
        for names, rate in list(self.in_vain.items()):
            in_vain = rate.turn(settings.window, settings.newest)
            if in_vain * settings.window < 0.01:
                del self.in_vain[names]  # nobody has asked for that for long
                continue
            expected = math.fsum(each.get(name, 0.0) for each in rates for name in names)
            if benefit(in_vain, expected) > settings.propagate_above and can_send(names):
                known = [*chosen, *self.sent]
                if not any(names <= other for other in known):
                    chosen = [other for other in chosen if not other < names]
                    chosen.append(names)
        return sorted(chosen, key=sorted)

    def not_worth_keeping(self, settings: AdaptiveSettings) -> list[Names]:
        """Alg. 5.5, at the end of a window: composites that prune too little."""
        useless: list[Names] = []
        for names, held in self.held.items():
            if not held.measured:
                held.prunes.count = held.updates.count = 0
                held.measured = True
                continue
            gained = held.prunes.turn(settings.window, settings.newest)
            cost = held.updates.turn(settings.window, settings.newest)
            if benefit(gained, cost) < settings.invalidate_below:
                useless.append(names)
        return useless


def one_by_one(message: Routed) -> list[tuple[Questions, Names]]:
    """Each conjunct as a question of its own, and Attr(M) of it; kept with the message."""
    found: list[tuple[Questions, Names]] | None = message.__dict__.get("one by one")
    if found is None:
        found = message.__dict__["one by one"] = [
            ((conjunct,), frozenset(name for question in conjunct for name in question.names))
            for conjunct in asked(message)
        ]
    return found


def turned(rates: dict[str, Rate], window: float, newest: float) -> dict[str, float]:
    return {name: rate.turn(window, newest) for name, rate in rates.items()}


def count_changes(rates: dict[str, Rate], before: Partial | None, after: Partial | None) -> None:
    """An update of each attribute that is another now (Eq. 5.4)."""
    old, new = (before or ({}, None))[0], (after or ({}, None))[0]
    for name in sorted(old.keys() | new.keys()):
        if name not in old or name not in new or not same(old[name], new[name]):
            rates.setdefault(name, Rate()).count += 1
