"""Instants, durations and time frames.

An instant is a whole number of microseconds since 1970-01-01 UTC: exact, ordered, and what Arrow and Spark
store.  All intervals are half-open.  Nothing here reads a clock; where a text is relative ("-2h"), the caller
says what *now* is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from nearcast.errors import InvalidTime

Instant = int
"""Microseconds since the epoch, UTC."""

MICROSECONDS: Final = 1_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS: Final = {
    "ms": 1_000,
    "s": MICROSECONDS,
    "min": 60 * MICROSECONDS,
    "m": 60 * MICROSECONDS,
    "h": 3600 * MICROSECONDS,
    "d": 86_400 * MICROSECONDS,
    "w": 7 * 86_400 * MICROSECONDS,
}
_NUMBER_AND_UNIT: Final = r"(\d+(?:\.\d+)?) ?(ms|min|[smhdw])"
_PART: Final = re.compile(_NUMBER_AND_UNIT)
_DURATION: Final = re.compile(rf"([+-]?)({_NUMBER_AND_UNIT}(?: ?{_NUMBER_AND_UNIT})*)")
_RFC3339: Final = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2})(\.\d+)?([Zz]|[+-]\d{2}:\d{2})",
)
LARGEST: Final = 253_402_300_800 * MICROSECONDS  # the year 10000: what RFC 3339 can write


def instant(value: str | datetime | int) -> Instant:
    """Read an RFC 3339 text, an aware datetime, or microseconds since the epoch."""
    if isinstance(value, bool):
        raise InvalidTime(f"{value!r} is not an instant")
    if isinstance(value, int):
        if not -LARGEST < value < LARGEST:
            raise InvalidTime(f"{value} microseconds since 1970 is beyond the year 9999")
        return value
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise InvalidTime(f"{value!r} has no time zone; use datetime(..., tzinfo=UTC)")
        return (value - _EPOCH) // timedelta(microseconds=1)
    if not isinstance(value, str):
        raise InvalidTime(f"{value!r} is not an instant: give RFC 3339, a datetime, or whole microseconds since 1970")
    return _parse_instant(value)


def _parse_instant(text: str) -> Instant:
    match = _RFC3339.fullmatch(text.strip())
    if match is None:
        raise InvalidTime(f"{text!r} is not an RFC 3339 instant such as 2026-11-15T09:30:00Z")
    day, clock, fraction, zone = match.groups()
    try:
        whole = datetime.fromisoformat(f"{day}T{clock}{'+00:00' if zone in 'Zz' else zone}")
    except ValueError as error:
        raise InvalidTime(f"{text!r} is not an instant: {error}") from None
    micros = int((fraction or ".0")[1:7].ljust(6, "0"))
    return instant(whole) + micros


def to_datetime(at: Instant) -> datetime:
    return _EPOCH + timedelta(microseconds=at)


def to_text(at: Instant) -> str:
    """RFC 3339 in UTC, with as many fractional digits as are needed."""
    return to_datetime(at).isoformat().replace("+00:00", "Z")


def duration(text: str) -> int:
    """Microseconds of a duration such as ``90s``, ``-2h``, ``1h30m``, ``10 min`` or ``250ms``."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise InvalidTime(f"{text!r} is not a duration such as 90s, -2h or 1h30m (units: {', '.join(_UNITS)})")
    total = sum(round(float(number) * _UNITS[unit]) for number, unit in _PART.findall(match[2]))
    if total >= LARGEST:
        raise InvalidTime(f"{text!r} is longer than time goes on here")
    return -total if match[1] == "-" else total


def duration_text(microseconds: int) -> str:
    """A duration as ``duration`` reads it, in the largest unit of which it is a whole number."""
    sign, size = "-" if microseconds < 0 else "", abs(microseconds)
    for unit, length in reversed(_UNITS.items()):
        if size and size % length == 0:
            return f"{sign}{size // length}{unit}"
    return f"{sign}{size // 1_000}.{size % 1_000:03}ms"


def moment(value: str | datetime | int | None, now: Instant) -> Instant | None:
    """One bound of a time frame: ``None`` or ``..`` (open), ``now``, relative to now, or an instant."""
    if value is None or value == "..":
        return None
    if value == "now":
        return now
    if isinstance(value, str) and _DURATION.fullmatch(value.strip()):
        return now + duration(value)
    return instant(value)


@dataclass(frozen=True, slots=True)
class TimeFrame:
    """``[since, until)``; a bound that is ``None`` is open."""

    since: Instant | None = None
    until: Instant | None = None

    def __post_init__(self) -> None:
        for bound in (self.since, self.until):
            if bound is not None:
                instant(bound)
        if self.since is not None and self.until is not None and self.until <= self.since:
            raise InvalidTime(
                f"the time frame ends at {to_text(self.until)}, not after its start {to_text(self.since)}"
            )

    @classmethod
    def parse(
        cls,
        since: str | datetime | int | None = None,
        until: str | datetime | int | None = None,
        *,
        now: Instant,
    ) -> TimeFrame:
        """Read bounds such as ``-2h``, ``now``, ``..`` or ``2026-11-15T09:30:00Z``, relative to ``now``."""
        return cls(moment(since, now), moment(until, now))

    def contains(self, at: Instant) -> bool:
        """Whether the instant lies in the frame; ``until`` itself does not."""
        return (self.since is None or self.since <= at) and (self.until is None or at < self.until)


EVER: Final = TimeFrame()
