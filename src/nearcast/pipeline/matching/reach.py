"""How far the interest of clients reaches, which says how many blocks have to know of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nearcast.model.geometry import EARTH_RADIUS
from nearcast.pipeline.matching.replayer import HeldDetail

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from nearcast.pipeline.matching.blocks import Cells

_WIDE: Final = 4.0
"""An area that is so many cells large is wide: its client is made known to all blocks."""


@dataclass(frozen=True, slots=True)
class Reach:
    """``metres`` around a client all its areas lie, except for so many ``wide`` subscriptions."""

    metres: float
    limit: float
    wide: int


def reach_of(subscriptions: DataFrame, cells: Cells) -> Reach:
    from pyspark.sql import functions as F

    limit = _WIDE * cells.height * math.radians(1.0) * EARTH_RADIUS
    narrow = F.col("metres") <= limit
    row = (
        with_metres(subscriptions)
        .agg(
            F.max(F.when(narrow, F.col("metres"))).alias("metres"),
            F.count_if(~F.coalesce(narrow, F.lit(False))).alias("wide"),
        )
        .collect()[0]
    )
    return Reach(row.metres or 0.0, limit, row.wide)


def with_metres(subscriptions: DataFrame) -> DataFrame:
    """Subscriptions with how far they reach around their client; null if there is no such distance."""
    from pyspark.sql import functions as F

    metres = subscriptions.select("detail").distinct().mapInArrow(_measured, "detail string, metres double")
    return subscriptions.join(F.broadcast(metres), "detail")


def _measured(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import msgspec
    import pyarrow as pa

    for batch in batches:
        details = batch.column("detail")
        metres = [_metres(msgspec.json.decode(text, type=HeldDetail)) for text in details.to_pylist()]
        yield pa.RecordBatch.from_arrays([details, pa.array(metres, pa.float64())], names=["detail", "metres"])


def _metres(detail: HeldDetail) -> float | None:
    held = detail.held()
    if held is None:
        return 0.0  # the end of a subscription goes where the subscription went
    if held.area is None or not held.area.is_relative:
        return None
    return held.area.bounding_radius()
