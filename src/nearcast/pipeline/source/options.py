"""What may be set on a reader or writer of the source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from nearcast.errors import InvalidSettings
from nearcast.journal.rows import ROWS
from nearcast.pipeline.limits import MOST_ROWS
from nearcast.planning.signed import Signer, signer_in

READABLE: Final = tuple(table for table, _ in ROWS.values())
WRITABLE: Final = ("notifications", "plans")

OFFSETS_PER_PARTITION: Final = 50_000
"""Of what is not in the lake yet: a task costs as much as reading some thousands of records."""

_SPARKS_OWN: Final = frozenset({"checkpointlocation"})
"""Options that Spark reads and hands on all the same."""

_KNOWN: Final = (
    *("table", "lake", "path", "broker", "user", "password", "startingoffset", "endingoffset"),
    *("maxoffsetspertrigger", "maxrowspertrigger", "offsetsperpartition", "query", "plannerkey", "audience"),
)


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    url: str
    user: str | None = None
    password: str | None = None

    def __repr__(self) -> str:
        return f"BrokerAddress({self.url!r})"  # what Spark prints is read by many


@dataclass(frozen=True, slots=True)
class SourceOptions:
    table: str
    lake: str | None
    broker: BrokerAddress | None
    start: int | str
    """An offset, ``earliest`` or ``latest``."""

    end: int | None
    """Offsets from there on are not read; none: all there are."""

    most_offsets: int
    """Of one micro-batch."""

    offsets_per_partition: int
    query: str
    """Whose answers are written: part of what tells one notification from another."""

    signer: Signer | None = None
    """Who signs the plans that are written; read where the writer is made, so that workers need no file."""


def reading(options: Mapping[str, str]) -> SourceOptions:
    """The options of a reader, or ``InvalidSettings``."""
    return _checked(options, READABLE, "read")


def writing(options: Mapping[str, str]) -> SourceOptions:
    """The options of a writer, or ``InvalidSettings``."""
    checked = _checked(options, WRITABLE, "written")
    if checked.broker is None:
        raise InvalidSettings('nobody to write to: say .option("broker", "http://HOST:8080")')
    return checked


def _checked(options: Mapping[str, str], tables: tuple[str, ...], done: str) -> SourceOptions:
    given = {name.lower(): value for name, value in options.items()}
    unknown = sorted(set(given) - set(_KNOWN) - _SPARKS_OWN)
    if unknown:
        raise InvalidSettings(f"unknown options {', '.join(unknown)}; there are {', '.join(_KNOWN)}")
    table = given.get("table", "")
    if table not in tables:
        raise InvalidSettings(f"option table is {table!r}; what can be {done} is {', '.join(tables)}")
    lake, broker = given.get("lake", given.get("path")), _broker(given)
    if lake is None and broker is None:
        raise InvalidSettings("nowhere to look: set the option lake to a folder, broker to http://HOST:8080, or both")
    limits = [_number(given, name) for name in ("maxoffsetspertrigger", "maxrowspertrigger")]
    return SourceOptions(
        table,
        lake,
        broker,
        _start(given.get("startingoffset", "earliest")),
        _number(given, "endingoffset", least=0),
        min((limit for limit in limits if limit is not None), default=MOST_ROWS),
        _number(given, "offsetsperpartition") or OFFSETS_PER_PARTITION,
        given.get("query", ""),
        signer_in(Path(given["plannerkey"]), given.get("audience", "")) if "plannerkey" in given else None,
    )


def _broker(given: Mapping[str, str]) -> BrokerAddress | None:
    url = given.get("broker")
    if url is None:
        return None
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InvalidSettings(f"option broker is {url!r}; expected the address of its HTTP port, as http://HOST:8080")
    return BrokerAddress(url.rstrip("/"), given.get("user"), given.get("password"))


def _start(text: str) -> int | str:
    if text in {"earliest", "latest"}:
        return text
    if text.isdecimal():
        return int(text)
    raise InvalidSettings(f"option startingOffset is {text!r}; expected earliest, latest or an offset")


def _number(given: Mapping[str, str], name: str, least: int = 1) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    if not text.isdecimal() or int(text) < least:
        raise InvalidSettings(f"option {name} is {text!r}; expected a whole number from {least} on")
    return int(text)
