"""Reading scenario files: all that is wrong is found at once, before anything runs."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import fields, replace
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeVar

from nearcast.errors import InvalidScenario
from nearcast.guesses import guess
from nearcast.scenario.kinds import FileName, Toml
from nearcast.scenario.problems import Key, Problems
from nearcast.scenario.schema import Scenario
from nearcast.scenario.tables import Section, Table

S = TypeVar("S", bound=Section)
EXAMPLES: Final = Path(str(files("nearcast.scenario"))) / "examples"
_NOTHING: Final[Mapping[str, Toml]] = {}


def examples() -> dict[str, Path]:
    """The scenarios that come with nearcast, by name."""
    return {path.stem: path for path in sorted(EXAMPLES.glob("*.toml"))}


def read(scenario: str | Path, changes: Mapping[str, Toml] = _NOTHING) -> Scenario:
    """Read a file, or one of the ``examples`` by its name; ``changes`` replace single values, by dotted key."""
    known = examples()
    path = Path(scenario)
    if not path.is_file():
        if str(scenario) not in known:
            near = guess(str(scenario), known)
            raise InvalidScenario(f"{scenario}: there is no such file, and no example of that name{near}")
        path = known[str(scenario)]
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidScenario(f"{path}: cannot be read: {error}") from None
    return parse(text, name=str(scenario), folder=path.parent, changes=changes)


def parse(
    text: str, *, name: str = "scenario", folder: Path = Path(), changes: Mapping[str, Toml] = _NOTHING
) -> Scenario:
    """Read the text of a scenario file; ``folder`` is where the files lie that it names."""
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidScenario(f"{name}: this is not TOML: {error}") from None
    problems = Problems()
    for key, value in changes.items():
        # As complaints and documents write it, too: workload[2].rate
        _change(document, tuple(re.sub(r"\[(\d+)\]", r".\1", key).split(".")), value, problems)
    scenario = Table(Scenario).read_at((), document, problems, Scenario())
    scenario = _located(scenario, folder, (), problems)
    problems.raise_all(name)
    return scenario


def value_of(text: str) -> Toml:
    """A value as it is given on a command line, where nobody wants to quote twice: TOML if it is, else a text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _change(table: Any, key: Key, value: Toml, problems: Problems) -> None:
    """Set one value; ``workload.2.rate`` is that of the second workload."""
    for part, following in pairwise(key):
        if isinstance(table, list) and part.isdecimal() and 0 < int(part) <= len(table):
            table = table[int(part) - 1]
        elif isinstance(table, dict):
            # A list that the file does not have begins as its default does: with one entry.
            table = table.setdefault(part, [{}] if following.isdecimal() else {})
        else:
            problems.add(key, f"cannot be changed: there is no {part!r} in the file")
            return
    if isinstance(table, dict):
        table[key[-1]] = value
    else:
        several = f"there may be several; say which, such as {key[0]}[1]"
        problems.add(key, f"cannot be changed: {several if isinstance(table, list) else 'this is no table'}")


def _located(section: S, folder: Path, key: Key, problems: Problems) -> S:
    """The same, with files that are known to exist."""
    changes: dict[str, Any] = {}
    for part in fields(section):
        value, here = getattr(section, part.name), (*key, part.name)
        if isinstance(value, FileName):
            changes[part.name] = found = replace(value, folder=folder)
            if not found.path.is_file():
                problems.add(here, f"there is no file '{found.path}'")
        elif isinstance(value, Section):
            changes[part.name] = _located(value, folder, here, problems)
        elif isinstance(value, tuple):
            changes[part.name] = tuple(
                _located(entry, folder, (*here, str(n)), problems) if isinstance(entry, Section) else entry
                for n, entry in enumerate(value, 1)
            )
    return replace(section, **changes)
