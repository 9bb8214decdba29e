"""What may stand at a key of a settings file, and how a file is read.

Durations are written as everywhere in nearcast (``2h``, ``1h30m``, ``10 min``), sizes with a unit (``64 KiB``).  In Python both are whole
numbers: microseconds and bytes.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from nearcast.errors import InvalidSettings
from nearcast.guesses import guess
from nearcast.model.time import duration, duration_text

T = TypeVar("T", bound=msgspec.Struct)

SIZES: Final = {
    "B": 1,
    "kB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "TB": 1000**4,
    "KiB": 1024,
    "MiB": 1024**2,
    "GiB": 1024**3,
    "TiB": 1024**4,
}
"""Bytes of each unit, also in scenarios."""

_SIZE: Final = re.compile(rf"(\d{{1,15}}) ?({'|'.join(SIZES)})")
_AT: Final = re.compile(r"(?P<what>.*) - at `\$\.?(?P<path>.*)`", re.DOTALL)


class Duration(int):
    """Microseconds, written as a text such as ``90s`` or ``2h``."""

    __slots__ = ()

    @classmethod
    def of(cls, value: object) -> Duration:
        if not isinstance(value, str):
            raise InvalidSettings(f"{value!r} has no unit; write a duration such as '90s', '5m' or '2h'")
        microseconds = duration(value)
        if microseconds < 0:
            raise InvalidSettings(f"{value!r} is negative; write a duration such as '2h'")
        return cls(microseconds)

    def __str__(self) -> str:
        return duration_text(self) if self else "0s"


class Size(int):
    """Bytes, written as a text such as ``64 KiB``."""

    __slots__ = ()

    @classmethod
    def of(cls, value: object) -> Size:
        found = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
        if found is None:
            raise InvalidSettings(f"{value!r} is no size; write one such as '64 KiB' (units: {', '.join(SIZES)})")
        return cls(int(found[1]) * SIZES[found[2]])

    def __str__(self) -> str:
        unit = max(
            (unit for unit, size in SIZES.items() if self and self % size == 0), key=SIZES.__getitem__, default="B"
        )
        return f"{self // SIZES[unit]} {unit}"


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table of the file."""


def read_settings(path: Path, kind: type[T]) -> T:
    """What the file says, or ``InvalidSettings`` that names the file and the key."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidSettings(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # not UTF-8
        raise InvalidSettings(f"{path}: {error}") from None
    # Paths of a file are meant from where the file is, not from where the program happens to be started.
    return parse_settings(text, kind, str(path), path.parent)


def parse_settings(text: str, kind: type[T], name: str, folder: Path) -> T:
    """The same of a text that came another way; ``name`` says which one is wrong."""
    try:
        raw = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidSettings(f"{name}: {error}") from None
    unknown = list(_unknown_keys(raw, kind, ""))
    if unknown:
        raise InvalidSettings("\n".join(f"{name}: {line}" for line in unknown))
    try:
        return msgspec.convert(raw, kind, dec_hook=_reader(folder))
    except msgspec.ValidationError as error:
        raise InvalidSettings(f"{name}: {_explained(str(error), kind)}") from None


def _reader(folder: Path) -> Any:
    def read(kind: Any, value: object) -> object:
        if kind in (Duration, Size):
            return kind.of(value)
        if kind is Path:
            if not isinstance(value, str) or not value:
                raise InvalidSettings(f"{value!r} is no path; write one in quotes")
            return folder / Path(value).expanduser()
        raise NotImplementedError(kind)

    return read


def _explained(message: str, kind: type[msgspec.Struct]) -> str:
    """``listen.port: what is wrong``; of a word that is not among the possible ones, also these."""
    found = _AT.fullmatch(message)
    if found is None or not found["path"]:
        return found["what"] if found else message
    words = _words(_annotation(found["path"], kind)) if "enum value" in message else []
    possible = f"; possible: {', '.join(map(repr, words))}" if words else ""
    return f"{found['path']}: {found['what']}{possible}"


def _annotation(path: str, kind: type[msgspec.Struct]) -> Any:
    """What the declaration says of the key at that path."""
    annotation: Any = kind
    for key in path.split("."):
        section = _section(annotation)
        if section is None:
            break
        names = {field.encode_name: field.name for field in msgspec.structs.fields(section)}
        annotation = get_type_hints(section).get(names.get(key.partition("[")[0], ""))
    return annotation


def _words(annotation: Any) -> list[str]:
    """All that ``Literal`` allows in an annotation."""
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [word for part in get_args(annotation) for word in _words(part)]


def _unknown_keys(raw: Mapping[str, Any], kind: type[msgspec.Struct], where: str) -> Iterator[str]:
    """All keys that mean nothing, each with the one that was probably meant."""
    known = {field.encode_name: field.name for field in msgspec.structs.fields(kind)}
    types = get_type_hints(kind)
    for key, value in raw.items():
        path = f"{where}.{key}" if where else key
        if key not in known:
            hint = guess(key, known) or f"; known here: {', '.join(known)}"
            yield f"{path}: there is no such key{hint}"
            continue
        section = _section(types[known[key]])
        if section is None:
            continue
        for number, table in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(table, dict):
                yield from _unknown_keys(table, section, f"{path}[{number}]" if isinstance(value, list) else path)


def _section(annotation: Any) -> type[msgspec.Struct] | None:
    """The table, or the table in the list, that an annotation speaks of."""
    for part in (annotation, *get_args(annotation)):
        if isinstance(part, type) and issubclass(part, msgspec.Struct):
            return part
    return None
