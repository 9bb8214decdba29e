"""The words in which the radio engine speaks to Python."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Acceptance(IntEnum):
    """What becomes of a frame that is handed in."""

    ACCEPTED = 0  # medium access starts now
    QUEUED = 1
    DROPPED = 2  # the queue is full, or the station is off; nothing will be reported


class Outcome(IntEnum):
    """What became of a frame that was accepted or queued."""

    SENT = 0  # a broadcast, on air once
    ACKNOWLEDGED = 1
    RETRIES_EXHAUSTED = 2
    EXPIRED = 3  # waited longer than the profile's lifetime
    SWITCHED_OFF = 4  # the station was switched off


class Loss(IntEnum):
    """Why a station within interference range did not get a frame."""

    OUT_OF_RANGE = 0  # below the reception threshold
    COLLIDED = 1  # lost bits: too little signal over noise and interference
    PREAMBLE_MISSED = 2  # too much interference, or a stronger frame, when it began
    BUSY_RECEIVING = 3
    BUSY_SENDING = 4
    SWITCHED_OFF = 5  # the receiver was off, or sender or receiver were switched off meanwhile


class Reports(NamedTuple):
    """What happened at ``RadioEngine.now``, in plain integers; receivers in ascending order."""

    delivered: list[tuple[int, int, int]]  # key, receiver, sender
    completed: list[
        tuple[int, int, int]
    ]  # key, sender, Outcome and, above its bits, how many knew it (``layout.UNREAD``)
    lost: list[tuple[int, int, int]]  # key, receiver, Loss; only with ``report_losses``


News = tuple[int, list[int], list[tuple[int, int, int]]]
"""Of the one frame that was delivered its key, and its receivers in ascending order; and what was completed, as above."""
