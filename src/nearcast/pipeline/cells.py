"""Coarse cells of the earth, by which tables are partitioned: a tenth of a degree wide and high, half-open.

A cell is named for its south-western corner: ``n49.8e8.6`` holds latitudes from 49.8 and longitudes from 8.6 on.  What has no
place is in the cell ``none``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from nearcast.errors import InvalidPosition

if TYPE_CHECKING:
    from pyspark.sql import Column

NO_CELL: Final = "none"
_PER_DEGREE: Final = 10
_MOST: Final = 100_000
"""Cells that one question may name; beyond, whoever asks does better without them."""


def coarse_cell(lat: Column, lon: Column) -> Column:
    """The name of the cell of a place; ``none`` if one of both is null, or no number of degrees."""
    from pyspark.sql import functions as F

    name = F.concat(_side(lat, "n", "s"), _side(lon, "e", "w"))
    return F.when(lat.between(-90.0, 90.0) & lon.between(-180.0, 180.0), name).otherwise(F.lit(NO_CELL))


def cells_within(south: float, west: float, north: float, east: float) -> list[str]:
    """The names of all cells that touch the box, borders included, from south to north: what a reader may leave the others for.

    A box over the antimeridian has its western edge east of its eastern one.
    """
    if not (-90 <= south <= north <= 90 and -180 <= west <= 180 and -180 <= east <= 180):
        raise InvalidPosition(f"({south}, {west}) to ({north}, {east}) is no box; give degrees, and south before north")
    rows = range(_number(south), _number(north) + 1)
    last = _number(180.0)
    columns = (
        list(range(_number(west), _number(east) + 1))
        if west <= east
        else [*range(_number(west), last + 1), *range(_number(-180.0), _number(east) + 1)]
    )
    if len(rows) * len(columns) > _MOST:
        raise InvalidPosition(
            f"the box touches {len(rows) * len(columns)} cells, more than {_MOST}; ask for a smaller one"
        )
    return [_name(row, "n", "s") + _name(column, "e", "w") for row in rows for column in columns]


def _number(degrees: float) -> int:
    return math.floor(degrees * _PER_DEGREE)


def _name(number: int, positive: str, negative: str) -> str:
    whole, tenths = divmod(abs(number), _PER_DEGREE)
    return f"{negative if number < 0 else positive}{whole}.{tenths}"


def _side(degrees: Column, positive: str, negative: str) -> Column:
    """As ``_name``, in columns; the same product of doubles as in Python, so that both cut at the same place."""
    from pyspark.sql import functions as F

    number = F.floor(degrees * F.lit(float(_PER_DEGREE)))
    digits = F.abs(number)
    whole, tenths = F.floor(digits / _PER_DEGREE), digits % _PER_DEGREE
    letter = F.when(number < 0, F.lit(negative)).otherwise(F.lit(positive))
    return F.concat(letter, whole.cast("string"), F.lit("."), tenths.cast("string"))
