"""``nearcast bench overlay``: how many seconds of 1,000 routers and 10,000 people one second of ours holds (Contextcast 4.5.1)."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from nearcast.benchmark.report import OURSELVES, Measurement, Missing, Report, machine
from nearcast.scenario.contextcast.network import RouterNetwork
from nearcast.scenario.contextcast.setups import S1_ACROSS, S1_ROUTERS, ground_of, s1
from nearcast.scenario.contextcast.strategies import Propagation, Strategy
from nearcast.scenario.contextcast.walking import Walking, WalkingSettings

Progress = Callable[[str], None]

SPEED: Final = "simulated_seconds_per_second"
HOPS: Final = "hops_per_simulated_second"
PEOPLE: Final = 10_000
SETTLING: Final = 5.0


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    strategy: Strategy
    reported: float | None
    seconds: float


def kinds(*, quick: bool) -> tuple[Kind, ...]:
    """What is simulated; the last two differ only in whether each hop of an update is."""
    every = 20.0
    return (
        Kind("service areas", Strategy(coarse=True), None, 20.0),
        Kind("service areas, aggregated", Strategy(Propagation.AGGREGATED, coarse=True), None, 10.0),
        Kind("every 20 m", Strategy(), every, 10.0),
        Kind("every 20 m, hop by hop", Strategy(hop_by_hop=True), every, 10.0 if quick else 2.0),
    )


def run(*, quick: bool = False, peers: bool = True, progress: Progress = lambda _: None) -> Report:  # noqa: ARG001 - there are none
    """A quick world is smaller, with as many people on each square and as many routers for each of them."""
    across = 4 if quick else S1_ACROSS
    share = (across / S1_ACROSS) ** 2
    routers, people = round(S1_ROUTERS * share), round(PEOPLE * share)
    results: list[Measurement] = []
    for kind in kinds(quick=quick):
        progress(f"{kind.name}: {routers:,} routers, {people:,} people, {kind.seconds:g} s")
        results += measured(kind, routers, across, people)
    return Report(
        "overlay", machine(), tuple(results), (Missing("others", "no other simulator routes by context"),), {}
    )


def measured(kind: Kind, routers: int, across: int, people: int) -> list[Measurement]:
    layout, areas = s1(1, routers, across)
    network = RouterNetwork(1, layout, kind.strategy, ground_of(across))
    Walking(network, areas, WalkingSettings(people=people, reported=kind.reported))
    network.run(SETTLING)
    gc.collect()
    # What is there stays: to look through it again and again is no part of a simulation.
    gc.freeze()
    before, started = network.load(), time.process_time()
    network.run(kind.seconds)
    spent = time.process_time() - started
    gc.unfreeze()
    load = network.load() - before
    about = {"contexts": kind.name, "routers": routers, "people": people, "seconds": kind.seconds}
    return [
        Measurement(OURSELVES, SPEED, "s/s", kind.seconds / spent, about),
        Measurement(OURSELVES, HOPS, "1/s", (load.updates + load.messages) / kind.seconds, about),
    ]
