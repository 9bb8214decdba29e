"""Transitions by experience: the broker learns what each filter scheme costs in its situation, and runs the cheapest one.

Experience comes from the scheme that runs, and from *shadows* of the others: some clients, the events of the window, and the real
halves of the candidate without a network.  As long as clients report how they move, shadows know all; under schemes with
channels they know where clients were when they last asked, which is enough to tell whom another scheme would notify, and what
they have learned of reports before.  Decisions are ``learning``'s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final

from nearcast.dissemination.cloud_messages import Alive
from nearcast.dissemination.planned_broker import PlannedBroker
from nearcast.dissemination.wire import message_of
from nearcast.errors import TransitionFailed
from nearcast.filtering.context import ClientContext
from nearcast.filtering.registry import scheme_of
from nearcast.filtering.scheme import Territory
from nearcast.model.event import Event
from nearcast.model.geometry import Point, offset
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.planning.estimates import Load, Observation
from nearcast.planning.expectations import Circumstances, detail, expectation, tells
from nearcast.planning.learning import Learner, LearnerSettings, LearnerStatistics
from nearcast.planning.recall_estimate import RecallCounts, RecallEstimator
from nearcast.planning.shadows import Shadow, ShadowStatistics
from nearcast.runtime.host import Component, Host
from nearcast.runtime.messages import encoded
from nearcast.runtime.ports import Address, Fix
from nearcast.transition.specification import MechanismSpec

SAMPLE: Final = 60
"""Clients whose shadows are kept."""

EVENTS: Final = 20
"""Events of a window, about, that are shown to the shadows."""


@dataclass(frozen=True, slots=True)
class AdaptiveSettings:
    candidates: tuple[MechanismSpec, ...]
    window: float = 2.0
    """Seconds between two decisions."""

    learner: LearnerSettings = field(default_factory=LearnerSettings)
    circumstances: Circumstances = field(default_factory=Circumstances)


@dataclass(frozen=True, slots=True)
class AdaptiveStatistics:
    learner: LearnerStatistics | None
    """None before the first client has said where it is."""

    shadows: dict[MechanismSpec, ShadowStatistics]
    failed: int
    """Transitions that the broker could not carry out; tried again after the next window."""


@dataclass(slots=True)
class _Window:
    """What is counted until the next decision."""

    events: int = 0
    shown: int = 0
    shown_bytes: int = 0
    told: list[int] = field(default_factory=list)
    told_bytes: list[int] = field(default_factory=list)
    offered_bytes: int = 0


class AdaptiveSchemes(Component):
    """After ``PlannedBroker`` among the components of the broker's host.  The scheme that runs at first is a candidate, too."""

    def __init__(self, territory: Territory, settings: AdaptiveSettings) -> None:
        self._territory: Final = territory
        self._settings: Final = settings
        self._learner: Learner | None = None
        self._sample: Final[dict[Address, Fix]] = {}
        self._every = 1
        self._settled: Instant = 0
        """After a switch everybody says something, which belongs to its price; what clients say then is not usual."""

        self._failed = 0
        self._host: Host
        self._broker: PlannedBroker
        self._shadows: list[Shadow]
        self._recall: RecallEstimator
        self._before: list[ShadowStatistics]
        self._window: _Window

    def start(self, host: Host) -> None:
        self._host = host
        self._broker = broker = host.component(PlannedBroker)
        overhead = self._settings.circumstances.overhead
        specs = dict.fromkeys([broker.scheme, *self._settings.candidates])
        self._shadows = [Shadow(spec, self._territory, overhead) for spec in specs]
        self._recall = RecallEstimator(len(self._shadows), 3.0 * self._settings.circumstances.location_interval)
        self._open()
        broker.schemes.watch = _both(broker.schemes.watch, self._reported)
        broker.schemes.published = self._published
        host.timers.every(self._settings.window, self._close)

    def statistics(self) -> AdaptiveStatistics:
        return AdaptiveStatistics(
            learner=self._learner.statistics() if self._learner else None,
            shadows={shadow.spec: shadow.statistics() for shadow in self._shadows},
            failed=self._failed,
        )

    # What happens

    def _reported(self, client: Address, context: ClientContext) -> None:
        before = self._sample.get(client)
        if context.position is None or not context.subscriptions or (before is None and len(self._sample) >= SAMPLE):
            return
        if before is not None and context.measured <= before.time:
            return
        fix = _fix(before, context.measured, context.position)
        self._sample[client] = fix
        running = scheme_of(self._broker.scheme)
        if detail(running) is not None:
            self._recall.reported(client, fix.time, fix.position, context.subscriptions, stays=detail(running) != 0.0)
        for shadow in self._shadows:
            shadow.report(client, fix, context.subscriptions)

    def _published(self, event: Event, receivers: Collection[Address]) -> None:
        window = self._window
        window.events += 1
        if (window.events - 1) % self._every or not self._sample:
            return
        size = len(encoded(message_of(event))) + self._settings.circumstances.overhead
        window.shown += 1
        window.shown_bytes += size
        window.offered_bytes += size * len(self._sample)
        told: list[Collection[Address]] = []
        for number, shadow in enumerate(self._shadows):
            found: Collection[Address] = shadow.receivers(event)
            window.told[number] += len(found)
            window.told_bytes[number] += size * len(found)
            told.append(receivers if shadow.spec == self._broker.scheme else found)
        self._recall.published(event, told)

    # What follows from it

    def _open(self) -> None:
        count = len(self._shadows)
        self._window = _Window(told=[0] * count, told_bytes=[0] * count)
        self._before = [shadow.statistics() for shadow in self._shadows]

    def _close(self) -> None:
        self._forget_those_who_left()
        self._recall.expire(self._host.now())
        window, learner = self._window, self._learner or self._begin()
        self._every = max(1, math.ceil(window.events / EVENTS))
        counts = self._recall.take()
        if learner is not None:
            if self._broker.scheme != learner.running:  # somebody else has changed it
                if any(shadow.spec == self._broker.scheme for shadow in self._shadows):
                    self._switched(learner, self._broker.scheme)
            else:
                size = window.shown_bytes / window.shown if window.shown else 0.0
                clients = len(self._broker.clients)
                load = Load(self._settings.window, clients, window.events, window.events * size)
                learner.observe(load, self._observations(load, counts))
                self._decide(learner)
        self._open()

    def _begin(self) -> Learner | None:
        """As soon as somebody has said what it wants to know of."""
        if not self._sample:
            return None
        shadows, settings = self._shadows, self._settings
        radius = max(shadows[0].radius_of(client) for client in self._sample)
        expected = {
            shadow.spec: expectation(shadow.spec, self._territory, radius, settings.circumstances) for shadow in shadows
        }
        self._learner = Learner(expected, self._broker.scheme, settings.learner)
        return self._learner

    def _observations(self, load: Load, counts: RecallCounts) -> dict[MechanismSpec, Observation]:
        window, sample = self._window, len(self._sample)
        running = scheme_of(self._broker.scheme)
        found = {}
        for number, (shadow, before) in enumerate(zip(self._shadows, self._before, strict=True)):
            now = shadow.statistics()
            operations = now.match_operations - before.match_operations
            told = tells(running, scheme_of(shadow.spec)) and self._host.now() >= self._settled
            found[shadow.spec] = Observation(
                offered_bytes=window.offered_bytes,
                told_bytes=window.told_bytes[number],
                told=window.told[number],
                events=window.shown,
                operations=operations if shadow.looks_up or not sample else operations * load.clients / sample,
                client_seconds=sample * load.seconds if told else 0.0,
                context_bytes=now.context_bytes - before.context_bytes if told else 0.0,
                context_messages=now.context_messages - before.context_messages if told else 0.0,
                due=counts.due if told else 0.0,
                found=counts.found[number] if told else 0.0,
            )
        return found

    def _decide(self, learner: Learner) -> None:
        chosen = learner.choose()
        if chosen == learner.running:
            return
        try:
            self._broker.transition(chosen)
        except TransitionFailed:
            self._failed += 1
        else:
            self._switched(learner, chosen)

    def _switched(self, learner: Learner, to: MechanismSpec) -> None:
        learner.switched(to)
        self._recall.restart()
        settling = self._settings.circumstances.location_interval + self._settings.window
        self._settled = self._host.now() + round(settling * MICROSECONDS)

    def _forget_those_who_left(self) -> None:
        present = frozenset(self._broker.clients)
        for client in [client for client in self._sample if client not in present]:
            del self._sample[client]
            self._recall.forget(client)
            for shadow in self._shadows:
                shadow.forget(client)


def alive_bytes(overhead: int) -> int:
    """What a client sends that has nothing to say."""
    return len(encoded(Alive(scheme="EGRID"))) + overhead


def _fix(before: Fix | None, time: Instant, position: Point) -> Fix:
    """A report as a fix; how the client moves is told by the one before, because most schemes do not say."""
    if before is None:
        return Fix(time, position, 0.0, 0.0, None)
    east, north = offset(before.position, position)
    metres, seconds = math.hypot(east, north), (time - before.time) / MICROSECONDS
    heading = math.degrees(math.atan2(east, north)) % 360.0 if metres else None
    return Fix(time, position, 0.0, metres / seconds, heading)


def _both(
    first: Callable[[Address, ClientContext], None], second: Callable[[Address, ClientContext], None]
) -> Callable[[Address, ClientContext], None]:
    def watch(client: Address, context: ClientContext) -> None:
        # The second one first: the first may exchange schemes, and with them what is known of the client.
        second(client, context)
        first(client, context)

    return watch
