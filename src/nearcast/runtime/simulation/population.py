"""Who is up when: hosts that join, leave in good order, fail and return.

A *schedule* is called with a stream of random numbers, the start of the run and the number of hosts, and answers with
changes in the order of time; hosts are numbers from 0 on.  ``Population`` applies them to the hosts of a world; the
schedules that there are stand in ``schedules``.  Whoever is down moves all the same (BYPASS 6.4.3).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Final, NamedTuple, Protocol

from nearcast.model.time import Instant
from nearcast.runtime.simulation.kernel import Simulation


class Action(StrEnum):
    JOIN = "join"
    """Come up, for the first time or again."""

    LEAVE = "leave"
    FAIL = "fail"
    """Stop dead."""


class Change(NamedTuple):
    time: Instant
    host: int
    action: Action


class Schedule(Protocol):
    """When hosts change."""

    def __call__(self, random: Random, start: Instant, hosts: int) -> Iterator[Change]:
        """In the order of time, perhaps without end; all choices come from ``random``."""


class Changeable(Protocol):
    """What a population needs of a host (``world.SimulatedHost``)."""

    @property
    def up(self) -> bool: ...
    def join(self) -> None: ...
    def leave(self) -> None: ...
    def fail(self) -> None: ...


@dataclass(frozen=True, slots=True)
class PopulationStatistics:
    """How often what happened; joining while up and leaving while down are not counted, for they change nothing."""

    up: int
    joined: int
    left: int
    failed: int


class Population:
    """Applies a schedule to hosts, one change at a time."""

    def __init__(self, simulation: Simulation, hosts: Sequence[Changeable], schedule: Schedule, random: Random) -> None:
        self._simulation: Final = simulation
        self._hosts: Final = hosts
        self._changes: Final = schedule(random, simulation.now(), len(hosts))
        self._counts: Final = dict.fromkeys(Action, 0)
        self._await_next()

    def statistics(self) -> PopulationStatistics:
        counts = self._counts
        up = sum(host.up for host in self._hosts)
        return PopulationStatistics(up, counts[Action.JOIN], counts[Action.LEAVE], counts[Action.FAIL])

    def _await_next(self) -> None:
        change = next(self._changes, None)
        if change is not None:
            self._simulation.at(change.time, self._apply, change)

    def _apply(self, change: Change) -> None:
        host = self._hosts[change.host]
        if host.up != (change.action is Action.JOIN):
            self._counts[change.action] += 1
            act = {Action.JOIN: host.join, Action.LEAVE: host.leave, Action.FAIL: host.fail}[change.action]
            act()
        self._await_next()
