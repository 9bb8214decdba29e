"""How evenly a burden is shared."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def jain_index(frame: DataFrame, share: str, *by: str) -> DataFrame:
    """``jain`` of each group, null if there is nothing to share; who could have been chosen but never was has a row with 0."""
    return frame.groupBy(*by).agg(jain(F.col(share)).alias("jain"))


def jain(share: Column) -> Column:
    """``(sum x)^2 / (n * sum x^2)`` as an aggregate; a share that is negative, missing or no number fails the job."""
    value = share.cast("double")
    checked = F.when(value.isNull() | F.isnan(value) | (value < 0), F.raise_error(F.lit(_WRONG))).otherwise(value)
    total = F.sum(checked)
    return F.when(total > 0, total * total / (F.count("*") * F.sum(checked * checked)))


_WRONG = "shares are numbers, none of them negative or missing"
