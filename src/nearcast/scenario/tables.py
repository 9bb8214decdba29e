"""Tables of a scenario file: sections with declared keys, sections of several varieties, and lists of sections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, ClassVar, Generic, TypeVar

from nearcast.errors import InvalidInput, InvalidScenario
from nearcast.guesses import guess
from nearcast.scenario.kinds import Kind, Several, Toml, kind_of, listed
from nearcast.scenario.problems import Contradiction, Key, Problems
from nearcast.scenario.quantities import shown


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """Base of all sections: its fields, made with ``entry``, are its keys."""

    word: ClassVar[str] = ""
    """Of a variety of section: the word in the file that stands for it."""

    def contradictions(self) -> Iterator[Contradiction]:
        """What cannot be true together, although each key alone is fine."""
        yield from ()


S = TypeVar("S", bound=Section)


class _OfTables(Kind[S], Generic[S]):
    """What tables share: they find several problems at once."""

    def read(self, value: Toml) -> S:
        problems = Problems()
        nothing: Any = None
        made = self.read_at((), value, problems, nothing)
        if problems.lines:
            raise InvalidScenario("; ".join(problems.lines))
        return made


@dataclass(frozen=True)
class Table(_OfTables[S]):
    """A section."""

    section: type[S]
    elsewhere: Mapping[str, type[Section]] = field(default_factory=dict)
    """Other varieties of it: a key that belongs to one of them is no slip of the pen."""

    def read_at(self, key: Key, value: Toml, problems: Problems, fallback: S) -> S:
        if not isinstance(value, dict):
            # Entries of lists have no number in TOML: [transition.scheme] is that of the [[transition]] before it.
            name = ".".join(part for part in key if not part.isdigit())
            heading = f"[[{name}]]" if key[-1].isdigit() else f"[{name}]"
            problems.add(key, f"{shown(value)} is no table; write its keys below {heading}")
            return fallback
        declared = {part.name: part for part in fields(self.section)}
        for name in value:
            if name not in declared:
                problems.add((*key, name), self._unknown(name, list(declared)))
        values = {name: _value(part, (*key, name), value, problems) for name, part in declared.items()}
        if MISSING in values.values():
            problems.doubt(key)
            return fallback
        made = self.section(**values)
        problems.contradict(key, made.contradictions())
        return made

    def write(self, value: S) -> Toml:
        written = {part.name: kind_of(part).write(getattr(value, part.name)) for part in fields(self.section)}
        return {name: entry for name, entry in written.items() if entry is not None}

    def describe(self) -> str:
        return "table"

    def _unknown(self, name: str, known: list[str]) -> str:
        owners = [word for word in self.elsewhere if self._has(word, name)]
        if owners:
            return f"'{self.section.word}' has no such key; {listed(owners)} has"
        return f"there is no such key{guess(name, known) or '; there are ' + listed(known)}"

    def _has(self, word: str, name: str) -> bool:
        try:
            section = self.elsewhere[word]
        except InvalidInput:  # a variety of another package, which cannot be loaded
            return False
        return name in {part.name for part in fields(section)}


def _value(part: Field[Any], key: Key, table: Mapping[str, Toml], problems: Problems) -> Any:
    kind = kind_of(part)
    if part.name in table:
        return kind.read_at(key, table[part.name], problems, part.default)
    if part.default is MISSING:
        problems.add(key, f"is missing; needed: {kind.describe()}")
    return part.default


@dataclass(frozen=True)
class Varieties(_OfTables[S]):
    """A section of which there are several varieties; one of its keys says which."""

    key: str
    sections: Mapping[str, type[S]]
    usual: str

    def read_at(self, key: Key, value: Toml, problems: Problems, fallback: S) -> S:
        if not isinstance(value, dict):
            return Table(self.sections[self.usual]).read_at(key, value, problems, fallback)
        word = value.get(self.key, self.usual)
        if not isinstance(word, str) or word not in self.sections:
            near = guess(word, self.sections) if isinstance(word, str) else ""
            problems.add((*key, self.key), f"{shown(word)} is not possible; choose {listed(list(self.sections))}{near}")
            problems.doubt(key)
            return fallback
        rest = {name: entry for name, entry in value.items() if name != self.key}
        return self._table(word).read_at(key, rest, problems, fallback)

    def write(self, value: S) -> Toml:
        return {self.key: value.word, **self._table(value.word).write(value)}

    def describe(self) -> str:
        return "table"

    def _table(self, word: str) -> Table[S]:
        return Table(self.sections[word], self.sections)


@dataclass(frozen=True)
class Tables(Several[S]):
    """A list of sections, each below its own ``[[heading]]``."""

    def read_at(self, key: Key, value: Toml, problems: Problems, fallback: tuple[S, ...]) -> tuple[S, ...]:
        if isinstance(value, dict):
            problems.add(key, f"this is one table, but there may be several; write [[{'.'.join(key)}]]")
            return fallback
        return super().read_at(key, value, problems, fallback)

    def describe(self) -> str:
        return "list of tables"
