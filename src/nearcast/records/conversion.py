"""Values of a column to Arrow, checked against what the column promises.

A column is checked as a whole, after the fact: asking each value would cost more than recording it.  Only when
something is wrong is the value looked for that is to blame.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from nearcast.errors import InvalidRecord
from nearcast.records.arrow import plain_type
from nearcast.records.column import Column, Kind, RecordTable

_EXPECTED: Final = {
    Kind.INSTANT: "an instant in whole microseconds since 1970",
    Kind.WHOLE: "a whole number",
    Kind.REAL: "a finite number",
    Kind.TEXT: "a text",
    Kind.NAME: "a text",
    Kind.TEXTS: "a list or tuple of texts",
    Kind.BYTES: "bytes",
}
# Of these kinds pyarrow takes more than it should: a text for a list of letters or for its UTF-8, and a set in an order
# that differs from run to run.
_EXACTLY: Final = {Kind.TEXTS: {list, tuple, type(None)}, Kind.BYTES: {bytes, type(None)}}
_REFUSED: Final = (TypeError, ValueError, OverflowError, NotImplementedError)
"""What pyarrow raises for values that it cannot convert."""


def from_rows(table: RecordTable, column: Column, values: Sequence[Any], first_row: int) -> Any:
    """A column of rows that were appended one by one; ``first_row`` is the number of the first of them."""
    return _checked(table, column, values, _of_python, first_row)


def nulls(column: Column, rows: int) -> Any:
    """A column that was left out."""
    import pyarrow as pa

    return pa.nulls(rows, plain_type(column.kind))


def from_columns(table: RecordTable, columns: Mapping[str, Any]) -> list[Any]:
    """All columns of a batch, from lists, numpy arrays (masked where null) or Arrow arrays.

    The result shares no memory with them: a simulator fills the same arrays again for its next sample.
    """
    left_out = set(table.column_names[table.required :]) - set(columns)
    if set(columns) | left_out != set(table.column_names):
        missing = [name for name in table.column_names[: table.required] if name not in columns]
        unknown = [name for name in columns if name not in table.column_names]
        raise InvalidRecord(
            f"{table.name} has the columns {', '.join(table.column_names)}"
            + (f"; missing: {', '.join(missing)}" if missing else "")
            + (f"; unknown: {', '.join(unknown)}" if unknown else "")
        )
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise InvalidRecord(f"the columns of {table.name} differ in length: {listed}")
    rows = next(iter(lengths.values()))
    return [
        nulls(column, rows) if column.name in left_out else _checked(table, column, columns[column.name], _of_any, 0)
        for column in table.columns
    ]


def _checked(
    table: RecordTable, column: Column, values: Any, convert: Callable[[Kind, Any], Any], first_row: int
) -> Any:
    def refused(part: Any) -> bool:
        try:
            convert(column.kind, part)
        except _REFUSED:
            return True
        return False

    if not len(values):  # an empty numpy array or list has an arbitrary type
        return _of_python(column.kind, [])
    try:
        array = convert(column.kind, values)
    except _REFUSED:
        row = _first(values, refused)
        raise _invalid(table, column, first_row + row, values[row], _EXPECTED[column.kind]) from None
    if (expected := _violated(column, array)) is not None:
        row = _first(array, lambda part: _violated(column, part) is not None)
        raise _invalid(table, column, first_row + row, values[row], expected)
    return array


def _of_python(kind: Kind, values: Sequence[Any]) -> Any:
    import pyarrow as pa

    if kind in _EXACTLY and not {type(value) for value in values} <= _EXACTLY[kind]:
        raise TypeError(_EXPECTED[kind])
    if kind is Kind.WHOLE or kind is Kind.INSTANT:
        # Told the type, pyarrow cuts fractions off; left to itself, it says what it found.
        return _of_array(kind, pa.array(values))
    if kind is Kind.NAME and isinstance(values, list) and values and values.count(values[0]) == len(values):
        # Many columns of names say the same for thousands of rows: found out in a fiftieth of the time.
        return pa.repeat(pa.array(values[:1], plain_type(kind))[0], len(values))
    return pa.array(values, plain_type(kind))


def _of_any(kind: Kind, values: Any) -> Any:
    import pyarrow as pa

    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    elif hasattr(values, "dtype"):  # numpy
        values = pa.array(values)
    if not isinstance(values, pa.Array):
        return _of_python(kind, values)
    array = _of_array(kind, values)
    # Concatenating copies; converting from numpy, or to the type that it has already, does not.
    return pa.concat_arrays([array, array[:0]])


def _of_array(kind: Kind, array: Any) -> Any:
    import pyarrow as pa
    from pyarrow import types

    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    found = array.type
    match kind:
        case Kind.INSTANT:
            fits = types.is_integer(found) or (types.is_timestamp(found) and found.tz is not None)
        case Kind.WHOLE:
            fits = types.is_integer(found)
        case Kind.REAL:
            fits = types.is_integer(found) or types.is_floating(found)
        case Kind.TEXT | Kind.NAME:
            fits = types.is_string(found) or types.is_large_string(found)
        case Kind.TEXTS:
            fits = types.is_list(found)
        case Kind.BYTES:
            fits = types.is_binary(found) or types.is_large_binary(found)
    if not fits and not types.is_null(found):
        raise TypeError(_EXPECTED[kind])
    if kind is Kind.INSTANT and types.is_integer(found):
        array = array.cast(pa.int64())
    return array.cast(plain_type(kind))


def _violated(column: Column, array: Any) -> str | None:
    """What the column promises and these values break."""
    import pyarrow.compute as pc

    if array.null_count and not column.nullable:
        return "a value: null is not allowed"
    if column.kind is Kind.TEXTS and array.flatten().null_count:
        return "a list of texts without null"
    if column.kind is Kind.REAL and pc.all(pc.is_finite(array)).as_py() is False:
        return _EXPECTED[column.kind]
    if column.choices and pc.all(pc.is_in(array, _choices(column)), skip_nulls=True).as_py() is False:
        return f"one of {', '.join(column.choices)}"
    return _out_of_bounds(column, array)


def _out_of_bounds(column: Column, array: Any) -> str | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.minimum is None and column.maximum is None:
        return None
    numbers = array.cast(pa.int64()) if column.kind is Kind.INSTANT else array
    extremes = pc.min_max(numbers).as_py()
    if extremes["min"] is None:
        return None
    if column.minimum is not None and extremes["min"] < column.minimum:
        return f"at least {column.minimum}"
    if column.maximum is not None and extremes["max"] > column.maximum:
        return f"at most {column.maximum}"
    return None


def _choices(column: Column) -> Any:
    import pyarrow as pa

    return pa.array(column.choices)


def _first(values: Any, bad: Callable[[Any], bool]) -> int:
    """The number of the first bad value, given that there is one."""
    good, end = 0, len(values)
    while end - good > 1:
        middle = (good + end) // 2
        if bad(values[good:middle]):
            end = middle
        else:
            good = middle
    return good


def _invalid(table: RecordTable, column: Column, row: int, value: Any, expected: str) -> InvalidRecord:
    return InvalidRecord(f"{table.name}.{column.name} in row {row} (from 0) is {value!r}; expected {expected}")
