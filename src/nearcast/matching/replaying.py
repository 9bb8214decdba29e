"""The compiled walk through a stretch of the past: reports and events in the order of their time.

Position reports move entries of the grid, events are matched against what the grid holds at their instant.  Between two
events without a report in between nothing moves, so these are matched together.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from nearcast.compiled import kernel
from nearcast.matching.columns import (
    DONE,
    NEXT_EVENT,
    OPEN_CASES,
    Events,
    Filters,
    Output,
    Predicates,
    Scratch,
    Subscribers,
)
from nearcast.matching.grid import OK, Floats, Grid, Int32s, Int64s
from nearcast.matching.kernels import match_places
from nearcast.matching.subscribers import place_clients

NO_ROOM: Final = 16
"""Added to the status of a grid that has to grow before the walk goes on."""


class Moves(NamedTuple):
    """Position reports in the order of their time; ``before[k]`` of them count when event k is published."""

    numbers: Int32s
    lat: Floats
    lon: Floats
    before: Int64s


class OpenPositions(NamedTuple):
    """Where the client of an open case was: when the model is asked, it will have moved on."""

    lat: Floats
    lon: Floats


@kernel
def walk(
    grid: Grid,
    where: Int32s,
    filters: Filters,
    predicates: Predicates,
    subscribers: Subscribers,
    events: Events,
    which: Int32s,
    moves: Moves,
    made: Int64s,
    first_stamp: int,
    out: Output,
    positions: OpenPositions,
    scratch: Scratch,
) -> int:
    """Go on from ``progress[NEXT_EVENT]`` and the move ``made[0]`` to the last event.

    Returns DONE, or what has to grow before the call is repeated to go on.
    """
    progress = out.progress
    last = which.shape[0]
    first = progress[NEXT_EVENT]
    while first < last:
        before = moves.before[first]
        if made[0] < before:
            status, made[0] = place_clients(
                grid, where, subscribers, moves.numbers, moves.lat, moves.lon, made[0], before
            )
            if status != OK:
                return NO_ROOM + status
        end = first + 1
        while end < last and moves.before[end] == before:
            end += 1
        opened = progress[OPEN_CASES]
        status = match_places(grid, filters, predicates, subscribers, events, which[:end], first_stamp, out, scratch)
        for case in range(opened, progress[OPEN_CASES]):
            client = subscribers.client[out.open_item[case]]
            positions.lat[case] = subscribers.lat[client]
            positions.lon[case] = subscribers.lon[client]
        if status != DONE:
            return status
        first = end
    return DONE
