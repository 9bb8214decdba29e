"""How the state of the radio engine is laid out: record arrays that kernels read and write, and never allocate."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from nearcast.compiled import inlined
from nearcast.runtime.simulation.motion import Legs

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Records = npt.NDArray[Any]

BROADCAST: Final = -1
NONE: Final = -1

# What a frame on air is
DATA: Final = 0
RTS: Final = 1
CTS: Final = 2
ACK: Final = 3

# How far a station is with the frame it listens to
LISTENING: Final = 0
DETECTING: Final = 1  # the preamble: a stronger one may still take over
HEADER: Final = 2  # locked
PAYLOAD: Final = 3

# Access to the medium (ns-3: ChannelAccessStatus)
NOT_REQUESTED: Final = 0
REQUESTED: Final = 1
GRANTED: Final = 2

# What has been waited for when a timer runs
NOTHING: Final = 0
FOR_CTS: Final = 1
FOR_ACK: Final = 2

# Rows of ``World.tables``
BASIC_TABLE: Final = 0
DATA_TABLE: Final = 1
ACK_TABLE: Final = 2
BROADCAST_TABLE: Final = 3
HEADERS: Final = 4
"""Behind them, in the same order, the tables of the headers of such frames."""

# Kinds of reports, and what is in their rows
DELIVERIES: Final = 0  # key, receiver, sender
COMPLETIONS: Final = 1  # key, sender, outcome
LOSSES: Final = 2  # key, receiver, reason
UNREAD: Final = 8  # an outcome has so many bits; above it stands how many knew the message already

DOORS: Final = 4
"""So many ports and kinds of messages may have copies that need not be read."""

KNOWN: Final = 2048
"""So many of the newest messages a station can know: a power of two."""

# Columns of ``World.counters``
HANDED_IN: Final = 0
QUEUE_FULL: Final = 1
STATION_OFF: Final = 2
COMPLETED: Final = 3  # five columns, by Outcome
ON_AIR: Final = 8  # four columns, by kind of frame
BYTES_SENT: Final = 12
BYTES_RECEIVED: Final = 13
POTENTIAL: Final = 14
RECEIVED: Final = 15
LOST: Final = 16  # six columns, by Loss
DELIVERED: Final = 22
DUPLICATES: Final = 23
COUNTERS: Final = 24

PARAMETERS: Final = np.dtype(
    [
        ("power_at_metre", np.float64),  # mW
        ("half_exponent", np.float64),
        ("range_squared", np.float64),  # m²: up to which signals exist
        ("reception_mw", np.float64),
        ("carrier_sense_mw", np.float64),
        ("noise_mw", np.float64),
        ("preamble_sinr", np.float64),
        ("cell", np.float64),  # m: how large cells of the grid are at least
        ("slack", np.float64),  # m: how far stations may move before the grid is built again
        ("bits_per_ns", np.float64, (8,)),  # by table, as the next
        ("errorless", np.float64, (8,)),  # SINR beyond which not even the longest frame loses a bit
        ("detection", np.int64),  # ns, as all that follow
        ("training", np.int64, (4,)),  # by table: the preamble without its header
        ("preamble", np.int64, (4,)),
        ("slot", np.int64),
        ("sifs", np.int64),
        ("difs", np.int64),
        ("eifs", np.int64),
        ("response_timeout", np.int64),
        ("rts", np.int64),
        ("cts", np.int64),
        ("ack", np.int64),
        ("lifetime", np.int64),
        ("cw_min", np.int64),
        ("cw_max", np.int64),
        ("retry_limit", np.int64),
        ("rts_threshold", np.int64),
        ("queue_frames", np.int64),
        ("report_losses", np.int64),
    ]
)

CONTROL: Final = np.dtype(
    [
        ("seed", np.uint64),
        ("now", np.int64),
        ("start_us", np.int64),  # what legs count from, at time 0
        ("serial", np.int64),  # transmissions so far
        ("heap_size", np.int64),
        ("free_frame", np.int64),
        ("free_air", np.int64),
        ("reported", np.int64, (3,)),  # rows of each kind in use
        ("unchecked", np.int64),  # legs may have changed since they were last looked at
        ("built", np.int64),  # ns when the grid was built, or -1
        ("fastest", np.float64),  # m/s since then
        ("west", np.float64),
        ("south", np.float64),
        ("side", np.float64),  # m of a cell
        ("columns", np.int64),
        ("rows", np.int64),
        ("crowd", np.int64),  # most stations in any nine cells
    ]
)

NODE: Final = np.dtype(
    [
        # The medium as it appears here
        ("power", np.float64),  # mW of all signals
        ("signals", np.int32),
        ("sensed", np.int8),
        ("on", np.int8),
        ("stage", np.int8),
        ("waiting", np.int8),
        ("busy_since", np.int64),
        # Reception
        ("lock", np.int32),  # row of ``air``
        ("sending", np.int32),  # row of ``air``, or NONE
        ("lock_power", np.float64),
        ("changed", np.int64),  # up to when ``log_success`` is known
        ("log_success", np.float64),
        # Medium access
        ("quiet_from", np.int64),  # end of the last signal, transmission or wait for a response
        ("nav_until", np.int64),
        ("eifs_until", np.int64),
        ("backoff_from", np.int64),
        ("expiry", np.int64),  # when access is granted if nothing comes between, or NONE
        ("alarm", np.int64),  # the event for it that is in the heap, or NONE
        ("slots", np.int32),
        ("window", np.int32),  # CW
        ("access", np.int32),
        ("draws", np.int32),
        ("retries", np.int32),
        # Events that are still meant
        ("timer", np.int32),
        ("response", np.int32),
        ("nav_reset", np.int32),
        ("response_kind", np.int32),
        ("response_to", np.int32),
        ("response_nav", np.int64),
        # Queue
        ("head", np.int32),
        ("tail", np.int32),
        ("queued", np.int32),
        ("padding", np.int32),
    ]
)

FRAME: Final = np.dtype(
    [
        ("key", np.int64),
        ("created", np.int64),
        ("airtime", np.int64),
        ("to", np.int32),
        ("bytes", np.int32),
        ("next", np.int32),
        ("counted_only", np.int16),  # from a native source: nothing is reported
        ("delivered", np.int16),
        ("copy", np.int32),  # of which message this is one, or 0
        ("door", np.int32),  # for the books, if it is
        ("unread", np.int32),  # so many stations knew it already
        ("group", np.int32),  # of the message, or 0
    ]
)

AIR: Final = np.dtype(
    [
        ("key", np.int64),
        ("serial", np.int64),
        ("start", np.int64),
        ("end", np.int64),
        ("nav", np.int64),
        ("sender", np.int32),
        ("to", np.int32),
        ("frame", np.int32),
        ("bytes", np.int32),
        ("kind", np.int32),
        ("table", np.int32),
        ("hearers", np.int32),
        ("version", np.int32),
        ("next", np.int32),
        ("counted_only", np.int32),
    ]
)

HEARD: Final = np.dtype([("power", np.float64), ("node", np.int64)])
EVENT: Final = np.dtype([("time", np.int64), ("order", np.int64), ("version", np.int64)])
SOURCE: Final = np.dtype([("period", np.int64), ("airtime", np.int64), ("node", np.int32), ("bytes", np.int32)])


class World(NamedTuple):
    """All arrays; kernels take it as one argument."""

    parameters: Records  # one row
    control: Records  # one row
    tables: Floats
    legs: Legs
    nodes: Records
    counters: Int64s  # [nodes, COUNTERS]
    frames: Records  # a pool with a free list
    air: Records  # a pool with a free list
    heard: Records  # [rows of air, most hearers of a transmission]
    heap: Records
    sources: Records
    cell_starts: Int32s
    cell_nodes: Int32s
    grid_x: Floats  # where everybody was when the grid was built
    grid_y: Floats
    reports: Int64s  # [DELIVERIES .. LOSSES, reports, 3]
    known: Int32s  # [nodes, KNOWN], or one column that stays empty: messages of which a station needs no copy
    unread: Int64s  # [nodes, DOORS, 2]: copies that were only counted, and their bytes
    once: Int32s  # [nodes, DOORS]: the group of messages of which a station needs one copy each, or 0


@inlined
def report(control: Records, reports: Int64s, kind: int, key: int, node: int, third: int) -> None:
    """Tell Python something."""
    place = control[0].reported[kind]
    control[0].reported[kind] = place + 1
    reports[kind, place, 0] = key
    reports[kind, place, 1] = node
    reports[kind, place, 2] = third
