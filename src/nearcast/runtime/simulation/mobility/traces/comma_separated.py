"""Traces as comma-separated values: one fix a line, with columns ``id``, ``time``, ``lat`` and ``lon``; others are ignored.

Times are seconds, from whatever epoch, or RFC 3339.  Tracks may be interleaved; each is in the order of time.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from nearcast.errors import InvalidTime, InvalidTrace
from nearcast.model.time import LARGEST, MICROSECONDS, instant
from nearcast.runtime.simulation.mobility.traces.track import (
    Int64s,
    Traces,
    Track,
    bad_coordinate,
    coordinate_complaint,
    order_complaint,
)

COLUMNS: Final = ("id", "time", "lat", "lon")


def read_csv(path: Path) -> Traces:
    """The traces of a file; a million fixes take about a second."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    _check_header(path)
    options = arrow_csv.ConvertOptions(
        include_columns=COLUMNS,
        column_types={"id": pa.string(), "lat": pa.float64(), "lon": pa.float64()},
        null_values=[""],
        strings_can_be_null=True,
    )
    try:
        table = arrow_csv.read_csv(path, convert_options=options).combine_chunks()
    except pa.ArrowInvalid as error:
        raise _first_bad_line(path) or InvalidTrace(f"{path}: {error}") from None
    if not table.num_rows:
        raise InvalidTrace(f"{path}: there is a header, but no fix; give at least one line of {', '.join(COLUMNS)}")
    if any(table.column(name).null_count for name in COLUMNS):
        raise _first_bad_line(path) or InvalidTrace(f"{path}: some values are missing")
    return Traces(tuple(_tracks(path, table)))


def _tracks(path: Path, table: Any) -> Iterator[Track]:
    lat, lon = table.column("lat").to_numpy(), table.column("lon").to_numpy()
    wrong = bad_coordinate(lat, lon)
    if wrong is not None:
        raise _complaint(path, wrong, coordinate_complaint(float(lat[wrong]), float(lon[wrong])))
    times = _instants(path, table.column("time"))
    ids = table.column("id").combine_chunks().dictionary_encode()
    names, codes = ids.dictionary.to_pylist(), ids.indices.to_numpy()
    # Stable: the fixes of each stay in the order of the file.
    order = np.argsort(codes, kind="stable")
    same = np.diff(codes[order]) == 0
    backwards = np.flatnonzero(same & (np.diff(times[order]) <= 0))
    if len(backwards):
        row = int(order[backwards + 1].min())
        raise _complaint(path, row, order_complaint(names[codes[row]]))
    borders = np.flatnonzero(~same) + 1
    for name, rows in zip(names, np.split(order, borders), strict=True):
        yield Track(name, times[rows], lat[rows], lon[rows], np.zeros(len(rows) - 1, np.bool_))


def _instants(path: Path, column: Any) -> Int64s:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        seconds = column.to_numpy()
        # Not too large, nor infinite or NaN.
        wrong = np.flatnonzero(~(np.abs(seconds) < LARGEST // MICROSECONDS))
        if len(wrong):
            value = seconds[wrong[0]]
            raise _complaint(path, int(wrong[0]), f"{value:g} s is beyond the year 9999; give seconds or RFC 3339")
        return np.asarray(np.round(seconds * MICROSECONDS), np.int64)
    if pa.types.is_timestamp(kind) and kind.tz:
        return np.asarray(column.cast(pa.timestamp("us", "UTC"), safe=False).cast(pa.int64()).to_numpy(), np.int64)
    # Unusual, mixed, or without a time zone: one by one, to say which it is that cannot be read.
    try:
        return np.array([instant(text) for text in column.cast(pa.string()).to_pylist()], np.int64)
    except InvalidTime:
        raise _first_bad_line(path) or InvalidTrace(
            f"{path}: some times are seconds and some are RFC 3339; write all alike"
        ) from None


def _check_header(path: Path) -> None:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            header = next(csv.reader(file), [])
    except OSError as error:
        raise InvalidTrace(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InvalidTrace(f"{path} is not text in UTF-8: {error.reason}") from None
    missing = [name for name in COLUMNS if header.count(name) != 1]
    if missing:
        raise InvalidTrace(
            f"{path}, line 1: no single column {', '.join(missing)} in {', '.join(header) or 'an empty file'}; "
            f"the first line names the columns, {', '.join(COLUMNS)} among them"
        )


def _first_bad_line(path: Path) -> InvalidTrace | None:
    """What is wrong, found slowly: with the number of the line."""
    for line, header, row in _lines(path):
        where = f"{path}, line {line}"
        if len(row) != len(header):
            return InvalidTrace(f"{where}: {len(row)} values for {len(header)} columns; mend or remove the line")
        values = dict(zip(header, row, strict=True))
        for name in COLUMNS:
            if not values[name]:
                return InvalidTrace(f"{where}: {name} is missing; give all of {', '.join(COLUMNS)}")
        for name in ("lat", "lon"):
            if not _is_number(values[name]):
                return InvalidTrace(f"{where}: {name} {values[name]!r} is not a number of degrees")
        if not _is_number(values["time"]):
            try:
                instant(values["time"])
            except InvalidTime as error:
                return InvalidTrace(f"{where}: {error}; or give seconds")
    return None


def _complaint(path: Path, row: int, what: str) -> InvalidTrace:
    line = next(line for number, (line, _, _) in enumerate(_lines(path)) if number == row)
    return InvalidTrace(f"{path}, line {line}: {what}")


def _lines(path: Path) -> Iterator[tuple[int, list[str], list[str]]]:
    """Number, names and values of each line with something on it."""
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        rows = csv.reader(file)
        header = next(rows)
        for row in rows:
            if row:
                yield rows.line_num, header, row


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
