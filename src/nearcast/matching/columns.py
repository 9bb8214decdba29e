"""The columns that kernels read and write, and the words they share."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from nearcast.matching.grid import HIGHEST_LEVEL, Floats, Int32s, Int64s

Singles = npt.NDArray[np.float32]
Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]

TILE: Final = 16
"""Events whose memory is fetched together.  (A pipeline of events, one stage for each kind of memory, was tried and gained nothing.)"""
MOST_CELLS: Final = 21 * 128
"""Cells around one event on all levels together: fewer than 128 on each, even in the rows around a pole."""
FETCHED: Final = 32
"""Buckets up to this capacity are fetched ahead without a branch; of longer ones, a part."""
PRESENCE_LEVEL: Final = 15
"""Where clients are looked up by their own position, cells are about 300 m large."""

# Flags of a tag, above the number of the filter.  Entries of the grid hold the first three only.
REFINE: Final = 1 << 26  # the area is no circle: a circle encloses it
SINGULAR: Final = 1 << 27  # it has a time frame or lies somewhere of its own: equal tags do not mean equal fate
NO_LOCAL: Final = 1 << 28
STORED: Final = REFINE | SINGULAR | NO_LOCAL
BORDER: Final = 1 << 29  # near the border of the circle, as far as single precision can say
UNMEASURED: Final = 1 << 30  # single precision cannot measure here

# Kinds of areas, per subscription
EVERYWHERE: Final = 0
AROUND_CLIENT: Final = 1
FIXED: Final = 2

# What measuring in double precision says
OUTSIDE: Final = 0
INSIDE: Final = 1
ONLY_THE_MODEL_KNOWS: Final = 2

# Verdicts of a filter on an event, as they stand in ``memo`` on top of the event's stamp
REJECTED: Final = 0
ACCEPTED: Final = 1
OPEN: Final = 2
STAMP: Final = 4
"""Stamps are multiples of this."""

# What is open about a case
AREA_OPEN: Final = 1
PREDICATE_OPEN: Final = 2

CLOSED: Final = 0
"""The number of no topic filter: it accepts no topic."""
ADDRESSED: Final = -(2**31)
"""Stands for the subscription of a client that was addressed without one."""

BLOCK_BITS: Final = 10
BLOCK_WORDS: Final = 16
"""Conjunctions are judged 1,024 at a time, as 16 words of bits."""
FEW: Final = 8
"""So many predicates of a block are judged one by one, term by term; after that the whole block is cheaper."""

# Kinds of terms: a value between two bounds, not between them, missing; or the end of a conjunction
LAST: Final = 0
END: Final = 1
WITHIN: Final = 2
BEYOND: Final = 3
MISSING: Final = 4


class Filters(NamedTuple):
    """Distinct topic filters with predicates and classes of radius, and what they think of the present event.

    Subscriptions with and without an area never share a filter: where an event has a place, the grid finds the
    former, and only the filters of the latter are walked through.
    """

    topic: Int32s  # of a filter: its topic filter
    predicate: Int32s  # of a filter: its predicate, or -1
    units: Int32s  # of a filter: its class of radius
    memo: Int32s  # of a filter: stamp of the event + verdict
    gate: Int32s  # of a filter without a predicate: its topic filter, which alone decides; of others CLOSED
    first: Int32s  # of a filter: its first subscription
    next_in_topic: Int32s  # filters of one topic filter are chained
    first_in_topic: Int32s  # [topic filters, 2]: the first for subscriptions without, and with, an area
    topic_stamp: Int32s  # of a topic filter: stamp of the last event whose topic it accepts


class Predicates(NamedTuple):
    """Conjunctions of comparisons, as terms and as bits; see ``predicates.PredicateIndex``."""

    first: Int32s  # of a predicate: its first conjunction, or -1 if only the model can judge it
    conjunctions: Int32s  # of a predicate: how many they are
    term_start: Int32s  # of a predicate: where its terms start, or -1 if they are too many to look at one by one
    term_kind: Bytes
    term_column: Int32s
    term_low: Floats
    term_high: Floats
    asked: Int32s  # [blocks, 2]: stamp of the event, and how many predicates it asked for so far
    dimension_span: Int32s  # [blocks, 2]: where the dimensions of a block start and end
    dimension: Int32s  # column of ``values``
    constant_start: Int32s
    constant_count: Int32s
    row_start: Int32s
    constants: Floats
    rows: Words  # [rows, BLOCK_WORDS]
    truth: Words  # [blocks, BLOCK_WORDS]: the conjunctions that the present event meets
    stamp: Int32s  # of a block: event for which ``truth`` was computed


class Subscribers(NamedTuple):
    """Columns of clients and subscriptions."""

    lat: Floats
    lon: Floats
    first: Int32s  # of a client: its first subscription
    client: Int32s  # of a subscription
    next_of_client: Int32s
    next_of_filter: Int32s
    previous_of_filter: Int32s
    tag: Int32s
    kind: Bytes
    radius: Floats
    since: Int64s
    until: Int64s


class Events(NamedTuple):
    """Columns of a batch."""

    lat: Floats  # NaN without a place
    lon: Floats
    published: Int64s
    topic: Int32s
    publisher: Int32s
    exotic: Bytes  # 1 where an attribute does not fit into ``values``: the model must judge the event
    values: Floats  # [dimensions, events], NaN where the attribute is missing or of another type
    topic_start: Int32s  # of a topic: where its topic filters start
    topic_filters: Int32s


class Output(NamedTuple):
    """Room for results: pairs of event and subscription.

    ``marks`` name subscriptions: a number, or ~tag for all those of the owner that have this tag.
    ``progress`` counts: see its slots below.
    """

    offsets: Int64s
    owners: Int32s
    marks: Int32s
    open_event: Int32s
    open_item: Int32s
    open_what: Bytes
    progress: Int64s


NEXT_EVENT: Final = 0
RESULTS: Final = 1
OPEN_CASES: Final = 2
CANDIDATES: Final = 3
CELLS: Final = 4
BORDERS: Final = 5
PROGRESS: Final = 6

# What a kernel says when it stops
DONE: Final = 0
RESULTS_FULL: Final = 1
OPEN_FULL: Final = 2
NEAR_FULL: Final = 3


class Scratch(NamedTuple):
    """Memory that the kernels reuse from call to call."""

    keys: Int64s  # of all cells around the events of a tile, one event after the other
    cells: Int64s  # start, count, capacity and key of the cells that hold something, four numbers each
    ends: Int64s  # [TILE + 1]: where the cells of an event end and those of the next begin
    cosines: Floats  # [TILE]: of the latitudes of the events
    shapes: Floats  # [TILE, HIGHEST_LEVEL + 1, 4]: see ``measuring``
    near: Int64s  # [TILE + 1]: where the entries near an event end and those of the next begin
    holders: Int32s  # entries near the events of a tile
    tags: Int32s
    squares: Singles
    aside: Int32s  # those of them that need more than a look at their topic


def new_scratch(near: int = 4096) -> Scratch:
    return Scratch(
        np.empty(TILE * MOST_CELLS, np.int64),
        np.empty(TILE * MOST_CELLS * 4, np.int64),
        np.zeros(TILE + 1, np.int64),
        np.zeros(TILE, np.float64),
        np.empty((TILE, HIGHEST_LEVEL + 1, 4), np.float64),
        np.zeros(TILE + 1, np.int64),
        np.empty(near, np.int32),
        np.empty(near, np.int32),
        np.empty(near, np.float32),
        np.empty(near, np.int32),
    )
