"""How a broker with filter schemes works, what it has done, and what it must not forget."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from nearcast.filtering.broker_half import BrokerHalf
from nearcast.filtering.missing import Strategy
from nearcast.model.time import MICROSECONDS
from nearcast.transition.custom import Transition
from nearcast.transition.null import NullMechanism
from nearcast.transition.plan import ExecutionPlan
from nearcast.transition.specification import MechanismSpec

EVERYBODY: Final = "everybody"
"""The group of hosts that total transitions are for, newcomers included."""

PATIENCE: Final = MICROSECONDS
"""So long a plan may take to a client, before its broker believes that it was lost."""

PINNED: Final = "pinned filter scheme"
"""The proxy of those clients that insist on a scheme of their own."""


@dataclass(slots=True)
class Memory:
    """What a broker must not forget when it fails; whoever builds it keeps this for it, on a disk or elsewhere."""

    plans: tuple[ExecutionPlan, ...] = ()
    """What everybody was told last."""

    clock: int = 0
    """Of the last plan, also if it was for some clients only: these would take another plan of that clock for an old one."""


class Forgetting(Transition[BrokerHalf, BrokerHalf]):
    """No transfer of state: what the documents compare with (LCN 2016, V; BYPASS.KOM 6.2.2)."""

    source = target = NullMechanism

    def transfer(self, source: BrokerHalf, target: BrokerHalf, members: Collection[str] | None) -> None: ...


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """How a broker works; the defaults lose nothing and double nothing in a transition."""

    scheme: MechanismSpec
    """At first."""

    state_transfer: bool = True
    overlap: bool = True
    grace: float = 60.0
    """Seconds for which the old scheme goes on at most for clients of which nothing is heard."""

    missing_context: Strategy = "ignore"
    wait_at_most: float = 2.0
    forget_after: float = 60.0


@dataclass(frozen=True, slots=True)
class BrokerStatistics:
    clients: int
    events: int
    notifications: int
    forgotten: int
    """Clients that fell silent and were forgotten."""

    refused: int
    """Schemes that clients asked for and the broker does not have."""

    match_operations_counted: int
    """As the documents count them, see ``filtering.broker_half.Tally``."""

    match_operations_done: int
    multicasts: int
    overlaps: int
    waiting: int
    given_up: int
