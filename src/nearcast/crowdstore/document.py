"""The parameters as docs/crowdstore.md shows them: ``python -m nearcast.crowdstore.document docs/crowdstore.md`` brings it up to date."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Final, get_args

import msgspec

from nearcast.crowdstore.choosing import Rule
from nearcast.crowdstore.registry import MECHANISMS
from nearcast.documents import with_section
from nearcast.transition.registry import DURATION, LENGTH

BEGIN: Final = "<!-- from src/nearcast/crowdstore: do not edit below -->\n"
_HEADING: Final = "| parameter | what may stand there | default | meaning |\n|---|---|---|---|"
_SIGNS: Final = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}


def section() -> str:
    """All of them, as Markdown."""
    parts = [
        f"### `{name}`\n\n{entry.about}.\n\n{_HEADING}\n" + "\n".join(_rows(name)) for name, entry in MECHANISMS.items()
    ]
    rule = "\n".join(f"| `{each.name}` | {_default(each.default)} |" for each in fields(Rule))
    return "\n\n".join([*parts, f"### `Rule`\n\n| parameter | default |\n|---|---|\n{rule}\n"])


def up_to_date(text: str) -> str:
    """The document with its section of parameters as it should be."""
    return with_section(text, BEGIN, section())


def _rows(name: str) -> Iterator[str]:
    for field in msgspec.structs.fields(MECHANISMS[name].parameters):
        kind, *metas = get_args(field.type)
        bounds, extra, meaning = [], None, ""
        for meta in metas:
            bounds += [
                f"{sign} {getattr(meta, key):,}" for key, sign in _SIGNS.items() if getattr(meta, key) is not None
            ]
            extra, meaning = meta.extra or extra, meta.description or meaning
        unit = " s" if extra == DURATION else " m" if extra == LENGTH else ""
        default = "*must be given*" if field.required else f"{_default(field.default)}{unit}"
        yield f"| `{field.name}` | {', '.join([_word(kind), *bounds])} | {default} | {meaning} |"


def _word(kind: type[Any]) -> str:
    return {bool: "yes or no", int: "a whole number", float: "a number"}[kind]


def _default(value: object) -> str:
    if value is MISSING:
        return "*must be given*"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,g}" if isinstance(value, int | float) else f"`{value}`"


if __name__ == "__main__":
    document = Path(sys.argv[1])
    document.write_text(up_to_date(document.read_text()))
