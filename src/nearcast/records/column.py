"""What a table of records consists of, said without Arrow: importing the schemas costs nothing.

Units are the model's and the same in every table: instants and durations are whole microseconds, distances metres,
speeds metres per second, angles degrees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from nearcast.errors import InvalidRecord
from nearcast.model.time import LARGEST


class Kind(StrEnum):
    """What the values of a column are; the value of a member stands in the document and in the content hash."""

    INSTANT = "instant"
    WHOLE = "whole number"
    REAL = "real number"
    TEXT = "text"
    NAME = "name"
    """A text that repeats: kept once and referred to by number."""
    TEXTS = "list of texts"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class Column:
    """One column; ``None`` is refused unless it is ``nullable``, as is what lies outside ``choices`` or the bounds."""

    name: str
    kind: Kind
    description: str
    nullable: bool = False
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None


@dataclass(frozen=True, slots=True)
class RecordTable:
    """A table of records: its name, what a row of it says, and its columns in the order in which they are written."""

    name: str
    description: str
    columns: tuple[Column, ...]
    optional: int = 0
    """So many of the last columns may be left out of a row, all of them together: they are null then."""

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def row(self, values: Mapping[str, object]) -> list[object]:
        """Values by the names of their columns, in the order of these; null where there is none."""
        unknown = values.keys() - set(self.column_names)
        if unknown:
            raise InvalidRecord(f"{self.name} has no column {', '.join(sorted(unknown))}")
        return [values.get(each) for each in self.column_names]

    @property
    def required(self) -> int:
        """Of so many columns a row has values at least."""
        return len(self.columns) - self.optional


def instant(column: str, description: str, *, nullable: bool = False) -> Column:
    # Beyond the year 9999 neither Python nor Spark can show what was stored.
    return Column(column, Kind.INSTANT, description, nullable=nullable, minimum=1 - LARGEST, maximum=LARGEST - 1)


def name(column: str, description: str, *choices: str, nullable: bool = False) -> Column:
    return Column(column, Kind.NAME, description, nullable=nullable, choices=choices)


def count(column: str, description: str, *, nullable: bool = False) -> Column:
    return Column(column, Kind.WHOLE, description, nullable=nullable, minimum=0)


def flag(column: str, description: str) -> Column:
    """What is so, 1, or is not, 0; null: nothing was said, as in what was recorded before there was such a column."""
    return Column(column, Kind.WHOLE, description, nullable=True, minimum=0, maximum=1)


def offset(
    column: str = "offset", what: str = "where the broker's journal has it; null: a simulation has none"
) -> Column:
    return count(column, what, nullable=True)


def measure(column: str, description: str, *, nullable: bool = False) -> Column:
    """A length, a speed: not negative."""
    return Column(column, Kind.REAL, description, nullable=nullable, minimum=0.0)


def place(of: str, *, nullable: bool = False) -> tuple[Column, Column]:
    return (
        Column("lat", Kind.REAL, f"latitude of {of}", nullable=nullable, minimum=-90.0, maximum=90.0),
        Column("lon", Kind.REAL, f"longitude of {of}", nullable=nullable, minimum=-180.0, maximum=180.0),
    )
