"""The keys of settings files: types, defaults, and what the text behind a field says."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from nearcast.broker.settings import BrokerSettings
from nearcast.pipeline.settings import PipelineSettings
from nearcast.settings_files import Duration, Section, Size

HEAD: Final = """\
# Settings

Files are TOML; everything has a default, and unknown keys are refused with a guess at what was meant. Durations are written `90s`, `5m`, `2h`,
`7d`; sizes `64 KiB`, `10 GiB`. Paths count from the file. This page is made from the code.
"""
_BROKER: Final = """\
## The broker

`nearcast serve --config FILE`. [Who may do what](../security.md) explains `access`, [the broker](../broker.md) and
[operations](../operations.md) the rest.
"""
_PIPELINE: Final = """\
## The pipeline

`nearcast pipeline ... --config FILE`; [the pipeline](../pipeline.md) explains it.
"""


def settings_page() -> str:
    """The page."""
    return "\n".join([HEAD, _BROKER, *_section("", BrokerSettings), _PIPELINE, *_section("", PipelineSettings)])


def _section(path: str, section: type[Section], *, several: bool = False) -> Iterator[str]:
    if path:
        yield f"### `{'[[' if several else '['}{path}{']]' if several else ']'}`\n"
    if section.__doc__ and not section.__doc__.startswith(section.__name__):
        yield " ".join(section.__doc__.split()).replace("``", "`") + "\n"
    meanings, hints = field_meanings(section), get_type_hints(section, include_extras=True)
    tables, rows = [], []
    for field in msgspec.structs.fields(section):
        inner, is_list = _section_in(hints[field.name])
        key = f"{path}.{field.encode_name}" if path else field.encode_name
        if inner is not None:
            tables.append((key, inner, is_list))
        else:
            meaning = meanings.get(field.name, "").replace("|", "\\|")
            rows.append(f"| `{field.encode_name}` | {_kind(hints[field.name])} | {_default(field)} | {meaning} |")
    if rows:
        yield "| key | kind | default | meaning |\n|---|---|---|---|"
        yield from rows
        yield ""
    for key, inner, is_list in tables:
        yield from _section(key, inner, several=is_list)


def field_meanings(section: type) -> dict[str, str]:
    """The texts that stand behind fields."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(section))).body
    assert isinstance(definition, ast.ClassDef)
    found, last = {}, ""
    for node in definition.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            last = node.target.id
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and last:
            found[last] = " ".join(str(node.value.value).split()).replace("``", "`")
    return found


def _section_in(hint: Any) -> tuple[type[Section] | None, bool]:
    if isinstance(hint, type) and issubclass(hint, Section):
        return hint, False
    for inner in get_args(hint):
        if isinstance(inner, type) and issubclass(inner, Section):
            return inner, get_origin(hint) is tuple
    return None, False


_WORDS: Final = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "`true`, `false`",
    Duration: "duration",
    Size: "size",
    Path: "path",
}


def _kind(hint: Any) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _kind(arguments[0])
    if origin is Literal:
        return ", ".join(f'`"{each}"`' for each in arguments)
    if origin in (Union, UnionType):
        return ", ".join(dict.fromkeys(_kind(each) for each in arguments if each is not type(None)))
    if origin is tuple:
        return f"list of: {_kind(arguments[0])}"
    if origin is dict or hint is dict:
        return "table"
    return _WORDS.get(hint, getattr(hint, "__name__", str(hint)))


def _default(field: Any) -> str:
    if field.default is msgspec.NODEFAULT:
        return "" if field.default_factory is not msgspec.NODEFAULT else "*must be given*"
    value = field.default
    if value is None or value in ((), ""):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, dict):
        return "`{ " + ", ".join(f"{key} = {_quoted(each)}" for key, each in value.items()) + " }`"
    return f"`{_quoted(value)}`"


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, (str, Path, Duration, Size)) else str(value)
