"""What is measured again and again: matching, moving, both in turns, and asking a peer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nearcast.benchmark.bare_kernel import BareKernel
from nearcast.benchmark.ours import Ours, batches, single_events
from nearcast.benchmark.peers import Peer
from nearcast.benchmark.report import BOUND, OURSELVES
from nearcast.benchmark.timing import Course
from nearcast.benchmark.workload import RADIUS, City, moved

Numbers = NDArray[np.int64]

BATCH: Final = 1024
_SINGLE_EVENTS: Final = 4096
_SINGLE_WALKERS: Final = 50_000


def matching(ours: Ours, world: City, checks: dict[str, Any]) -> list[Course]:
    """Batches and single events by nearcast; the bounds for batches."""
    columns = batches(world.events, BATCH)
    singles = single_events(world.events, min(_SINGLE_EVENTS, len(world.events)))
    x, y, event_x, event_y = world.plane()
    kernel = BareKernel.build(x, y, RADIUS)
    east, north = kernel.locate(event_x, event_y)
    offsets, receivers = kernel.room(BATCH)
    parameters: dict[str, Any] = {"clients": len(world.ids), "batch": BATCH}

    def match_batch(index: int) -> int:
        ours.matcher.match_batch(columns[index % len(columns)])
        return BATCH

    def match_bare(index: int) -> int:
        rows = slice(index % len(columns) * BATCH, (index % len(columns) + 1) * BATCH)
        kernel.match(east[rows], north[rows], offsets, receivers)
        return BATCH

    def match_scalar(index: int) -> int:
        rows = slice(index % len(columns) * BATCH, (index % len(columns) + 1) * BATCH)
        kernel.match_scalar(east[rows], north[rows], offsets, receivers)
        return BATCH

    def match_one(index: int) -> int:
        ours.matcher.match(singles[index % len(singles)])
        return 1

    def match_one_by_ids(index: int) -> int:
        list(ours.matcher.match(singles[index % len(singles)]))
        return 1

    metric, unit = "batch_events_per_second", "1/s"
    alone = {"clients": len(world.ids), "batch": 1}
    return [
        Course(OURSELVES, metric, unit, match_batch, {**parameters, **checks}),
        Course(BOUND, metric, unit, match_bare, parameters),
        Course(f"{BOUND}-scalar", metric, unit, match_scalar, parameters),
        Course(OURSELVES, "single_event_microseconds", "us", match_one, {**alone, "answer": "numbers"}),
        Course(OURSELVES, "single_event_microseconds", "us", match_one_by_ids, {**alone, "answer": "ids"}),
    ]


def updating(ours: Ours, world: City) -> list[Course]:
    """Moves in arrays and one by one; events and moves in turns, both ways.  Everybody walks to and fro."""
    matcher, columns = ours.matcher, batches(world.events, BATCH)
    singles = single_events(world.events, min(_SINGLE_EVENTS, len(world.events)))
    # Four crowds, so that no course finds its clients already moved by another.
    crowds = np.array_split(np.random.default_rng(4).permutation(len(world.ids)), 4)
    places = ((world.lat, world.lon), moved(world))

    def array_mover(crowd: Numbers) -> Callable[[int], int]:
        groups = np.array_split(crowd, max(1, len(crowd) // BATCH))
        steps = [(ours.numbers[group], lat[group], lon[group]) for lat, lon in reversed(places) for group in groups]

        def move_many(index: int) -> int:
            step = steps[index % len(steps)]
            matcher.move_many(*step)
            return len(step[0])

        return move_many

    def single_mover(crowd: Numbers) -> Callable[[int], int]:
        walkers = crowd[:_SINGLE_WALKERS].tolist()
        steps = [(world.ids[i], float(lat[i]), float(lon[i])) for lat, lon in reversed(places) for i in walkers]

        def move_one(index: int) -> int:
            matcher.move(*steps[index % len(steps)])
            return 1

        return move_one

    move_many, move_one = array_mover(crowds[0]), single_mover(crowds[1])
    move_many_between, move_one_between = array_mover(crowds[2]), single_mover(crowds[3])

    def move_and_match_many(index: int) -> int:
        matcher.match_batch(columns[index % len(columns)])
        return move_many_between(index)

    def move_and_match_one(index: int) -> int:
        matcher.match(singles[index % len(singles)])
        return move_one_between(index)

    clients = {"clients": len(world.ids)}
    arrays, single = {**clients, "updates": f"arrays of {BATCH}"}, {**clients, "updates": "one by one"}
    return [
        Course(OURSELVES, "position_updates_per_second", "1/s", move_many, arrays),
        Course(OURSELVES, "position_updates_per_second", "1/s", move_one, single),
        Course(OURSELVES, "interleaved_events_per_second", "1/s", move_and_match_many, arrays),
        Course(OURSELVES, "interleaved_events_per_second", "1/s", move_and_match_one, single),
    ]


def asking(peer: Peer, world: City, parameters: dict[str, Any]) -> list[Course]:
    size = min(peer.batch, len(world.events))
    requests = [peer.prepare(first, first + size) for first in range(0, len(world.events) - size + 1, size)]
    singles = [peer.prepare(index, index + 1) for index in range(min(256, len(world.events)))]

    def ask(request: Any) -> int:
        peer.query(request)
        return size

    def ask_one(request: Any) -> int:
        peer.query(request)
        return 1

    clients = {"clients": len(world.ids)}
    about = {**clients, "batch": size, "version": peer.version(), **parameters}
    return [
        Course(
            peer.name, "batch_events_per_second", "1/s", ask, about, ready=lambda index: requests[index % len(requests)]
        ),
        Course(
            peer.name,
            "single_event_microseconds",
            "us",
            ask_one,
            {**clients, "batch": 1},
            ready=lambda index: singles[index % len(singles)],
        ),
    ]
