"""Which mechanism a crowd of this size and restlessness is best off with, and how all of it changes to that one.

THYME's evaluation says what is good for what: PL/SG is faster where a flood costs little, in a small crowd (6.3); DCS sends less in a large
one, and loses less when hosts fail (6.4).  Where that begins was measured here: docs/crowdstore.md.  Every host counts the crowd (``census``) and may decide; two thresholds each,
and a number of rounds in a row, keep it from changing to and fro.  Whoever decides changes first; messages carry what their
sender runs and by which plan, so that the others follow (``transition.healing``).

Hosts follow one after the other, and what a mechanism says when it takes over is lost on those who still run the other.  So each host has it
said once more a while after its own exchange.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Final

import msgspec

from nearcast.crowdstore.census import BYTES, Census, Count
from nearcast.crowdstore.registry import MECHANISMS
from nearcast.crowdstore.service import CrowdStore
from nearcast.crowdstore.storage import PROXY
from nearcast.errors import InvalidPlan
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.host import Component, Host
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, Cancellable, Endpoint
from nearcast.transition.agent import TransitionAgent
from nearcast.transition.engine import HostEngine
from nearcast.transition.goal import Goal
from nearcast.transition.healing import HealingStatistics, SelfHealing
from nearcast.transition.plan import LATEST, Initiator, PlanId
from nearcast.transition.specification import MechanismSpec

PORT: Final = 35
_SMALL: Final = MechanismSpec("PL/SG")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """When to change; the mechanisms are by their specification, so parameters belong to them."""

    large: MechanismSpec
    """For large crowds, and for those that come and go; DCS has to be told the area."""

    small: MechanismSpec = _SMALL
    """For small ones that stay together."""

    grown: float = 90.0
    """Hosts above which a crowd is large (docs/crowdstore.md: where DCS begins to send less) ..."""

    shrunk: float = 60.0
    """... and below which it is small again."""

    restless: float = 0.1
    """The share of hosts that leave or come per minute above which a crowd comes and goes ..."""

    calm: float = 0.03
    """... and below which it no longer does."""

    rounds: int = 2
    """So many counts in a row have to say the same."""

    period: float = 30.0
    """Seconds of one round, the same for all hosts: the count has to get through the whole crowd meanwhile."""

    beat: float = 1.0
    """Seconds after which a host tells what is news to its neighbours."""

    settling: float = 10.0
    """Seconds after which all have followed."""

    def __post_init__(self) -> None:
        if not (0 < self.shrunk <= self.grown and 0 <= self.calm <= self.restless):
            raise InvalidPlan("a rule without hysteresis: shrunk <= grown and calm <= restless")
        if self.rounds < 1 or not 0 < 4 * self.beat <= self.period or not self.settling > 0:
            raise InvalidPlan("a rule needs a round or more, of at least four beats, and some time to settle")

    def wanted(self, running: MechanismSpec, count: Count) -> MechanismSpec:
        """What a crowd like this should run, that runs this now."""
        churn = 0.0 if count.turnover is None else count.turnover * 60.0 / self.period
        if count.size > self.grown or churn > self.restless:
            return self.large
        if count.size < self.shrunk and churn < self.calm and count.turnover is not None:
            return self.small
        return running


_NONE: Final = Rule(large=_SMALL)
"""Only when to count: it wants nothing else than there is."""


class Counted(Message, frozen=True, tag="crowd-count"):
    """What the sender runs, by which plan, and what it knows of the count."""

    mechanism: MechanismSpec
    clock: Annotated[int, msgspec.Meta(ge=0, le=LATEST)]
    initiator: Initiator
    round: int
    numbers: Annotated[bytes, msgspec.Meta(max_length=BYTES)] = b""


@dataclass(frozen=True, slots=True)
class ChoosingStatistics:
    mechanism: str
    size: float | None
    """Of the last count; none: there was none yet."""

    turnover: float | None
    initiated: int
    sent: int
    healing: HealingStatistics


class Choosing(Component):
    """After the ``CrowdStore`` (and the ``TransitionAgent``, if there is one) among the components of its host.

    Without a rule, or if it does not ``decide``, a host takes part in the count and follows others.  All must have the same ``period``: rounds
    are counted by it.
    """

    def __init__(self, rule: Rule | None = None, interface: str = "wifi", *, decides: bool = True) -> None:
        if rule is not None:  # at once, not when the crowd has grown
            MECHANISMS.parameters_of(rule.small)
            MECHANISMS.parameters_of(rule.large)
        self._decides: Final = decides and rule is not None
        self._rule: Final = rule or _NONE
        self._interface: Final = interface
        self._count: Count | None = None
        self._said: tuple[MechanismSpec, int] | None = None
        self._owed = False
        self._pending: Cancellable | None = None
        self._again: Cancellable | None = None
        self._initiated = self._sent = 0
        self._host: Host
        self._store: CrowdStore
        self._census: Census
        self._healing: SelfHealing
        self._endpoint: Endpoint

    def start(self, host: Host) -> None:
        self._host, self._store = host, host.component(CrowdStore)
        self._census = Census(f"{host.name} {host.now()}")
        agents = [component for component in host.components if isinstance(component, TransitionAgent)]
        goal = agents[0].goal if agents else Goal()
        self._healing = SelfHealing(host.component(HostEngine).engine, PROXY, goal)
        self._store.exchanged(self._changed)
        self._endpoint = host.link(self._interface).open(PORT, self._receive, Counted)
        self._random = host.random("crowd choosing").random
        # Beats of different hosts fall apart, those of one host never into the same instant as a round.
        host.timers.every(self._rule.beat, self._beat, first=self._random() * self._rule.beat)

    def initiate(self, mechanism: MechanismSpec) -> PlanId:
        """Change to that mechanism here, and have it spread."""
        MECHANISMS.parameters_of(mechanism)
        self._initiated += 1
        return self._healing.initiate(mechanism, self._host.name)

    def statistics(self) -> ChoosingStatistics:
        size, turnover = self._count or (None, None)
        running = str(self._store.running)
        return ChoosingStatistics(running, size, turnover, self._initiated, self._sent, self._healing.statistics())

    def _beat(self) -> None:
        number = self._host.now() // round(self._rule.period * MICROSECONDS)
        count = self._census.begin(number)
        if count is not None:
            self._count = count
            self._consider(count)
        if self._census.changed or self._owed:
            self._tell()

    def _tell(self) -> None:
        mechanism, clock, initiator = self._healing.outgoing()
        number = self._census.round
        if number is not None:
            self._owed = False
            self._sent += 1
            self._endpoint.broadcast(Counted(mechanism, clock, initiator, number, self._census.tell()))

    def _receive(self, _sender: Address, message: Counted) -> None:
        self._census.hear(message.round, message.numbers)
        mechanism, clock, initiator = self._healing.outgoing()
        if (message.mechanism, message.clock, message.initiator) != (mechanism, clock, initiator):
            try:
                MECHANISMS.parameters_of(message.mechanism)
            except InvalidPlan:
                return  # nothing that can run here
            self._healing.incoming(message.mechanism, message.clock, message.initiator)
            # Whoever followed passes it on, and who knows better says so.
            self._owed = True

    def _consider(self, count: Count) -> None:
        running = self._store.running
        wanted = self._rule.wanted(running, count)
        if not self._decides or wanted == running:
            self._said = None
            return
        times = self._said[1] + 1 if self._said and self._said[0] == wanted else 1
        self._said = wanted, times
        if times >= self._rule.rounds and self._pending is None:
            # Others have come to the same end: the first one tells the others within the next beats.
            wait = self._random() * 4 * self._rule.beat
            self._pending = self._host.timers.after(wait, partial(self._decide, wanted))

    def _decide(self, wanted: MechanismSpec) -> None:
        self._pending = None
        if self._said is not None and self._said[0] == wanted and self._store.running != wanted:
            self.initiate(wanted)

    def _changed(self) -> None:
        self._said, self._owed = None, True
        if self._pending is not None:
            self._pending.cancel()
            self._pending = None
        if self._again is not None:
            self._again.cancel()
        self._again = self._host.timers.after(self._rule.settling * (1 + self._random()), self._repeat)

    def _repeat(self) -> None:
        self._again = None
        self._store.say_again()
