"""Columns of Arrow tables as numpy arrays: names by number, instants as whole microseconds, null as -1 or NaN."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from nearcast.errors import InvalidRecord
from nearcast.records.arrow import plain_type
from nearcast.records.column import Kind

Floats: TypeAlias = npt.NDArray[np.float64]
Wholes: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]


def column(table: Any, name: str) -> Any:
    """The column of that name, in one piece, in which all names are numbered alike."""
    if name not in table.column_names:
        raise InvalidRecord(
            f"the table has no column {name!r}, only {', '.join(table.column_names)}; read it with nearcast.records.read"
        )
    found = table[name]
    return found.combine_chunks() if found.num_chunks != 1 else found.chunk(0)


def instants(table: Any, name: str) -> Wholes:
    """Microseconds since 1970, of a column in which none is missing."""
    import pyarrow as pa

    found = column(table, name)
    if pa.types.is_timestamp(found.type):
        found = found.cast(plain_type(Kind.INSTANT))
    return _whole(found, name)


def wholes(table: Any, name: str) -> Wholes:
    return _whole(column(table, name), name)


def _whole(found: Any, name: str) -> Wholes:
    import pyarrow as pa

    if found.null_count:
        raise InvalidRecord(f"column {name!r} lacks {found.null_count} values; none may be missing there")
    values: Wholes = found.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return values


def reals(table: Any, name: str) -> Floats:
    """NaN where null."""
    import pyarrow as pa

    values: Floats = column(table, name).cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False)
    return values


def names_in(*columns: Any) -> Any:
    """All names that occur, in order of the alphabet: numbers do not depend on who came first."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = [pc.unique(values).cast(pa.string()) for values in columns]
    names = pc.unique(pa.concat_arrays(found) if found else pa.array([], pa.string())).drop_null()
    return names.take(pc.array_sort_indices(names))


def numbers(values: Any, names: Any) -> Wholes:
    """The position of each value among ``names`` (an Arrow array of texts); -1 for null and for any other."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(values.type):
        # The last number stands for null, which an index of -1 finds too.
        known: Wholes = np.append(numbers(values.dictionary.cast(pa.string()), names), -1)
        indices: npt.NDArray[np.int32] = values.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return known[indices]
    found = pc.index_in(values, value_set=names, skip_nulls=True).fill_null(-1)
    places: Wholes = found.to_numpy(zero_copy_only=False).astype(np.int64)
    return places


def is_name(values: Any, name: str) -> Flags:
    """Where the value is that one."""
    import pyarrow as pa

    found: Flags = numbers(values, pa.array([name], pa.string())) == 0
    return found


def nullable(values: Floats) -> Any:
    """A column of real numbers that is null where there is NaN."""
    import pyarrow as pa

    return pa.array(values, pa.float64(), from_pandas=True)


def instant_column(values: Wholes) -> Any:
    import pyarrow as pa

    return pa.array(values, pa.int64()).cast(plain_type(Kind.INSTANT))


def ratio(numerator: npt.NDArray[Any], denominator: npt.NDArray[Any]) -> Floats:
    """NaN, which stands for null, where there is nothing to divide by."""
    top = np.asarray(numerator, np.float64)
    result: Floats = np.divide(top, denominator, out=np.full(top.shape, np.nan), where=np.asarray(denominator) != 0)
    return result


def sums(group: Wholes, values: npt.NDArray[Any], groups: int) -> Floats:
    """The sum of the values in each of the groups 0, 1, ...; of whole numbers it is exact below 2^53."""
    return np.bincount(group, weights=values, minlength=groups).astype(np.float64, copy=False)


def mean_or_none(values: Floats) -> float | None:
    """The mean of those that are not NaN; none if all are."""
    kept = values[~np.isnan(values)]
    return float(kept.mean()) if len(kept) else None
