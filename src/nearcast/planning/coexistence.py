"""Mechanisms that exist side by side around attraction points (BYPASS.KOM 4.4, 5.3.2): CX-AH and CX-GATEWAY.

Outside, clients run one filter scheme and nothing from host to host.  Who comes to a point gets a plan: another filter scheme, ad hoc
mechanisms, a hybrid mode; who leaves gets the reverse.  Ad hoc events stay at their point without any geofence, because nobody
outside hears them.

Which mechanisms run at a point may depend on how crowded it is (``density``).  When that changes, either everybody there gets a plan
(*central*), or nobody does: whoever comes next brings the other mechanism along, and the others follow when they hear it
(*self-healing*, 4.3.3).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from nearcast.dissemination.gateways.broker import ByGateways
from nearcast.dissemination.gateways.spreading import GATEWAY, UNICAST
from nearcast.dissemination.hybrid import PROXY as HYBRID
from nearcast.errors import InvalidPlan
from nearcast.filtering.attraction import Zones
from nearcast.model.geometry import Point
from nearcast.planning.at_points import TransitionsAtPoints
from nearcast.planning.density import CrowdedPoints, Crowding, DensityRule
from nearcast.runtime.host import Host
from nearcast.runtime.ports import Address
from nearcast.transition.plan import Action, Exchange
from nearcast.transition.rules import RuleStatistics
from nearcast.transition.specification import NULL, MechanismSpec

Coordination = Literal["central", "self-healing"]


@dataclass(frozen=True, slots=True)
class Mechanisms:
    """What clients run beside their filter scheme: ad hoc mechanisms by proxy, and the hybrid mode."""

    mode: MechanismSpec
    spreading: tuple[tuple[str, MechanismSpec], ...]

    def exchanges(self) -> tuple[Exchange, ...]:
        # The mode last: who is told to leave events to the radio has one by then.
        return (*(Exchange(proxy, target) for proxy, target in self.spreading), Exchange(HYBRID, self.mode))

    def stopped(self, mode: MechanismSpec) -> Mechanisms:
        """None of them, and that mode."""
        return Mechanisms(mode, tuple((proxy, NULL) for proxy, _ in self.spreading))


@dataclass(frozen=True, slots=True)
class CoexistenceSettings:
    inside: MechanismSpec
    """The filter scheme at points."""

    outside: MechanismSpec
    mode_outside: MechanismSpec
    crowded: Mechanisms
    """At points; if there is no rule, at all of them."""

    otherwise: Mechanisms | None = None
    """At points that are not crowded; none: as outside."""

    rule: DensityRule | None = None
    coordination: Coordination = "central"

    def __post_init__(self) -> None:
        if self.coordination == "self-healing" and self.rule is not None and self.otherwise is None:
            raise InvalidPlan(
                "clients at points that are not crowded run nothing, and would never hear that theirs has become crowded; "
                "give them a mechanism, or coordinate centrally"
            )


@dataclass(frozen=True, slots=True)
class CoexistenceStatistics:
    at_points: int
    """Clients."""

    plans: int
    """For clients that came or left, or went from point to point."""

    plans_for_points: int
    """For all that were at a point which became crowded, or was so no longer."""

    rules: RuleStatistics


class Coexistence(TransitionsAtPoints):
    """After ``TransitionCoordinator`` and ``PlannedBroker`` among the components of the broker's host."""

    def __init__(self, zones: Zones, settings: CoexistenceSettings, gateways: ByGateways | None = None) -> None:
        """``gateways``: those of the broker, who must be told whom an event is for where they run UNICAST."""
        super().__init__(zones, settings.inside, settings.outside)
        self._gateways: Final = gateways
        self._settings: Final = settings
        stopped = settings.crowded.stopped(settings.mode_outside)
        self._crowded: Final = settings.crowded.exchanges()
        self._otherwise: Final = (settings.otherwise or stopped).exchanges()
        self._stopped: Final = stopped.exchanges()
        self._heals: Final = settings.coordination == "self-healing" and settings.rule is not None
        self._told: Final[dict[Address, tuple[str, Sequence[Action]]]] = {}
        """What clients at points run by the last plan that they were sent, and for which place that was."""

        self._plans = self._plans_for_points = 0
        self._points: CrowdedPoints

    def start(self, host: Host) -> None:
        super().start(host)
        self._broker.schemes.gone = self._gone
        if self._gateways is not None:
            self._gateways.addressed = self._addressed
        crowding = Crowding(self._crowded, self._otherwise)
        self._points = CrowdedPoints(host, self._zones, self._settings.rule, crowding, self._differs)

    def stop(self) -> None:
        self._points.stop()

    def statistics(self) -> CoexistenceStatistics:
        return CoexistenceStatistics(
            self._points.clients(), self._plans, self._plans_for_points, self._points.statistics()
        )

    def _changed(self, client: Address, position: Point) -> None:
        if not self._broker.exchange.follows(client):
            return
        # First: who makes a point crowded is told right away what that brings.
        self._points.place(client, self._zones.at(position))
        super()._changed(client, position)
        if news := self._news(client):  # its scheme is right; it went from point to point
            self._broker.exchange.tell(news, [client], place=self._place(client))
            self._note(client, self._right_beside(client))
            self._plans += 1

    def _place(self, client: Address) -> str:
        points = self._points.points_of(client)
        if not self._heals or not points:
            return ""
        # Where points overlap, the one that decides: else who is at the other one alone would hear of it, and follow.
        return next((point for point in points if self._points.crowded((point,))), points[0])

    def _also(self, client: Address, _right: MechanismSpec) -> Sequence[Action]:
        right = self._right_beside(client)
        self._note(client, right)
        self._plans += 1
        return right

    def _news(self, client: Address) -> tuple[Action, ...]:
        """What it is to run and was not told, or was told at another point: there it would hear of what is for others."""
        place, told = self._told.get(client, ("", self._stopped))
        right = self._right_beside(client)
        return right if place != self._place(client) else tuple(action for action in right if action not in told)

    def _right_beside(self, client: Address) -> tuple[Exchange, ...]:
        points = self._points.points_of(client)
        if not points:
            return self._stopped
        return self._crowded if self._points.crowded(points) else self._otherwise

    def _differs(self, _point: str, clients: Collection[Address]) -> None:
        if self._heals:
            for client in clients:  # it will hear of it
                if client in self._told:
                    self._told[client] = self._told[client][0], self._right_beside(client)
            return
        changing: dict[tuple[Action, ...], list[Address]] = {}
        for client in clients:
            if client in self._told and (news := self._news(client)):
                changing.setdefault(news, []).append(client)
        for news, some in changing.items():
            self._broker.exchange.tell(news, some)
            self._plans_for_points += 1
            for client in some:
                self._note(client, self._right_beside(client))

    def _addressed(self, gateway: Address) -> bool:
        """Whether it may need addresses: a point's mechanism changes a moment later, or when it is heard of, and they cost little."""
        _, told = self._told.get(gateway, ("", self._stopped))
        unicast = [_unicast(actions) for actions in (self._crowded, self._otherwise)]
        settled = not self._heals and not self._points.just_changed(gateway)
        return _unicast(told) if settled else any(unicast)

    def _note(self, client: Address, actions: Sequence[Action]) -> None:
        if actions is self._stopped:
            self._told.pop(client, None)
        else:
            self._told[client] = self._place(client), actions

    def _gone(self, client: Address) -> None:
        self._told.pop(client, None)
        self._points.place(client, ())


def _unicast(actions: Sequence[Action]) -> bool:
    return any(
        isinstance(action, Exchange) and action.proxy == GATEWAY and action.target.name == UNICAST for action in actions
    )
