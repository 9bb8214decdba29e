"""Recorded fixes of somebody who moved, and how they become legs again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from nearcast.errors import InvalidInput, InvalidTime, InvalidTrace
from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS, Instant, instant
from nearcast.runtime.legs import Leg
from nearcast.runtime.simulation.plane import Plane

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

InGaps = Literal["interpolate", "hold"]
CHUNK: Final = 1024
"""Legs that are turned into Python numbers at a time: a long trace is read, not copied."""


@dataclass(frozen=True, slots=True, eq=False)
class Track:
    """The fixes of one of them, in the order of time."""

    name: str
    times: Int64s
    """Instants; of any epoch, as long as it is the same for all tracks."""

    lat: Floats
    lon: Floats
    gaps: Bools
    """For each pair of neighbours: nothing is known between them."""

    step: bool = False
    """They are known to have stood at each fix until the next."""


@dataclass(frozen=True, slots=True, eq=False)
class Traces:
    """What a file tells."""

    tracks: tuple[Track, ...]

    @property
    def first(self) -> Instant:
        return min(int(track.times[0]) for track in self.tracks)

    @property
    def last(self) -> Instant:
        return max(int(track.times[-1]) for track in self.tracks)

    @property
    def centre(self) -> Point:
        """The middle of all fixes: an origin for the plane of a world that has none yet."""
        lats = np.concatenate([track.lat for track in self.tracks])
        lons = np.radians(np.concatenate([track.lon for track in self.tracks]))
        # The mean direction: longitudes of 179 and -179 degrees are neighbours.
        lon = math.degrees(math.atan2(np.sin(lons).sum(), np.cos(lons).sum()))
        return Point(float(lats.min() + lats.max()) / 2, lon)

    def replays(
        self,
        plane: Plane,
        *,
        begin: Instant | None = None,
        in_gaps: InGaps = "interpolate",
        longest: float = math.inf,
    ) -> list[Replay]:
        """A mobility model for each track.

        The run starts at the instant ``begin`` of the trace, by default at its first fix.  Between two fixes people move
        straight and evenly.  Where they are more than ``longest`` seconds apart, or the file tells of an interruption, there
        is a gap: they do the same, or hold, that is stand until the next fix and are there at once.
        """
        if in_gaps not in {"interpolate", "hold"}:
            raise InvalidInput(f"in gaps one can 'interpolate' or 'hold', not {in_gaps!r}")
        if not longest > 0:
            raise InvalidInput(f"fixes more than {longest} s apart are all that there are; give more than 0")
        origin = self.first if begin is None else begin
        return [_replay(track, plane, origin, in_gaps, longest) for track in self.tracks]


def _replay(track: Track, plane: Plane, origin: Instant, in_gaps: InGaps, longest: float) -> Replay:
    x, y = plane.metres(track.lat, track.lon)
    seconds = np.diff(track.times) / MICROSECONDS
    held = np.full(len(seconds), track.step)
    if in_gaps == "hold":
        held |= track.gaps | (seconds > longest)
    return Replay(track.name, track.times - origin, x, y, held)


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """Moves as somebody did: through each fix at its time.  Before the first they stand there, after the last they stay."""

    name: str
    times: Int64s
    """Microseconds after the start of the run."""

    x: Floats
    y: Floats
    held: Bools
    """For each pair of neighbours: stand at the first until it is time for the second."""

    @property
    def stays(self) -> tuple[tuple[float, float], ...]:
        """From the first to the last fix, in seconds after the start of the run: when a host may be up."""
        first, last = int(self.times[0]) / MICROSECONDS, int(self.times[-1]) / MICROSECONDS
        return ((max(0.0, first), last),) if last > 0 else ()

    def __call__(self, random: Random, start: Instant) -> Iterator[Leg]:  # noqa: ARG002 - nothing to choose
        times, x, y = self.times, self.x, self.y
        if times[0] > 0:
            yield Leg(start, start + int(times[0]), float(x[0]), float(y[0]))
        elif times[-1] <= 0:
            yield Leg(start, start + 1, float(x[-1]), float(y[-1]))
            return
        # What lies before the start of the run is over.
        begin = max(0, int(np.searchsorted(times, 0, side="right")) - 1)
        for low in range(begin, len(times) - 1, CHUNK):
            fixes = slice(low, low + CHUNK + 1)
            between = slice(low, low + CHUNK)
            seconds = np.diff(times[fixes]) / MICROSECONDS
            moving = ~self.held[between]
            vx, vy = np.diff(x[fixes]) / seconds * moving, np.diff(y[fixes]) / seconds * moving
            instants = (times[fixes] + start).tolist()
            legs = map(
                Leg,
                instants,
                instants[1:],
                x[between].tolist(),
                y[between].tolist(),
                vx.tolist(),
                vy.tolist(),
            )
            if low == begin and times[begin] < 0:
                first = next(legs)
                yield first._replace(start=start, x=first.at(start)[0], y=first.at(start)[1])
            yield from legs


def checked_track(
    name: str, times: Int64s, lat: Floats, lon: Floats, gaps: Bools, complain: Callable[[int, str], InvalidTrace]
) -> Track:
    """A track, if its fixes can be; ``complain`` knows where in the file the fix of a number stands."""
    wrong = bad_coordinate(lat, lon)
    if wrong is not None:
        raise complain(wrong, coordinate_complaint(float(lat[wrong]), float(lon[wrong])))
    backwards = np.flatnonzero(np.diff(times) <= 0)
    if len(backwards):
        raise complain(int(backwards[0]) + 1, order_complaint(name))
    return Track(name, times, lat, lon, gaps)


def instants(texts: Sequence[str], complain: Callable[[int, str], InvalidTrace]) -> Int64s:
    """Instants of RFC 3339 texts."""
    import pyarrow as pa

    try:
        return np.asarray(pa.array(texts, pa.string()).cast(pa.timestamp("us", "UTC")).cast(pa.int64()), np.int64)
    except pa.ArrowInvalid:
        # Unusual or wrong: one by one, which is slow but knows which it is.
        found = np.empty(len(texts), np.int64)
        for index, text in enumerate(texts):
            try:
                found[index] = instant(text)
            except InvalidTime as error:
                raise complain(index, str(error)) from None
        return found


def bad_coordinate(lat: Floats, lon: Floats) -> int | None:
    # `not <=` also refuses NaN.
    wrong = np.flatnonzero(~((np.abs(lat) <= 90) & (np.abs(lon) <= 180)))
    return int(wrong[0]) if len(wrong) else None


def coordinate_complaint(lat: float, lon: float) -> str:
    return f"latitude {lat:g}, longitude {lon:g} is no place on earth; give degrees within ±90 and ±180"


def order_complaint(name: str) -> str:
    return f"this fix of {name!r} is not later than the one before; sort each track by time, one fix per instant"


def distinct(names: Sequence[str]) -> list[str]:
    """Names as they are; a second one of the same is numbered, and so is the next."""
    taken: dict[str, int] = {}
    found: list[str] = []
    for name in names:
        candidate = name
        while candidate in taken:
            taken[name] += 1
            candidate = f"{name} {taken[name]}"
        taken[candidate] = 1
        found.append(candidate)
    return found
