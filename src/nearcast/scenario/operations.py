"""Operations of clients, and logs of them: what applications did, or are to do again (docs/operation-logs.md).

A log is a file of comma-separated values with a heading, or of JSON lines; both have the same columns.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeAlias

import msgspec

from nearcast.errors import InvalidInput, InvalidTrace
from nearcast.guesses import guess
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.model.time import MICROSECONDS, Instant

Scalar: TypeAlias = bool | int | float | str
MOST_COMPLAINTS: Final = 20
LARGEST_PAYLOAD: Final = 1_000_000
_NESTED: Final = ("attributes", "tags")
"""Columns whose cells hold JSON."""


class Operation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One line of a log."""

    time: float
    """Seconds since the start of the run."""

    client: str
    operation: Literal["publish", "subscribe", "unsubscribe"]
    id: str = ""
    """Of the event (if empty, one is made up), or of the subscription among the client's own."""

    topic: str = ""
    """To publish to; or the filter to subscribe to."""

    lat: float | None = None
    lon: float | None = None
    """Where the event happens; without it, it has no place unless it is local."""

    local: bool = False
    """The event happens where its publisher is then."""

    payload: int = 0
    """Bytes."""

    attributes: dict[str, Scalar] = {}
    tags: tuple[str, ...] = ()
    radius: float | None = None
    """Metres around the subscriber; without it, events anywhere are of interest."""

    where: str = ""
    """Filter of the subscription, as CQL2 text."""

    def __post_init__(self) -> None:
        if not 0 <= self.time < math.inf:
            raise InvalidTrace(f"time is {self.time}; give seconds since the start of the run")
        if not self.client:
            raise InvalidTrace("client is empty; say whose operation it is")
        foreign = [name for name in self.__struct_fields__ if name not in _PARTS[self.operation] and self._given(name)]
        if foreign:
            raise InvalidTrace(f"{foreign[0]} means nothing to {self.operation!r}; leave it out")
        if self.operation == "publish":
            self._check_place()
            self.event("checked", 0, None)
        elif self.operation == "subscribe":
            self.subscription()

    @property
    def microseconds(self) -> int:
        """Since the start of the run."""
        return round(self.time * MICROSECONDS)

    def event(self, name: str, published: Instant, here: Point | None) -> Event:
        """What is published, under that id if it has none of its own; ``here`` is where a local event happens."""
        place = here if self.lat is None or self.lon is None else Point(self.lat, self.lon)
        content = payload(self.payload)
        return Event(
            self.id or name, self.topic, published, self.attributes, self.tags, content, self.client, place=place
        )

    def subscription(self) -> Subscription:
        """What is subscribed to."""
        area = None if self.radius is None else Circle(self.radius)
        return Subscription(self.topic, self.where or None, area, id=self.id, no_local=True)

    def _check_place(self) -> None:
        if (self.lat is None) != (self.lon is None):
            raise InvalidTrace("a place needs both lat and lon")
        if self.local and self.lat is not None:
            raise InvalidTrace("a local event happens where its publisher is; leave lat and lon out, or local")
        if not 0 <= self.payload <= LARGEST_PAYLOAD:
            raise InvalidTrace(f"payload is {self.payload}; give 0 to {LARGEST_PAYLOAD} bytes")

    def _given(self, name: str) -> bool:
        return getattr(self, name) not in ("", None, False, 0, {}, ())


_COMMON: Final = frozenset({"time", "client", "operation", "id"})
_PARTS: Final = {
    "publish": _COMMON | {"topic", "lat", "lon", "local", "payload", "attributes", "tags"},
    "subscribe": _COMMON | {"topic", "radius", "where"},
    "unsubscribe": _COMMON,
}
COLUMNS: Final = Operation.__struct_fields__


@lru_cache(maxsize=64)
def payload(size: int) -> bytes:
    """So many bytes; the same object again and again, because thousands of events are alike but for their id and place."""
    return bytes(size)


def read_log(path: Path) -> tuple[Operation, ...]:
    """All operations in order of time (in that of the file where times are equal), or ``InvalidTrace`` with what is wrong."""
    try:
        # Line ends as they are: a cell may hold some.
        with path.open(encoding="utf-8-sig", newline="") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidTrace(f"{path.name}: cannot be read: {error}") from None
    rows = _form(path)[0](path, text)
    complaints: list[str] = []
    operations: list[tuple[int, Operation]] = []
    for line, row in rows:
        try:
            operations.append((line, row()))
        except (InvalidInput, msgspec.ValidationError, msgspec.DecodeError, RecursionError) as error:
            complaints.append(f"{path.name}, line {line}: {error}")
    operations.sort(key=lambda numbered: numbered[1].time)
    complaints += [f"{path.name}, line {line}: {complaint}" for line, complaint in _inconsistencies(operations)]
    if complaints:
        more = (
            f"\n{path.name}: and {len(complaints) - MOST_COMPLAINTS} more" if len(complaints) > MOST_COMPLAINTS else ""
        )
        raise InvalidTrace("\n".join(complaints[:MOST_COMPLAINTS]) + more)
    return tuple(operation for _, operation in operations)


def write_log(path: Path, operations: Iterable[Operation]) -> None:
    """Write what ``read_log`` reads."""
    with LogWriter(path) as log:
        for operation in operations:
            log.write(operation)


class LogWriter:
    """Writes a log operation by operation; the file has its name only when it is complete."""

    def __init__(self, path: Path) -> None:
        self._path: Final = path
        self._part: Final = path.with_name(f"{path.name}.part")
        _, head, self._line = _form(path)
        if path.is_dir():
            raise InvalidTrace(f"{path}: cannot be written: it is a folder")
        try:
            self._file: Final = self._part.open("w", encoding="utf-8", newline="")
        except OSError as error:
            raise InvalidTrace(f"{path}: cannot be written: {error.strerror}") from None
        self._file.write(head)

    def write(self, operation: Operation) -> None:
        self._file.write(self._line(operation) + "\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        if kind is None:
            self._part.replace(self._path)
        else:
            self._part.unlink(missing_ok=True)


Row = tuple[int, Callable[[], Operation]]
"""The number of a line, and how to make sense of it."""


def _rows_of_values(path: Path, text: str) -> Iterator[Row]:
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    for column in reader.fieldnames or ():
        if column not in COLUMNS:
            raise InvalidTrace(f"{path.name}, line 1: there is no column {column!r}{guess(column, COLUMNS)}")
    try:
        for cells in reader:
            yield reader.line_num, partial(_from_cells, cells)
    except csv.Error as error:
        raise InvalidTrace(f"{path.name}, line {reader.reader.line_num}: {error}") from None


def _from_cells(cells: dict[str | None, Any]) -> Operation:
    if None in cells or None in cells.values():
        raise InvalidTrace("it does not have as many cells as the heading")
    given = {str(name): cell for name, cell in cells.items() if cell != ""}
    for name in _NESTED:
        if name in given:
            given[name] = msgspec.json.decode(given[name])
    # Not strict: all cells are text.
    return msgspec.convert(given, Operation, strict=False)


def _rows_of_json(path: Path, text: str) -> Iterator[Row]:  # noqa: ARG001 - as for values
    decode = msgspec.json.Decoder(Operation).decode
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, partial(decode, line)


def _as_values(operation: Operation) -> str:
    cells = msgspec.to_builtins(operation)
    return ",".join(_cell(cells.get(column, "")) for column in COLUMNS)


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',"\r\n') else text


def _as_json(operation: Operation) -> str:
    return msgspec.json.encode(operation).decode()


_FORMS: Final = {
    ".csv": (_rows_of_values, ",".join(COLUMNS) + "\n", _as_values),
    ".jsonl": (_rows_of_json, "", _as_json),
}


def _form(path: Path) -> Any:
    try:
        return _FORMS[path.suffix]
    except KeyError:
        raise InvalidTrace(f"{path.name}: a log of operations ends in {' or '.join(_FORMS)}") from None


def _inconsistencies(operations: Iterable[tuple[int, Operation]]) -> Iterator[tuple[int, str]]:
    """What each line alone cannot show."""
    subscribed: set[tuple[str, str]] = set()
    published: dict[str, int] = {}
    for line, operation in operations:
        key = operation.client, operation.id
        if operation.operation == "subscribe":
            subscribed.add(key)
        elif operation.operation == "unsubscribe":
            if key not in subscribed:
                yield line, f"{operation.client!r} has no subscription {operation.id!r} then"
            subscribed.discard(key)
        elif operation.id:
            if operation.id in published:
                yield line, f"event {operation.id!r} was published already, in line {published[operation.id]}"
            published.setdefault(operation.id, line)
