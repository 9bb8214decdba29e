"""The schedules of joins, leaves and failures that there are (``population.Schedule``).

Durations are seconds, counted from the start of the run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush, heapreplace, merge
from itertools import pairwise
from operator import attrgetter
from random import Random
from typing import Literal

from nearcast.errors import InvalidInput
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.simulation.distributions import Distribution
from nearcast.runtime.simulation.population import Action, Change, Schedule


def _after(start: Instant, seconds: float) -> Instant:
    return start + round(seconds * MICROSECONDS)


def _chosen(random: Random, share: float, hosts: int) -> list[int]:
    return random.sample(range(hosts), round(share * hosts))


def _check_share(share: float) -> None:
    if not 0 <= share <= 1:
        raise InvalidInput(f"a share of {share} of the hosts cannot be; give a number from 0 to 1")


def _check_seconds(seconds: Distribution, what: str) -> None:
    # A mean above 0, or time would stand still.
    if not (seconds.least >= 0 and 0 < seconds.mean < math.inf):
        raise InvalidInput(
            f"{what} from {seconds.least:g} s on, {seconds.mean:g} s on average, cannot be; give seconds above 0"
        )


@dataclass(frozen=True, slots=True)
class Stays:
    """Each host is up when its own list says so: from, until, in seconds after the start; infinity is for ever.

    What vehicles and traces tell (``road.Passing.stays``, ``traces.Replay.stays``), or a timetable of one's own.
    """

    stays: tuple[tuple[tuple[float, float], ...], ...]

    def __post_init__(self) -> None:
        for host, stays in enumerate(self.stays):
            ends = [bound for stay in stays for bound in stay]
            if not all(a <= b for a, b in pairwise(ends)) or (ends and not 0 <= ends[0] < math.inf):
                raise InvalidInput(f"host {host} cannot be up during {stays}; give seconds in rising order, from 0 on")

    def __call__(self, random: Random, start: Instant, hosts: int) -> Iterator[Change]:  # noqa: ARG002 - all is known
        if len(self.stays) > hosts:
            raise InvalidInput(f"there are stays of {len(self.stays)} hosts, but only {hosts} hosts; add some")
        changes = []
        for host, stays in enumerate(self.stays):
            for since, until in stays:
                changes.append(Change(_after(start, since), host, Action.JOIN))
                if until < math.inf:
                    changes.append(Change(_after(start, until), host, Action.LEAVE))
        # Stable: who leaves and returns at the same instant does so in that order.
        return iter(sorted(changes, key=lambda change: change.time))


@dataclass(frozen=True, slots=True)
class Explicit:
    """Exactly these: seconds after the start, host, action."""

    changes: tuple[tuple[float, int, Action], ...]

    def __post_init__(self) -> None:
        if not all(0 <= seconds < math.inf for seconds, _, _ in self.changes):
            raise InvalidInput("a change is some seconds after the start; give 0 or more")

    def __call__(self, random: Random, start: Instant, hosts: int) -> Iterator[Change]:  # noqa: ARG002 - all is known
        for seconds, host, action in sorted(self.changes, key=lambda change: change[0]):
            if not 0 <= host < hosts:
                raise InvalidInput(f"there is no host {host}; they are numbered 0 to {hosts - 1}")
            yield Change(_after(start, seconds), host, action)


@dataclass(frozen=True, slots=True)
class JoinWithin:
    """All join, each at any instant of the first ``seconds`` (THYME 6.2: 30 s, after a ``delay`` of 30 s)."""

    seconds: float
    delay: float = 0.0

    def __post_init__(self) -> None:
        if not (0 <= self.seconds < math.inf and 0 <= self.delay < math.inf):
            raise InvalidInput(f"nobody can join within {self.seconds} s after {self.delay} s; give 0 or more")

    def __call__(self, random: Random, start: Instant, hosts: int) -> Iterator[Change]:
        instants = [_after(start, self.delay + self.seconds * random.random()) for _ in range(hosts)]
        return iter(sorted(Change(instant, host, Action.JOIN) for host, instant in enumerate(instants)))


@dataclass(frozen=True, slots=True)
class TargetCurve:
    """As many are up as the curve says, to the nearest whole number.

    The curve is piecewise linear through points (seconds, hosts), and constant before the first and after the last of them.
    Who joins is chosen at random from those who are down, who goes from those who are up.
    """

    points: tuple[tuple[float, float], ...]
    go_by: Literal[Action.LEAVE, Action.FAIL] = Action.LEAVE

    def __post_init__(self) -> None:
        times = [seconds for seconds, _ in self.points]
        if not times or not all(a < b for a, b in pairwise(times)) or not -math.inf < times[0] <= times[-1] < math.inf:
            raise InvalidInput(f"the curve's instants {times} do not rise; give (seconds, hosts) in the order of time")
        if not all(0 <= hosts < math.inf for _, hosts in self.points):
            raise InvalidInput(f"the curve {self.points} asks for fewer than 0 hosts")

    def at(self, seconds: float) -> float:
        """How many are to be up."""
        if seconds <= self.points[0][0]:
            return self.points[0][1]
        for (since, low), (until, high) in pairwise(self.points):
            if seconds < until:
                return low + (high - low) * (seconds - since) / (until - since)
        return self.points[-1][1]

    def __call__(self, random: Random, start: Instant, hosts: int) -> Iterator[Change]:
        most = max(target for _, target in self.points)
        if round(most) > hosts:
            raise InvalidInput(f"the curve asks for {most:g} hosts, but there are {hosts}; add some")
        up: list[int] = []
        down = list(range(hosts))
        for seconds, rises in self._steps():
            origin, aim = (down, up) if rises else (up, down)
            # Swap with the last: taking it out of the middle would move all the others.
            index = random.randrange(len(origin))
            origin[index], origin[-1] = origin[-1], origin[index]
            aim.append(origin.pop())
            yield Change(_after(start, seconds), aim[-1], Action.JOIN if rises else self.go_by)

    def _steps(self) -> Iterator[tuple[float, bool]]:
        """When the nearest whole number changes, and whether it rises."""
        level = round(self.at(0.0))
        yield from ((0.0, True) for _ in range(level))
        for (since, low), (until, high) in pairwise([(0.0, self.at(0.0)), *(p for p in self.points if p[0] > 0)]):
            target = round(high)
            while level != target:
                border = level + 0.5 if target > level else level - 0.5
                yield since + (until - since) * (border - low) / (high - low), target > level
                level += 1 if target > level else -1


@dataclass(frozen=True, slots=True)
class OnOff:
    """A share of the hosts goes down and comes back, again and again (THYME 6.4.2, transient failures: on 120 s, off 60 s, 0.75).

    Whoever has been up for ``on`` seconds fails with ``change_probability``, else stays up for another time; and likewise
    whoever has been down for ``off`` seconds returns.  The first time begins ``delay`` seconds after the start; they are
    taken to be up then, and it is for another schedule to let them join.
    """

    on: Distribution
    off: Distribution
    change_probability: float = 1.0
    share: float = 1.0
    delay: float = 0.0
    go_by: Literal[Action.LEAVE, Action.FAIL] = Action.FAIL

    def __post_init__(self) -> None:
        _check_share(self.share)
        _check_seconds(self.on, "a time up")
        _check_seconds(self.off, "a time down")
        if not 0 < self.change_probability <= 1:
            raise InvalidInput(f"a change with probability {self.change_probability} cannot be; give 0 < p <= 1")

    def __call__(self, random: Random, start: Instant, hosts: int) -> Iterator[Change]:
        due = [
            (_after(start, self.delay + self._lasts(random, up=True)), host, True)
            for host in _chosen(random, self.share, hosts)
        ]
        heapify(due)
        while due:
            time, host, up = due[0]
            yield Change(time, host, self.go_by if up else Action.JOIN)
            heapreplace(due, (_after(time, self._lasts(random, up=not up)), host, not up))

    def _lasts(self, random: Random, *, up: bool) -> float:
        """Seconds, until a toss at the end of a time goes for the change."""
        seconds = self.on if up else self.off
        total = seconds.sample(random)
        while random.random() >= self.change_probability:
            total += seconds.sample(random)
        return total


@dataclass(frozen=True, slots=True)
class Failures:
    """A share of the hosts fails for good, each at its own instant (THYME 6.4.1: within 200 to 300 s)."""

    share: float
    at: Distribution

    def __post_init__(self) -> None:
        _check_share(self.share)
        if not self.at.least >= 0:
            raise InvalidInput(f"a failure {self.at.least:g} s after the start cannot be; give 0 or more")

    def __call__(self, random: Random, start: Instant, hosts: int) -> Iterator[Change]:
        chosen = _chosen(random, self.share, hosts)
        return iter(sorted(Change(_after(start, self.at.sample(random)), host, Action.FAIL) for host in chosen))


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Somebody comes every now and then, and stays for a while: Poisson arrivals, ``rate`` of them per second.

    Who comes while all hosts are up is turned away (Erlang's loss system).
    """

    rate: float
    lifetime: Distribution
    go_by: Literal[Action.LEAVE, Action.FAIL] = Action.LEAVE

    def __post_init__(self) -> None:
        if not 0 < self.rate < math.inf:
            raise InvalidInput(f"{self.rate} arrivals per second cannot be; give more than 0")
        _check_seconds(self.lifetime, "a lifetime")

    def __call__(self, random: Random, start: Instant, hosts: int) -> Iterator[Change]:
        if not hosts:
            raise InvalidInput("there is no host that could arrive; add some")
        away = list(range(hosts))
        random.shuffle(away)
        ends: list[tuple[Instant, int]] = []
        time = start
        while True:
            if not away:
                # Whoever came before the next one goes would be turned away; and arrivals have no memory.
                time = ends[0][0]
            time = _after(time, random.expovariate(self.rate))
            while ends and ends[0][0] <= time:
                gone, host = heappop(ends)
                away.append(host)
                yield Change(gone, host, self.go_by)
            if away:
                host = away.pop()
                yield Change(time, host, Action.JOIN)
                heappush(ends, (_after(time, self.lifetime.sample(random)), host))


@dataclass(frozen=True, slots=True)
class Together:
    """Several schedules at once, each with a stream of its own; at the same instant, the first comes first."""

    schedules: tuple[Schedule, ...]

    def __call__(self, random: Random, start: Instant, hosts: int) -> Iterator[Change]:
        parts = [schedule(Random(random.getrandbits(128)), start, hosts) for schedule in self.schedules]
        return merge(*parts, key=attrgetter("time"))
