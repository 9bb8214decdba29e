"""How crowded attraction points are, and when that is to make a difference (BYPASS.KOM 5.3.2, 6.4.3).

The document has one threshold for both directions, and sees points oscillate around it.  Here a point is crowded from more than the
threshold on, until no more than ``threshold - hysteresis`` are left; without hysteresis it is the document's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from nearcast.errors import InvalidPlan
from nearcast.filtering.attraction import Zone, Zones
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.host import Host
from nearcast.runtime.ports import Address
from nearcast.runtime.state import Information
from nearcast.transition.coordinator import UNDERWAY
from nearcast.transition.plan import Action, Exchange
from nearcast.transition.rules import Condition, Direction, Rule, RuleEngine, RuleStatistics
from nearcast.transition.specification import shown

Measure = Literal["clients", "density"]
SQUARE: Final = 10_000.0
"""Square metres: the document's density is clients * 10,000 m2 / radius2 (6.4.3)."""


@dataclass(frozen=True, slots=True)
class DensityRule:
    """When a point is crowded."""

    threshold: float
    hysteresis: float = 0.0
    dwell: float = 0.0
    """Seconds between two changes of a point's mind, at least."""

    measure: Measure = "clients"

    def __post_init__(self) -> None:
        if not 0 <= self.hysteresis <= self.threshold:
            raise InvalidPlan(
                f"a point that is crowded above {self.threshold:g} cannot be so until {self.hysteresis:g} less are there"
            )

    def value(self, zone: Zone, clients: int) -> float:
        return clients * SQUARE / zone.radius**2 if self.measure == "density" else float(clients)


@dataclass(frozen=True, slots=True)
class Crowding:
    """What is to run at a point, crowded or not: the same proxies, in the same order."""

    crowded: tuple[Exchange, ...]
    otherwise: tuple[Exchange, ...]


class CrowdedPoints:
    """Who is at which point, as far as the broker knows, and which points are crowded.

    At first none is: the document does not say what the density was before the first time.
    """

    def __init__(
        self,
        host: Host,
        zones: Zones,
        rule: DensityRule | None,
        crowding: Crowding,
        changed: Callable[[str, Collection[Address]], None],
    ) -> None:
        """Without a rule, all points are crowded.  ``changed`` is told of every point that has become crowded, or is so no longer, and of who is there."""
        self._host: Final = host
        self._zones: Final = zones
        self._rule: Final = rule
        self._crowding: Final = crowding
        self._changed: Final = changed
        self._at: Final[dict[Address, tuple[str, ...]]] = {}
        self._members: Final[dict[str, dict[Address, None]]] = {zone.name: {} for zone in zones}
        self._crowded: Final[set[str]] = set()
        self._since: Final[dict[str, Instant]] = {}
        self._emit: Final = host.observers.emitter("transitions")
        self._known: Final = {zone.name: Information(f"crowd at {zone.name}", float) for zone in zones}
        rules = [] if rule is None else [self._rule_of(rule, zone) for zone in zones]
        self._engine: Final = RuleEngine(host.state, host.clock, host.timers, rules, self._act)
        if rules:
            self._engine.start()

    def place(self, client: Address, points: tuple[str, ...]) -> None:
        """It is at these points now; at none when it has left, or has gone."""
        before = self._at.pop(client, ())
        if points:
            self._at[client] = points
        for name in before:
            del self._members[name][client]
        for name in points:
            self._members[name][client] = None
        for name in dict.fromkeys((*before, *points)):
            if (name in before) != (name in points):
                self._announce(name)

    def crowded(self, points: Sequence[str]) -> bool:
        """Whether one of them is: where points overlap, the more crowded one decides."""
        return self._rule is None or not self._crowded.isdisjoint(points)

    def points_of(self, client: Address) -> tuple[str, ...]:
        return self._at.get(client, ())

    def just_changed(self, client: Address) -> bool:
        """Whether one of its points has changed its mind so lately that plans may still be on their way."""
        recent = self._host.now() - round(UNDERWAY * MICROSECONDS)
        return any(self._since.get(point, recent) > recent for point in self.points_of(client))

    def clients(self) -> int:
        """At any point."""
        return len(self._at)

    def statistics(self) -> RuleStatistics:
        return self._engine.statistics()

    def stop(self) -> None:
        self._engine.stop()

    def _announce(self, name: str) -> None:
        if self._rule is not None:
            value = self._rule.value(self._zones[name], len(self._members[name]))
            self._host.state.announce(self._known[name], value)

    def _rule_of(self, rule: DensityRule, zone: Zone) -> Rule:
        self._host.state.provide(self._known[zone.name], lambda: rule.value(zone, len(self._members[zone.name])))
        back_at = rule.threshold - rule.hysteresis
        condition = Condition(self._known[zone.name], Direction.ABOVE, rule.threshold, back_at)
        return Rule(zone.name, (condition,), self._crowding.crowded, self._crowding.otherwise, dwell=rule.dwell)

    def _act(self, rule: Rule, actions: tuple[Action, ...]) -> None:
        begins = actions is rule.actions
        (self._crowded.add if begins else self._crowded.discard)(rule.name)
        self._since[rule.name] = self._host.now()
        self._note(self._zones[rule.name], begins=begins)
        self._changed(rule.name, tuple(self._members[rule.name]))

    def _note(self, zone: Zone, *, begins: bool) -> None:
        """Into the records, as a transition of the point itself, where its clients' transitions are, too."""
        before, after = self._crowding.otherwise, self._crowding.crowded
        pairs = zip(*((before, after) if begins else (after, before)), strict=True)
        for old, new in [(old, new) for old, new in pairs if old != new]:
            self._emit(
                self._host.now(),
                self._host.name,
                f"{new.proxy} at {zone.name}",
                shown(old.target),
                shown(new.target),
                zone.center.lat,
                zone.center.lon,
                None,
            )
