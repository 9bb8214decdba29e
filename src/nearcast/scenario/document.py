"""The keys as docs/scenarios.md shows them: ``python -m nearcast.scenario.document docs/scenarios.md`` brings it up to date."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, Final

from nearcast.documents import with_section
from nearcast.scenario.kinds import Kind, kind_of
from nearcast.scenario.schema import Scenario
from nearcast.scenario.tables import Section, Table, Tables, Varieties
from nearcast.scenario.writing import toml_value

BEGIN: Final = "<!-- from src/nearcast/scenario: do not edit below -->\n"
_HEADING: Final = "| key | what may stand there | default | meaning |\n|---|---|---|---|"


def section() -> str:
    """All keys, as Markdown."""
    shown: dict[int, tuple[str, str]] = {}
    parts = [_section((part.name,), kind_of(part), part.metadata["explanation"], shown) for part in fields(Scenario)]
    return "\n".join(line for part in parts for line in part)


def up_to_date(text: str) -> str:
    """The document with its section of keys as it should be."""
    return with_section(text, BEGIN, section())


def _section(
    path: tuple[str, ...], kind: Kind[Any], explanation: str, shown: dict[int, tuple[str, str]]
) -> Iterator[str]:
    """``shown`` are the varieties that stand there already, by identity, with their headings and defaults; whoever takes them up again
    refers to them.
    """
    heading = ".".join(path)
    if isinstance(kind, Tables):
        heading, kind = f"[{heading}]", kind.kind
    yield f"### `[{heading}]`: {explanation}\n"
    if isinstance(kind, Varieties):
        known, usual = shown.setdefault(id(kind.sections), (heading, kind.usual))
        if known != heading:
            yield f"As `[{known}]`" + (".\n" if kind.usual == usual else f'; the default is `"{kind.usual}"`.\n')
            return
    varieties = kind.sections if isinstance(kind, Varieties) else {"": _of(kind)}
    if isinstance(kind, Varieties):
        yield f"| `{kind.key}` | |\n|---|---|"
        for word, variety in varieties.items():
            usual = " (default)" if word == kind.usual else ""
            yield f'| `"{word}"`{usual} | {_summary(variety)} |'
        yield ""
    yield from _keys(varieties)
    yield ""
    for name, inner in _tables(varieties).items():
        yield from _section((*path, name), kind_of(inner), inner.metadata["explanation"], shown)


def _keys(varieties: Mapping[str, type[Section]]) -> Iterator[str]:
    """One row for each key; what several varieties declare alike stands there once."""
    rows: dict[tuple[str, str], list[str]] = {}
    for word, variety in varieties.items():
        for part in fields(variety):
            if not _is_table(part):
                rows.setdefault((part.name, _row(part)), []).append(word)
    if rows:
        yield _HEADING
    for (name, row), words in rows.items():
        of = "" if len(words) == len(varieties) else f" ({', '.join(words)})"
        yield f"| `{name}`{of} | {row} |"


def _row(part: Field[Any]) -> str:
    kind = kind_of(part)
    written = None if part.default in (MISSING, None) else kind.write(part.default)
    default = "*must be given*" if part.default is MISSING else "" if written is None else f"`{toml_value(written)}`"
    return f"{kind.describe()} | {default} | {part.metadata['explanation']}"


def _tables(varieties: Mapping[str, type[Section]]) -> dict[str, Field[Any]]:
    return {part.name: part for variety in varieties.values() for part in fields(variety) if _is_table(part)}


def _is_table(part: Field[Any]) -> bool:
    return isinstance(kind_of(part), (Table, Tables, Varieties))


def _of(kind: Kind[Any]) -> type[Section]:
    assert isinstance(kind, Table)
    made: type[Section] = kind.section
    return made


def _summary(variety: type[Section]) -> str:
    return " ".join((variety.__doc__ or "").split()).removesuffix(".")


if __name__ == "__main__":
    document = Path(sys.argv[1])
    document.write_text(up_to_date(document.read_text()))
