"""What happened on some ways, in the order in which it is told.

Nearly all of it are passages of fences, tens of thousands in a second: they stay in columns until they are told.  The rest - who appears,
stays or comes near - is particular, and is put where it belongs among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from nearcast.broker.observation.watches import Moving, Watch
from nearcast.matching.fences import Passages
from nearcast.matching.grid import Floats
from nearcast.model.geometry import Point
from nearcast.model.time import Instant

ENTER, STAY, LEAVE, CROSS = range(4)
MOMENTS: Final = ("enter", "stay", "leave", "cross")
"""At one moment somebody first enters, then has stayed, then leaves, and then has crossed."""

MOMENT: Final = {what: moment for moment, what in enumerate(MOMENTS)}


class Particular(NamedTuple):
    """Something of which more is to be told than of most."""

    step: int
    share: float
    moment: int
    watch: Watch
    who: str
    kind: str
    place: Point | None = None
    """Where the observed one was, if it is another one whose way that is."""

    more: Mapping[str, object] | None = None


Happening = tuple[int, int, int, Instant, float, float]
"""The step, the moment, the number of the fence (below 0: of what is particular, ``particular[~number]``), and when and where that was, which is
left open of what is particular.  A plain tuple, since there are so many of them.
"""


def in_order(
    moving: Moving | None, passed: Passages[Watch] | None, particular: Sequence[Particular]
) -> Iterator[Happening]:
    """All of it, step by step, as it happened on each way."""
    if moving is None or passed is None or not len(passed.way):
        for number in sorted(range(len(particular)), key=lambda number: particular[number][:3]):
            yield particular[number].step, particular[number].moment, ~number, 0, 0.0, 0.0
        return
    entered, left = np.flatnonzero(passed.entered > 0.0), np.flatnonzero(passed.left < 1.0)
    crossed = left[passed.entered[left] > 0.0]
    row = np.concatenate([entered, left, crossed])
    share = np.concatenate([passed.entered[entered], passed.left[left], passed.left[crossed]])
    moment = np.repeat(np.array([ENTER, LEAVE, CROSS]), [len(entered), len(left), len(crossed)])
    way, fence = passed.way[row], passed.fence[row].astype(np.int64)
    step = moving.step[way]
    if particular:
        others: Any = [(each.step, each.share, each.moment) for each in particular]
        steps, shares, moments = (np.array(column) for column in zip(*others, strict=True))
        step, share, moment = np.append(step, steps), np.append(share, shares), np.append(moment, moments)
        fence, way = np.append(fence, ~np.arange(len(particular))), np.append(way, np.zeros(len(particular), way.dtype))
    order = np.lexsort((moment, share, step))
    step, moment, fence = step[order], moment[order], fence[order]
    yield from zip(
        step.tolist(),
        moment.tolist(),
        fence.tolist(),
        *(column.tolist() for column in _when_and_where(moving, way[order], share[order])),
        strict=True,
    )


def _when_and_where(moving: Moving, way: Any, share: Floats) -> tuple[Any, Floats, Floats]:
    """As ``Way.at`` and ``Way.place``, to the last bit."""
    left, came = moving.left[way], moving.came[way]
    lat, lon, end_lat, end_lon = (column[way] for column in (moving.lat, moving.lon, moving.end_lat, moving.end_lon))
    at = left + np.rint(share * (came - left)).astype(np.int64)
    turn = np.where(np.abs(end_lon - lon) > 180.0, np.where(end_lon < lon, 360.0, -360.0), 0.0)
    east = lon + share * (end_lon + turn - lon)
    east = np.where(east >= 180.0, east - 360.0, np.where(east < -180.0, east + 360.0, east))
    there = share >= 1.0
    return at, np.where(there, end_lat, lat + share * (end_lat - lat)), np.where(there, end_lon, east)
