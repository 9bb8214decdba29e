"""Entries of the audit log: one JSON object a line, each with a hash over itself and the one before.

Whoever changes, leaves out or moves a line breaks the chain from there on.  What is cut off at the end leaves a chain that is whole: so the journal, another file,
keeps how far it reached.  That shows slips and clumsy hands; whoever may write both files can write a new chain, unless its head was noted elsewhere (`nearcast audit`
prints it).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from nearcast.errors import InvalidRecord
from nearcast.model.time import Instant

SUFFIX: Final = ".log"
BEGINNING: Final = "0" * 64
"""Before the first entry."""

Did = Literal["addressed", "observed", "commanded", "lost"]
_MARK: Final = b',"hash":"'


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """No payload, no place, no topic and no name: these could tell who it was when the map of identities no longer does."""

    n: int
    """Counted from 1."""

    time: Instant
    did: Did
    by: str | None = None
    """A virtual identity; none: a client of this machine without a name, or a client of another broker."""

    whom: tuple[str, ...] = ()
    """Virtual identities of those who got the message, or were observed."""

    ways: tuple[str, ...] = ()
    """By what they were addressed: context, region, time; or what was observed."""

    offset: int | None = None
    """Of the message in the journal."""

    what: str | None = None
    """Of a command."""

    count: int | None = None
    """Of entries that were lost."""


class Head(msgspec.Struct, frozen=True):
    """How far the log reaches."""

    n: int = 0
    hash: str = BEGINNING
    oldest: int = 1
    """The first entry that retention has left."""


@dataclass(frozen=True, slots=True)
class Verified:
    first: int
    head: Head
    files: int


class Line(NamedTuple):
    entry: Entry
    hash: str
    """That it bears."""

    body: bytes
    """Of what it is the hash, with the one before."""

    path: Path


def line_of(entry: Entry, before: str) -> tuple[bytes, str]:
    """The line of an entry, and its hash."""
    body = msgspec.json.encode(entry)[:-1]
    digest = _hash(before, body)
    return body + _MARK + digest.encode() + b'"}\n', digest


def _hash(before: str, body: bytes) -> str:
    return hashlib.sha256(before.encode() + b"\n" + body).hexdigest()


def files_of(folder: Path) -> list[Path]:
    """Oldest first; the name of a file is the number of its first entry."""
    return sorted(folder.glob(f"[0-9]*{SUFFIX}"))


def first_of(path: Path) -> int:
    return int(path.stem) if path.stem.isdecimal() else 0


def entries(folder: Path) -> Iterator[Line]:
    """All of them; ``InvalidRecord`` names the line that is none.  What is just being written is left out."""
    for path in files_of(folder):
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    return
                yield _read(line, path, number)


def _read(line: bytes, path: Path, number: int) -> Line:
    body, found, rest = line.rpartition(_MARK)
    try:
        if not found or len(rest) != 67 or not rest.endswith(b'"}\n'):
            raise ValueError
        return Line(msgspec.json.decode(body + b"}", type=Entry), rest[:64].decode("ascii"), body, path)
    except (msgspec.DecodeError, ValueError):
        raise InvalidRecord(f"{path}, line {number}: is no entry of an audit log; it was changed") from None


def verified(folder: Path, known: Head | None = None) -> Verified:
    """The whole chain; ``InvalidRecord`` says where it breaks.  ``known`` is how far it reached, as the journal has it."""
    head, first, files = Head(), 0, files_of(folder)
    begins = {first_of(path): path for path in files}
    for entry, digest, body, path in entries(folder):
        if not first:
            first = entry.n
            head = Head(entry.n - 1, _before(path), entry.n)
        if entry.n != head.n + 1:
            raise InvalidRecord(f"{path}: entry {head.n + 1} is missing; the next one is {entry.n}")
        if entry.n in begins and _before(begins[entry.n]) != head.hash:
            raise InvalidRecord(f"{path}: does not go on where the file before it ends")
        if _hash(head.hash, body) != digest or (known is not None and entry.n == known.n and digest != known.hash):
            raise InvalidRecord(f"{path}: entry {entry.n}, or one before it, was changed")
        head = Head(entry.n, digest, first)
    if known is not None:
        if head.n < known.n:
            raise InvalidRecord(f"{folder}: entries {head.n + 1} to {known.n} are missing at the end")
        if first > known.oldest:
            raise InvalidRecord(f"{folder}: entries {known.oldest} to {first - 1} are missing at the beginning")
    return Verified(first, head, len(files))


def _before(path: Path) -> str:
    """The hash before the first entry of a file, which stands beside it."""
    try:
        return path.with_suffix(".after").read_text().strip()
    except OSError:
        return BEGINNING


def last_of(folder: Path) -> Head:
    """Where to go on, without reading more than the last file; what a fall has left unfinished is cut off."""
    files = files_of(folder)
    if not files:
        return Head()
    last = files[-1]
    data = last.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        with last.open("r+b") as file:
            file.truncate(whole)
    lines = data[:whole].splitlines(keepends=True)
    if not lines:
        return Head(first_of(last) - 1, _before(last), first_of(files[0]))
    read = _read(lines[-1], last, len(lines))
    return Head(read.entry.n, read.hash, first_of(files[0]))


def about(identity: str, found: Entry) -> bool:
    return found.by == identity or identity in found.whom


def shown(found: Entry) -> Sequence[str]:
    """Its parts for people."""
    said = [found.did, *found.ways]
    if found.what is not None:
        said.append(found.what)
    if found.offset is not None:
        said.append(f"offset {found.offset}")
    if found.count is not None:
        said.append(f"{found.count} entries")
    return said
