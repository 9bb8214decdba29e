"""The compiled heart of matching: which subscriptions accept these events.

For a tile of events at a time: list the cells around each event and call for their rows of the table, look the cells
up and call for their buckets, then test the buckets sixteen entries a step.  By the time memory is needed, it has
come.  A subscription that passes is written out; one that needs what only the model can say (a polygon, a
predicate that is no conjunction of comparisons, a border within a micrometre) is written to the list of open cases.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from nearcast.compiled import inlined, kernel
from nearcast.matching.columns import (
    ACCEPTED,
    AREA_OPEN,
    BORDER,
    BORDERS,
    CANDIDATES,
    CELLS,
    CLOSED,
    DONE,
    EVERYWHERE,
    FETCHED,
    INSIDE,
    NEAR_FULL,
    NEXT_EVENT,
    ONLY_THE_MODEL_KNOWS,
    OPEN,
    OPEN_CASES,
    OPEN_FULL,
    OUTSIDE,
    PREDICATE_OPEN,
    PRESENCE_LEVEL,
    REFINE,
    REJECTED,
    RESULTS,
    RESULTS_FULL,
    STAMP,
    STORED,
    TILE,
    UNMEASURED,
    Events,
    Filters,
    Output,
    Predicates,
    Scratch,
    Subscribers,
)
from nearcast.matching.grid import (
    CAPACITY,
    COUNT,
    FILTER_BITS,
    FULL_TURN,
    HALF_TURN,
    HOLDER,
    KEY,
    ROW,
    SOUTH,
    START,
    UNIT_METRES,
    UNIT_RADIANS,
    Floats,
    Grid,
    Int32s,
    Int64s,
    home,
    least_units,
    level_of,
    slot_of,
    stretch,
    to_x,
    to_y,
    whole,
)
from nearcast.matching.judging import judge, wanted
from nearcast.matching.measuring import (
    ERROR,
    INNER,
    LARGEST_ERROR,
    MARGIN,
    OUTER,
    SHAPE,
    cells_around,
    doubt,
    half_width,
    haversine,
    measured,
    signed_square,
)
from nearcast.matching.vector import LANES, peek, poke, prefetch, step

_POWERS: Final = 2.0 ** np.arange(17)
_INVERSES: Final = 1 / _POWERS


@kernel
def match_places(
    grid: Grid,
    filters: Filters,
    predicates: Predicates,
    subscribers: Subscribers,
    events: Events,
    which: Int32s,
    first_stamp: int,
    out: Output,
    scratch: Scratch,
) -> int:
    """Match the events ``which``, from ``progress[NEXT_EVENT]`` on, against areas of interest and those without any.

    Returns DONE, or what has to grow before the call is repeated to go on.
    """
    progress = out.progress
    at, open_cases = progress[RESULTS], progress[OPEN_CASES]
    n = which.shape[0]
    for first in range(progress[NEXT_EVENT], n, TILE):
        last = min(n, first + TILE)
        _fetch(grid, events, which, first, last, scratch, progress)
        status = DONE
        near = whole(0)
        for k in range(first, last):
            status, near = _near(grid, events, which[k], k - first, near, scratch, progress)
            if status != DONE:
                progress[NEXT_EVENT], progress[RESULTS], progress[OPEN_CASES] = first, at, open_cases
                return status
        # Only when the whole tile is written is it read again: what was just written cannot be read at once.
        for k in range(first, last):
            event, t = which[k], k - first
            stamp = first_stamp + STAMP * k
            began, open_began = at, open_cases
            topic = events.topic[event]
            for j in range(events.topic_start[topic], events.topic_start[topic + 1]):
                filters.topic_stamp[events.topic_filters[j]] = stamp
            status, at, open_cases = _interested(
                event, stamp, t, events, filters, predicates, subscribers, out, scratch, at, open_cases
            )
            if status == DONE:
                status, at, open_cases = _chained(
                    event, stamp, events, filters, predicates, subscribers, out, at, open_cases
                )
            if status != DONE:
                progress[NEXT_EVENT], progress[RESULTS], progress[OPEN_CASES] = k, began, open_began
                return status
            out.offsets[k + 1] = at
    progress[NEXT_EVENT], progress[RESULTS], progress[OPEN_CASES] = n, at, open_cases
    return DONE


@inlined
def _fetch(
    grid: Grid, events: Events, which: Int32s, first: int, last: int, scratch: Scratch, progress: Int64s
) -> None:
    """Find the cells around the events of a tile, and let their buckets come."""
    table, pool, keys, cells, ends = grid.table, grid.pool, scratch.keys, scratch.cells, scratch.ends
    size = last - first
    listed = whole(0)
    for t in range(size):
        event = which[first + t]
        lat = events.lat[event]
        if lat == lat:  # noqa: PLR0124 - not NaN
            cosine = math.cos(math.radians(lat))
            scratch.cosines[t] = cosine
            x, y = to_x(events.lon[event]), to_y(lat)
            listed = cells_around(grid, x, y, cosine, keys, listed, scratch.shapes[t])
        ends[t + 1] = listed
    for j in range(listed):
        prefetch(table, home(table, peek(keys, j)) * ROW)
    progress[CELLS] += listed
    found = whole(0)
    j = whole(0)
    for t in range(size):
        while j < peek(ends, t + 1):
            key = peek(keys, j)
            slot = slot_of(table, key) * ROW
            count = peek(table, slot + COUNT)
            if peek(table, slot + KEY) == key and count > 0:
                start, capacity = peek(table, slot + START), peek(table, slot + CAPACITY)
                poke(cells, found, start)
                poke(cells, found + 1, count)
                poke(cells, found + 2, capacity)
                poke(cells, found + 3, key)
                found += 4
                # Most buckets are fetched without a branch to guess; of the longest, the processor itself sees how
                # they go on.
                prefetch(pool, start)
                prefetch(pool, start + 16)
                prefetch(pool, start + 32)
                prefetch(pool, start + 48)
                prefetch(pool, start + 64)
                prefetch(pool, start + 80)
                if capacity > FETCHED:
                    for line in range(start + 96, start + min(3 * capacity, 12 * FETCHED), 16):
                        prefetch(pool, line)
            j += 1
        ends[t + 1] = found
    ends[0] = 0


@inlined
def _near(
    grid: Grid, events: Events, event: int, t: int, near: int, scratch: Scratch, progress: Int64s
) -> tuple[int, int]:
    """Write all entries that are near an event to the scratch, from ``near`` on; returns status and where they end."""
    pool, cells, shapes = grid.pool, scratch.cells, scratch.shapes[t]
    candidates = whole(0)
    first, last = peek(scratch.ends, t), peek(scratch.ends, t + 1)
    scratch.near[t] = near
    scratch.near[t + 1] = near
    if first == last:
        return DONE, near
    lat = events.lat[event]
    x, y = to_x(events.lon[event]), to_y(lat)
    cosine = scratch.cosines[t]
    sine = math.copysign(math.sqrt(max(0.0, 1 - cosine * cosine)), lat)
    for j in range(first, last, 4):
        start, count, capacity = peek(cells, j), peek(cells, j + 1), peek(cells, j + 2)
        key = peek(cells, j + 3)
        if near + count + 2 * LANES > scratch.holders.shape[0]:
            return NEAR_FULL, near
        candidates += count
        level, row = key >> 48, (key >> 24) & 0xFFFFFF
        shift = level + stretch(row, level)
        # One step in the cell is so many units north and east.
        north, east = _POWERS[max(0, level - 16)], _POWERS[max(0, shift - 16)]
        away_east = (x - ((key & 0xFFFFFF) << shift)) & (FULL_TURN - 1)
        away_east = away_east - FULL_TURN if away_east >= HALF_TURN else away_east
        shape = (
            np.float32(away_east * _INVERSES[max(0, shift - 16)]),
            np.float32((y + SOUTH - (row << level)) * _INVERSES[max(0, level - 16)]),
            np.float32(north * north),
            np.float32(east * east * cosine * cosine),
            np.float32(-east * east * north * cosine * sine * UNIT_RADIANS),
            np.float32(peek(shapes, level * SHAPE + OUTER)),
            np.float32(peek(shapes, level * SHAPE + INNER)),
        )
        mark = BORDER if peek(shapes, level * SHAPE + ERROR) < LARGEST_ERROR else UNMEASURED
        # Two steps at a time, even where the second one is idle: most buckets need two, and a wrong guess costs more.
        offset = whole(0)
        while True:
            for _ in range(2):
                near += step(
                    pool, start + offset, capacity, count - offset, whole(mark), shape,
                    scratch.holders, scratch.tags, scratch.squares, near,
                )  # fmt: skip
                offset += LANES
            if offset >= count:
                break
    progress[CANDIDATES] += candidates
    scratch.near[t + 1] = near
    return DONE, near


@inlined
def _interested(
    event: int, stamp: int, t: int, events: Events, filters: Filters, predicates: Predicates,
    subscribers: Subscribers, out: Output, scratch: Scratch, at: int, open_cases: int,
) -> tuple[int, int, int]:  # fmt: skip
    """Of those who are near, keep whose filters accept the event.

    Most are decided by their topic filter, without branches, for there is no guessing who wants what.  Those with a
    predicate, a time frame, or near a border are put aside for a closer look.
    """
    holders, tags, aside = scratch.holders, scratch.tags, scratch.aside
    owners, marks, gate, topic_stamp = out.owners, out.marks, filters.gate, filters.topic_stamp
    first, last = peek(scratch.near, t), peek(scratch.near, t + 1)
    if at + last - first + LANES > owners.shape[0]:
        return RESULTS_FULL, at, open_cases
    put_aside = whole(0)
    for r in range(first, last):
        tag = peek(tags, r)
        topic_filter = peek(gate, tag & FILTER_BITS)
        plain = tag <= FILTER_BITS
        poke(owners, at, peek(holders, r))
        poke(marks, at, ~tag)
        poke(aside, put_aside, r)
        at += plain & (peek(topic_stamp, topic_filter) == stamp)
        put_aside += (topic_filter == CLOSED) | (not plain)
    for i in range(put_aside):
        r = peek(aside, i)
        tag, holder = whole(peek(tags, r)), whole(peek(holders, r))
        verdict = judge(tag & FILTER_BITS, stamp, event, events, filters, predicates)
        if tag <= FILTER_BITS and verdict != OPEN:  # by far the most: again without a branch on the verdict
            owners[at] = holder
            marks[at] = ~tag
            at += verdict == ACCEPTED
            continue
        if verdict == REJECTED:
            continue
        stored = tag & (FILTER_BITS | STORED)
        area = _area(tag, scratch.squares[r], filters.units[tag & FILTER_BITS], scratch.shapes[t], out.progress)
        if area == OUTSIDE:
            continue
        if area == INSIDE and verdict != OPEN and stored <= FILTER_BITS:
            owners[at] = holder
            marks[at] = ~stored
            at += 1
            continue
        # Now every subscription counts by itself: that of the entry, or all that look like it.
        item = holder if stored > FILTER_BITS else whole(subscribers.first[holder])
        while item >= 0:
            if subscribers.tag[item] == stored and wanted(item, stored, event, events, subscribers):
                status, at, open_cases = _settle(
                    item, event, verdict, area, events, subscribers, out, at, open_cases, put_aside - i
                )
                if status != DONE:
                    return status, at, open_cases
            if stored > FILTER_BITS:
                break
            item = whole(subscribers.next_of_client[item])
    return DONE, at, open_cases


@inlined
def _area(tag: int, square: float, units: int, shapes: Floats, progress: Int64s) -> int:
    """Whether an entry is near by its own radius: INSIDE, OUTSIDE, or not to be said from here."""
    if tag & UNMEASURED:
        return ONLY_THE_MODEL_KNOWS
    if tag & BORDER:
        progress[BORDERS] += 1
        level = level_of(units)
        margin, error = shapes[level, MARGIN], shapes[level, ERROR]
        if square > signed_square((units + margin) * (1 + error)):
            return OUTSIDE
        if square > signed_square((least_units(units) - margin) * (1 - error)):
            return ONLY_THE_MODEL_KNOWS
    return ONLY_THE_MODEL_KNOWS if tag & REFINE else INSIDE


@inlined
def _settle(
    item: int, event: int, verdict: int, area: int, events: Events, subscribers: Subscribers, out: Output,
    at: int, open_cases: int, to_come: int,
) -> tuple[int, int, int]:  # fmt: skip
    """Write out one subscription, or leave it open; ``to_come`` may be written after it without asking for room."""
    if area == ONLY_THE_MODEL_KNOWS:
        area = measured(item, event, events, subscribers)
    if area == OUTSIDE:
        return DONE, at, open_cases
    if verdict == OPEN or area == ONLY_THE_MODEL_KNOWS:
        if open_cases == out.open_item.shape[0]:
            return OPEN_FULL, at, open_cases
        out.open_event[open_cases] = event
        out.open_item[open_cases] = item
        out.open_what[open_cases] = (AREA_OPEN if area == ONLY_THE_MODEL_KNOWS else 0) | (
            PREDICATE_OPEN if verdict == OPEN else 0
        )
        return DONE, at, open_cases + 1
    if at + to_come + LANES >= out.owners.shape[0]:
        return RESULTS_FULL, at, open_cases
    out.owners[at] = subscribers.client[item]
    out.marks[at] = item
    return DONE, at + 1, open_cases


@inlined
def _chained(
    event: int, stamp: int, events: Events, filters: Filters, predicates: Predicates, subscribers: Subscribers,
    out: Output, at: int, open_cases: int,
) -> tuple[int, int, int]:  # fmt: skip
    """Subscriptions without an area; and the others too, where the event has no place: it passes every area."""
    topic = events.topic[event]
    chains = 2 if np.isnan(events.lat[event]) else 1
    for j in range(events.topic_start[topic], events.topic_start[topic + 1]):
        for chain in range(chains):
            number = filters.first_in_topic[events.topic_filters[j], chain]
            while number >= 0:
                verdict = judge(number, stamp, event, events, filters, predicates)
                item = filters.first[number] if verdict != REJECTED else -1
                while item >= 0:
                    if wanted(item, subscribers.tag[item], event, events, subscribers):
                        status, at, open_cases = _settle(
                            item, event, verdict, INSIDE, events, subscribers, out, at, open_cases, 0
                        )
                        if status != DONE:
                            return status, at, open_cases
                    item = subscribers.next_of_filter[item]
                number = filters.next_in_topic[number]
    return DONE, at, open_cases


MOST_REACH_CELLS: Final = 4096
"""Beyond so many cells, looking at every client is cheaper than looking the cells up."""


@kernel
def match_reaches(
    positions: Grid,
    filters: Filters,
    predicates: Predicates,
    subscribers: Subscribers,
    clients: int,
    events: Events,
    which: Int32s,
    reach_lat: Floats,
    reach_lon: Floats,
    reach_metres: Floats,
    first_stamp: int,
    out: Output,
    found: Int32s,
) -> int:
    """Match events that have a reach: first who stands inside a circle around it, then what these clients want.

    ``found`` has room for all clients.  Whether a client really stands in the reach is for the caller to say.
    """
    progress = out.progress
    at, open_cases = progress[RESULTS], progress[OPEN_CASES]
    for k in range(progress[NEXT_EVENT], which.shape[0]):
        event = which[k]
        stamp = first_stamp + STAMP * k
        topic = events.topic[event]
        for j in range(events.topic_start[topic], events.topic_start[topic + 1]):
            filters.topic_stamp[events.topic_filters[j]] = stamp
        inside = _clients_near(
            positions, subscribers, clients, reach_lat[event], reach_lon[event], reach_metres[event], found
        )
        progress[CANDIDATES] += inside
        began, open_began = at, open_cases
        status = DONE
        for i in range(inside):
            item = subscribers.first[found[i]]
            while item >= 0 and status == DONE:
                tag = whole(subscribers.tag[item])
                verdict = judge(tag & FILTER_BITS, stamp, event, events, filters, predicates)
                if verdict != REJECTED and wanted(item, tag, event, events, subscribers):
                    everywhere = subscribers.kind[item] == EVERYWHERE or np.isnan(events.lat[event])
                    area = INSIDE if everywhere else ONLY_THE_MODEL_KNOWS
                    status, at, open_cases = _settle(
                        item, event, verdict, area, events, subscribers, out, at, open_cases, 0
                    )
                item = subscribers.next_of_client[item]
            if status != DONE:
                progress[NEXT_EVENT], progress[RESULTS], progress[OPEN_CASES] = k, began, open_began
                return status
        out.offsets[k + 1] = at
    progress[NEXT_EVENT], progress[RESULTS], progress[OPEN_CASES] = which.shape[0], at, open_cases
    return DONE


@inlined
def _clients_near(
    grid: Grid, subscribers: Subscribers, clients: int, lat: float, lon: float, metres: float, found: Int32s
) -> int:
    """Clients whose position is surely or maybe within so many metres of a point."""
    n = 0
    x, y = to_x(lon), to_y(lat)
    level = PRESENCE_LEVEL
    reach = metres / UNIT_METRES + 4
    limit = metres + doubt(metres)
    width = half_width(reach, math.cos(math.radians(lat)))
    first_row = max(whole(0), y + SOUTH - whole(reach) - 1) >> level
    last_row = min(whole(2 * SOUTH), y + SOUTH + whole(reach) + 1) >> level
    rows = last_row - first_row + 1
    if width >= HALF_TURN or rows * (2 * width / (1 << level) + 2) > MOST_REACH_CELLS:
        for client in range(clients):
            if haversine(lat, lon, subscribers.lat[client], subscribers.lon[client]) <= limit:  # NaN is not
                found[n] = client
                n += 1
        return n
    span = whole(width) + 1
    for row in range(first_row, last_row + 1):
        shift = level + stretch(row, level)
        first = ((x - span) & (FULL_TURN - 1)) >> shift
        mask = (whole(1) << (32 - shift)) - 1
        many = (((((x + span) & (FULL_TURN - 1)) >> shift) - first) & mask) + 1
        for j in range(many):
            key = (whole(level) << 48) | (whole(row) << 24) | ((first + j) & mask)
            slot = slot_of(grid.table, key)
            if grid.table[slot, KEY] != key:
                continue
            start, capacity = grid.table[slot, START], grid.table[slot, CAPACITY]
            for i in range(start, start + grid.table[slot, COUNT]):
                client = grid.pool[i + HOLDER * capacity]
                if haversine(lat, lon, subscribers.lat[client], subscribers.lon[client]) <= limit:
                    found[n] = client
                    n += 1
    return n
