"""The canonical form of a scenario: all keys in the order of their declaration, all values in one form."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import msgspec

from nearcast.scenario.kinds import FileName, Kind, Toml, kind_of
from nearcast.scenario.tables import Section, Table, Tables, Varieties


def to_toml(section: Section, *, explained: bool = False) -> str:
    """The section as a TOML file; ``explained`` adds what each key means."""
    return "\n".join(_lines(Table(type(section)), section, (), explained)).lstrip("\n") + "\n"


def digest(section: Section) -> str:
    """SHA-256 of the canonical form and of the files it names: the same for two scenarios that mean the same."""
    content = hashlib.sha256(to_toml(section).encode())
    for file in _files(section):
        content.update(hashlib.sha256(file.path.read_bytes()).digest())
    return content.hexdigest()


def _files(value: object) -> Iterator[FileName]:
    if isinstance(value, FileName):
        yield value
    elif isinstance(value, Section):
        for part in fields(value):
            yield from _files(getattr(value, part.name))
    elif isinstance(value, tuple):
        for part in value:
            yield from _files(part)


def _lines(kind: Kind[Any], section: Section, path: tuple[str, ...], explained: bool) -> Iterator[str]:
    """Plain values first: in TOML, what follows a heading belongs to it."""
    inner = []
    if isinstance(kind, Varieties):
        yield f"{kind.key} = {toml_value(section.word)}"
    for part in fields(section):
        part_kind, value = kind_of(part), getattr(section, part.name)
        if isinstance(part_kind, (Table, Varieties, Tables)) and value != ():
            inner.append((part.name, part_kind, value))
            continue
        explanation, written = part.metadata["explanation"], part_kind.write(value)
        if written is not None:
            yield f"{part.name} = {toml_value(written)}" + (f"  # {explanation}" if explained else "")
        elif explained:
            yield f"# {part.name} (not given): {explanation}"
    for name, part_kind, value in inner:
        heading = ".".join((*path, name))
        if isinstance(part_kind, Tables):
            for one in value:
                yield from ("", f"[[{heading}]]", *_lines(part_kind.kind, one, (*path, name), explained))
        else:
            yield from ("", f"[{heading}]", *_lines(part_kind, value, (*path, name), explained))


def toml_value(value: Toml) -> str:
    """As it stands behind the ``=``."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # JSON's escapes are TOML's as well; only DEL, which JSON lets pass, must be escaped here.
        return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {toml_value(part)}" for name, part in value.items()) + "}"
    return repr(value + 0)  # -0.0 and 0.0 mean the same
