"""Windows of time, as column expressions; they are cut from 1970 on, so that two jobs cut alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from nearcast.errors import InvalidTime
from nearcast.model.time import MICROSECONDS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

WINDOW = "window"


def windowed(seconds: float, time: str = "time") -> Column:
    """The window of an instant, to group by."""
    length = round(seconds * MICROSECONDS)
    if length <= 0:
        raise InvalidTime(f"a window cannot be {seconds} seconds long; give a positive length")
    return F.window(time, f"{length} microseconds").alias(WINDOW)


def bounds_first(frame: DataFrame) -> DataFrame:
    """The window as its two bounds, ``[since, until)``, before all other columns."""
    others = [name for name in frame.columns if name != WINDOW]
    return frame.select(F.col(f"{WINDOW}.start").alias("since"), F.col(f"{WINDOW}.end").alias("until"), *others)
