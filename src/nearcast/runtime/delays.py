"""What timers may be asked for, the same in both halves: whole microseconds out of the seconds that a caller gives."""

from __future__ import annotations

from nearcast.errors import InvalidTime
from nearcast.model.time import MICROSECONDS


def delay(seconds: float) -> int:
    """Microseconds until a callback."""
    return _microseconds(seconds, 0)


def period(seconds: float) -> int:
    """Microseconds between two callbacks; never none at all, or time would stand still."""
    return _microseconds(seconds, 1)


def _microseconds(seconds: float, least: int) -> int:
    # `not >=` also refuses NaN.
    if not seconds >= 0 or seconds > 1e11 or (least and seconds == 0):
        raise InvalidTime(f"{seconds!r} seconds is no {'period' if least else 'delay'} of a timer")
    return max(least, round(seconds * MICROSECONDS))
