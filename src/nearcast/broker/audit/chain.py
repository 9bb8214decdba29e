"""Entries of the audit log: one JSON object a line, each with a hash over itself and the one before.

Whoever changes, leaves out or moves a line breaks the chain from there on.  What is cut off at an end, or written anew with hashes of its own, leaves a chain that is
whole: so the journal, another file, keeps the hash of the last entry, which is the oldest that retention has left, and that something was found wrong once.  That shows
slips and clumsy hands; whoever may write both files can write a new chain, unless its head was noted elsewhere (`nearcast audit` prints it).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from nearcast.errors import InvalidRecord
from nearcast.model.time import Instant

SUFFIX: Final = ".log"
TABLE: Final = "audit"
"""What the journal knows of it: ``known_in``."""

HEAD: Final = "head"
BROKEN: Final = "broken"
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
    """Of a command; or of what was found of a log that was changed."""

    count: int | None = None
    """Of entries that were lost; ``what`` then: somebody has taken or changed them, and the broker has found that."""


class Head(msgspec.Struct, frozen=True):
    """How far the log reaches."""

    n: int = 0
    hash: str = BEGINNING
    oldest: int = 1
    """The first entry that retention has left."""


class Broken(msgspec.Struct, frozen=True):
    """The broker found that somebody had changed the log: it is said until retention has taken everything of that time."""

    n: int
    """The last entry before it was found."""

    what: str


@dataclass(frozen=True, slots=True)
class Known:
    """What the journal knows of the log."""

    head: Head = field(default_factory=Head)
    broken: Broken | None = None


@dataclass(frozen=True, slots=True)
class Verified:
    first: int
    head: Head
    files: int
    lost: int = 0
    """Entries that the broker had to leave out, since the disk did not keep up."""


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


def known_in(rows: Mapping[str, bytes]) -> Known:
    """What rows of the journal's table say."""
    head, broken = rows.get(HEAD), rows.get(BROKEN)
    return Known(
        Head() if head is None else msgspec.msgpack.decode(head, type=Head),
        None if broken is None else msgspec.msgpack.decode(broken, type=Broken),
    )


def verified(folder: Path, known: Head | None = None, broken: Broken | None = None) -> Verified:
    """The whole chain; ``InvalidRecord`` says where it breaks.  ``known`` and ``broken`` as the journal has them (``known_in``)."""
    head, first, files, lost = Head(), 0, files_of(folder), 0
    stand_in: Entry | None = None
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
        if entry.did == "lost":
            lost += entry.count or 0
            stand_in = stand_in or (entry if entry.what is not None else None)
        head = Head(entry.n, digest, first)
    if known is not None:
        if head.n < known.n:
            raise InvalidRecord(_missing_at_the_end(folder, head.n, known))
        if first > known.oldest:
            raise InvalidRecord(missing_at_the_beginning(folder, first, known))
    if broken is not None:
        raise InvalidRecord(f"{broken.what}; the broker found that after entry {broken.n}, and has gone on since")
    if stand_in is not None:
        raise InvalidRecord(f"{folder}: entry {stand_in.n} stands for others: {stand_in.what}")
    return Verified(first, head, len(files), lost)


def _missing_at_the_end(folder: Path, last: int, known: Head) -> str:
    return f"{folder}: entries {last + 1} to {known.n} are missing at the end"


def missing_at_the_beginning(folder: Path, first: int, known: Head) -> str:
    return f"{folder}: entries {known.oldest} to {first - 1} are missing at the beginning"


def _before(path: Path) -> str:
    """The hash before the first entry of a file, which stands beside it."""
    try:
        return path.with_suffix(".after").read_text().strip()
    except OSError:
        return BEGINNING


def last_of(folder: Path) -> Head:
    """Where to go on, without reading more than the last file; what a fall has left unfinished is cut off."""
    files = files_of(folder)
    if files:
        last = files[-1]
        data = last.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            with last.open("r+b") as file:
                file.truncate(whole)
    return last_seen(folder)


def last_seen(folder: Path) -> Head:
    """The same, and nothing is changed: a broker may be writing."""
    files = files_of(folder)
    if not files:
        return Head()
    last, oldest = files[-1], first_of(files[0])
    lines = _lines(last)
    if not lines:
        return Head(first_of(last) - 1, _before(last), oldest)
    read = _read(lines[-1], last, len(lines))
    return Head(read.entry.n, read.hash, oldest)


def _lines(path: Path) -> list[bytes]:
    """All that are whole."""
    data = path.read_bytes()
    return data[: data.rfind(b"\n") + 1].splitlines(keepends=True)


def check_end(folder: Path, last: Head, known: Head) -> None:
    """``InvalidRecord`` if the end of the log (``last_of``) is not what the journal knows of it, or what came after that."""
    if last.n < known.n:
        raise InvalidRecord(_missing_at_the_end(folder, last.n, known))
    if not known.n:
        return
    before = known.hash
    for n, (entry, digest, body, path) in enumerate(_end(folder, last.n - known.n + 1), known.n):
        right = digest == known.hash if n == known.n else digest == _hash(before, body)
        if entry.n != n or not right:
            raise InvalidRecord(f"{path}: entry {n}, or one before it, was changed")
        before = digest


def _end(folder: Path, count: int) -> list[Line]:
    """The last entries, without reading more files than these stand in."""
    found: list[Line] = []
    for path in reversed(files_of(folder)):
        lines = _lines(path)
        first = max(0, len(lines) - (count - len(found)))
        found[:0] = [_read(line, path, number) for number, line in enumerate(lines[first:], first + 1)]
        if len(found) >= count:
            break
    return found


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
