"""``nearcast bench match``: who receives an event?  nearcast, its peers and the bare-kernel bound, side by side."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Final

import numpy as np

from nearcast.benchmark.agreement import Agreement, Truth
from nearcast.benchmark.courses import BATCH, asking, matching, updating
from nearcast.benchmark.memory import bytes_per_client
from nearcast.benchmark.ours import Ours, batches, single_events
from nearcast.benchmark.peers import PEERS, Pairs, Peer
from nearcast.benchmark.report import BOUND, OURSELVES, Measurement, Missing, Report, machine, ratios
from nearcast.benchmark.timing import take_turns
from nearcast.benchmark.workload import City, city, moved

Progress = Callable[[str], None]

SIZES: Final = (10_000, 100_000, 1_000_000)
_CHECKED_EVENTS: Final = 8 * BATCH


def run(
    clients: int | None = None, *, quick: bool = False, peers: bool = True, progress: Progress = lambda _: None
) -> Report:
    """Measure.  ``quick`` takes 100,000 clients unless told otherwise, fewer events and shorter turns."""
    clients = clients or (SIZES[1] if quick else SIZES[2])
    sizes = sorted({size for size in SIZES if size < clients} | {clients})
    rounds, seconds, events = (3, 0.1, 20 * BATCH) if quick else (7, 0.4, 100 * BATCH)
    missing: list[Missing] = []
    with ExitStack() as stack:
        progress(f"building the city with {clients:,} clients")
        world = city(clients, events)
        ours = Ours(world)
        truth = Truth(world, _CHECKED_EVENTS)
        progress("checking nearcast's answers")
        checks = _check_ours(ours, world, truth)
        present = _start_peers(stack, world, missing, progress) if peers else []
        if not peers:
            missing += [Missing(kind.name, "left out on request") for kind in PEERS]
        agreements = {peer.name: _check_peer(peer, truth, progress) for peer in present}
        courses = matching(ours, world, checks) + updating(ours, world)
        courses += [course for peer in present for course in asking(peer, world, agreements[peer.name])]
        for size in sizes[:-1]:
            smaller = city(size, events)
            courses += matching(Ours(smaller), smaller, {})[:2]
        take_turns(courses, rounds, seconds, progress)
    progress("measuring memory in a fresh process")
    results = [course.measurement() for course in courses]
    results += _growth(results, sizes)
    results.append(_memory(clients))
    found = tuple(results)
    compared = ratios(found, {"clients": clients})
    return Report("match", machine(), found, tuple(missing), compared)


def _start_peers(stack: ExitStack, world: City, missing: list[Missing], progress: Progress) -> list[Peer]:
    present: list[Peer] = []
    for kind in PEERS:
        reason = kind.available()
        if reason is None:
            progress(f"starting and loading {kind.name}")
            try:
                present.append(stack.enter_context(kind(world)))
            except Exception as error:  # noqa: BLE001 (foreign systems fail in ways of their own; the others still count)
                reason = f"did not start: {type(error).__name__}: {error}"
        if reason is not None:
            missing.append(Missing(kind.name, reason))
    return present


def _check_ours(ours: Ours, world: City, truth: Truth) -> dict[str, Any]:
    """In batches, one by one, and after everybody has moved; then back to where they were."""

    def check(expected: Truth) -> Agreement:
        total = Agreement(0, 0, 0)
        for index, batch in enumerate(batches(world.events.part(0, expected.events), BATCH)):
            pairs = ours.pairs(ours.matcher.match_batch(batch))
            total += expected.check(pairs, index * BATCH, (index + 1) * BATCH, filtered=True)
        return total

    number = {client: index for index, client in enumerate(world.ids)}
    alone = [[number[client] for client in ours.matcher.match(event)] for event in single_events(world.events, BATCH)]
    event = np.repeat(np.arange(BATCH), [len(receivers) for receivers in alone])
    client = np.array([receiver for receivers in alone for receiver in receivers], np.int64)
    total = check(truth) + truth.check(Pairs(event, client), 0, BATCH, filtered=True)
    lat, lon = moved(world, seed=5, metres=100.0)
    ours.matcher.move_many(ours.numbers, lat, lon)
    total += check(Truth(replace(world, lat=lat, lon=lon), 2 * BATCH))
    ours.matcher.move_many(ours.numbers, world.lat, world.lon)
    return _said(total + check(truth))


def _check_peer(peer: Peer, truth: Truth, progress: Progress) -> dict[str, Any]:
    """Its own spatial answers, and what is left of them after topics and predicates."""
    progress(f"checking the answers of {peer.name}")
    spatial = filtered = Agreement(0, 0, 0)
    for first in range(0, truth.events, BATCH):
        last = first + BATCH
        pairs = peer.pairs(peer.query(peer.prepare(first, last)))
        spatial += truth.check(pairs, first, last, filtered=False)
        filtered += truth.check(truth.filtered(pairs, first), first, last, filtered=True)
    return {**_said(spatial), "differing_after_filters": filtered.lacking + filtered.superfluous}


def _said(agreement: Agreement) -> dict[str, Any]:
    return {
        "checked_answers": agreement.answers,
        "differing_answers": agreement.lacking + agreement.superfluous,
    }


def _growth(results: list[Measurement], sizes: list[int]) -> list[Measurement]:
    """How many times as much an event costs in the larger city, per system that was measured in both."""
    rates = {
        (row.system, row.parameters["clients"]): row.value for row in results if row.metric == "batch_events_per_second"
    }
    found = []
    for size in reversed(sizes[1:]):
        for system in (OURSELVES, BOUND):
            value = rates[system, sizes[0]] / rates[system, size]
            found.append(Measurement(system, "growth", "1", value, {"clients": size, "from_clients": sizes[0]}))
    return found


def _memory(clients: int) -> Measurement:
    return Measurement(OURSELVES, "bytes_per_client", "B", bytes_per_client(clients), {"clients": clients})
