"""The bare-kernel bound: the fastest kernel found for the candidate distance tests, with nothing around them.

No topics, no predicates, no identifiers, no updates, no exact decision at the border: a dense uniform grid with
cells of one radius, clients sorted by cell (so that the three cells of a row are one contiguous range), single
precision, receivers' numbers written without gaps.  Whatever a matcher does, it does on top of this.

Tried on one core of a Xeon at 2.8 GHz (AVX-512, 1.25 MiB L2), the "city" with 30 receivers and about 76
candidates per event, batches of 1,024, in millions of events per second (medians of five passes over 204,800
events, one run, a shared machine: figures closer than 10 % are not to be told apart, and when others work on it,
those for 1 M clients fall by up to half):

=======================================================================  ======  =======  =====
variant                                                                    10 k    100 k    1 M
=======================================================================  ======  =======  =====
distance test with a branch                                                2.6      2.5    1.4
branchless (write always, advance if near), x and y apart                  5.1      4.4    2.0
the same, x and y interleaved                                              5.2      4.7    2.0
the same, apart, fetching four events ahead (``_scalar``)                  5.4      5.2    3.7
counting only, left to LLVM's vectoriser                                   3.0      3.1    2.3
distances vectorised into a scratch, then compacted                        3.6      3.4    2.0
cells r/4 wide, r high (row ranges cut closer: fewer candidates)           5.8      4.6    2.0
cells r/2 (five rows)                                                      5.2      4.1    1.7
16 lanes with vpcompressd                                                 21.4     17.4    8.3
**16 lanes, fetching four events ahead** (``_vector``)                    21.7     18.7   10.8
16 lanes, cells r/2, fetching ahead (*)                                   17.0     13.5    7.4
16 lanes, rows cut by the chord of the circle, fetching ahead (*)            -        -    7.4
8 lanes, fetching ahead                                                   18.8     16.3   10.3
16 lanes, x, y and number in blocks of 16 (one stream), fetching ahead    19.5     16.2   10.1
=======================================================================  ======  =======  =====

(*) In a kernel for cells of any shape, which reached 9.2 at 1 M with cells of one radius; the chord in another run.

What decides, by these figures: (1) compaction of 16 lanes at once, four times the scalar loop; (2) with lanes, long rows:
fewer candidates in more and shorter ranges lose; (3) at 1 M clients fetching ahead: index entries eight events
ahead, the candidates themselves (two cache lines of each array and row) four events ahead; (4) all arrays in
one block of memory, which is then large enough for huge pages (numpy asks for them from 4 MiB on), give another
7 %.  Not tried: integers in fixed point.  A helper such as ``_fetch_ahead`` must be inlined by force, or it costs half of the speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nearcast.benchmark.plane import Floats
from nearcast.benchmark.vector import compiled, inlined, write_near
from nearcast.matching.vector import HAS_COMPRESS, LANES, prefetch

Singles = NDArray[np.float32]
Integers = NDArray[np.int32]

_AHEAD: Final = 4
_LINE: Final = 16


@dataclass(frozen=True, eq=False)
class BareKernel:
    """A grid over points in a plane.  ``start[cell]`` to ``start[cell + 1]`` are the points of a cell."""

    xs: Singles
    ys: Singles
    numbers: Integers
    start: Integers
    columns: int
    rows: int
    origin: tuple[float, float]
    radius: float
    most_candidates: int

    @classmethod
    def build(cls, x: Floats, y: Floats, radius: float) -> BareKernel:
        # A border of empty cells: every event that can have receivers then has all nine neighbours.
        origin = float(x.min()) - 2 * radius, float(y.min()) - 2 * radius
        east, north = (x - origin[0]).astype(np.float32), (y - origin[1]).astype(np.float32)
        size = np.float32(1 / radius)
        column, row = (east * size).astype(np.int64), (north * size).astype(np.int64)
        columns, rows = int(column.max()) + 3, int(row.max()) + 3
        order = np.argsort(row * columns + column, kind="stable")
        counts = np.bincount(row * columns + column, minlength=columns * rows)
        start = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
        xs, ys, numbers, start = _one_block(east[order], north[order], order.astype(np.int32), start)
        return cls(
            xs=xs,
            ys=ys,
            numbers=numbers,
            start=start,
            columns=columns,
            rows=rows,
            origin=origin,
            radius=radius,
            most_candidates=_most_candidates(counts.reshape(rows, columns)),
        )

    def locate(self, x: Floats, y: Floats) -> tuple[Singles, Singles]:
        """Events in the grid's own coordinates; those too far outside to have receivers go to its border."""
        east = np.clip(x - self.origin[0], self.radius, (self.columns - 1.001) * self.radius)
        north = np.clip(y - self.origin[1], self.radius, (self.rows - 1.001) * self.radius)
        return east.astype(np.float32), north.astype(np.float32)

    def room(self, events: int) -> tuple[NDArray[np.int64], Integers]:
        """Arrays for the offsets and receivers of that many events, whatever they are."""
        return np.empty(events + 1, np.int64), np.empty(events * self.most_candidates + 2 * LANES, np.int32)

    def match(self, east: Singles, north: Singles, offsets: NDArray[np.int64], receivers: Integers) -> int:
        """Write receivers of event ``i`` to ``receivers[offsets[i]:offsets[i + 1]]``; returns how many in all."""
        kernel = _vector if HAS_COMPRESS else _scalar
        radius = np.float32(self.radius)
        total: int = kernel(
            self.xs, self.ys, self.numbers, self.start, self.columns, radius, east, north, offsets, receivers
        )
        return total

    def match_scalar(self, east: Singles, north: Singles, offsets: NDArray[np.int64], receivers: Integers) -> int:
        """The same without vector instructions: the bound for an ordinary numba kernel."""
        radius = np.float32(self.radius)
        return _scalar(
            self.xs, self.ys, self.numbers, self.start, self.columns, radius, east, north, offsets, receivers
        )


@inlined
def _fetch_ahead(
    xs: Any, ys: Any, numbers: Any, start: Any, columns: Any, size: Any, east: Any, north: Any, k: Any
) -> None:
    later = k + 2 * _AHEAD
    if later < east.size:
        west = int(north[later] * size) * columns + int(east[later] * size) - 1
        prefetch(start, west - columns)
        prefetch(start, west)
        prefetch(start, west + columns)
    soon = k + _AHEAD
    if soon < east.size:
        west = int(north[soon] * size) * columns + int(east[soon] * size) - 1
        for row in range(-1, 2):
            first = np.int64(start[west + row * columns])
            for line in range(2):
                prefetch(xs, first + line * _LINE)
                prefetch(ys, first + line * _LINE)
                prefetch(numbers, first + line * _LINE)


@compiled
def _vector(
    xs: Any, ys: Any, numbers: Any, start: Any, columns: Any, radius: Any,
    east: Any, north: Any, offsets: Any, receivers: Any,
) -> int:  # fmt: skip
    total = 0
    r2, size = radius * radius, np.float32(1) / radius
    for k in range(east.size):
        offsets[k] = total
        _fetch_ahead(xs, ys, numbers, start, columns, size, east, north, k)
        x, y = east[k], north[k]
        west = int(y * size) * columns + int(x * size) - 1
        for row in range(-1, 2):
            first = np.int64(start[west + row * columns])
            last = np.int64(start[west + row * columns + 3])
            while first < last:
                total += write_near(xs, ys, numbers, first, last - first, x, y, r2, receivers, total)
                first += LANES
    offsets[east.size] = total
    return total


@compiled
def _scalar(
    xs: Any, ys: Any, numbers: Any, start: Any, columns: Any, radius: Any,
    east: Any, north: Any, offsets: Any, receivers: Any,
) -> int:  # fmt: skip
    total = 0
    r2, size = radius * radius, np.float32(1) / radius
    for k in range(east.size):
        offsets[k] = total
        _fetch_ahead(xs, ys, numbers, start, columns, size, east, north, k)
        x, y = east[k], north[k]
        west = int(y * size) * columns + int(x * size) - 1
        for row in range(-1, 2):
            for i in range(start[west + row * columns], start[west + row * columns + 3]):
                dx, dy = xs[i] - x, ys[i] - y
                receivers[total] = numbers[i]
                total += dx * dx + dy * dy <= r2
    offsets[east.size] = total
    return total


def _one_block(*arrays: NDArray[Any]) -> list[NDArray[Any]]:
    """The arrays, each with spare elements behind it, in one piece of memory: large enough for huge pages."""
    sizes = [(len(array) + 2 * LANES) // LANES * LANES for array in arrays]
    block = np.zeros(sum(sizes), np.int32)
    views = [part[: len(array)] for part, array in zip(np.split(block, np.cumsum(sizes)[:-1]), arrays, strict=True)]
    for view, array in zip(views, arrays, strict=True):
        view[:] = array.view(np.int32)
    return [view.view(array.dtype) for view, array in zip(views, arrays, strict=True)]


def _most_candidates(counts: NDArray[np.int64]) -> int:
    rows = counts[:-2] + counts[1:-1] + counts[2:]
    return int((rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]).max())
