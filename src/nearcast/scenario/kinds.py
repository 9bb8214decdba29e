"""What may stand at a key of a scenario file: how it is read, written and described.

A key is declared once, as a field of a section (``entry``); reading, checking, the canonical file and the reference
documentation all follow from that declaration.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, Final, Generic, TypeVar, cast

from nearcast.errors import InvalidInput, InvalidScenario
from nearcast.model.geometry import Point
from nearcast.model.time import Instant, instant, to_text
from nearcast.model.topic import checked_topic
from nearcast.scenario.problems import Key, Problems
from nearcast.scenario.quantities import Dimension, N, shown

T = TypeVar("T")
Toml = Any
"""A value of a TOML file: text, number, truth value, instant, list or table."""


class Required:
    """In place of a default: the file must say it."""


REQUIRED: Final = Required()


class Kind(ABC, Generic[T]):
    """What may stand at a key."""

    @abstractmethod
    def read(self, value: Toml) -> T:
        """The value meant, or ``InvalidInput`` that says what is needed; whoever calls adds the key."""

    def read_at(self, key: Key, value: Toml, problems: Problems, fallback: T) -> T:
        """The value meant, or a note among the problems and the fallback, so that reading can go on."""
        try:
            return self.read(value)
        except InvalidInput as error:
            problems.add(key, str(error))
            return fallback

    @abstractmethod
    def write(self, value: T) -> Toml:
        """What ``read`` reads as that value."""

    @abstractmethod
    def describe(self) -> str:
        """For the reference: what is needed, in a few words."""


@dataclass(frozen=True)
class Range(Generic[N]):
    """Bounds of numbers: not less than, more than, not more than."""

    least: N | None = None
    above: N | None = None
    most: N | None = None

    def check(self, value: N, written: str, text: Callable[[N], str] = str) -> None:
        # `not >=` also refuses NaN.
        if self.least is not None and not value >= self.least:
            raise InvalidScenario(f"{written} is too small; at least {text(self.least)} is needed")
        if self.above is not None and not value > self.above:
            raise InvalidScenario(f"{written} is too small; more than {text(self.above)} is needed")
        if self.most is not None and not value <= self.most:
            raise InvalidScenario(f"{written} is too large; at most {text(self.most)} is possible")

    def describe(self, text: Callable[[N], str] = str) -> str:
        bounds = (("at least", self.least), ("more than", self.above), ("at most", self.most))
        return "".join(f", {words} {text(bound)}" for words, bound in bounds if bound is not None)


@dataclass(frozen=True)
class Quantity(Kind[N]):
    """A number with a unit."""

    dimension: Dimension[N]
    range: Range[N] = field(default_factory=Range)

    def read(self, value: Toml) -> N:
        number = self.dimension.parse(value)
        self.range.check(number, shown(value), self.dimension.text)
        return number

    def write(self, value: N) -> Toml:
        return value if self.dimension.bare else self.dimension.text(value)

    def describe(self) -> str:
        return f"{self.dimension.name}{self.range.describe(self.dimension.text)}"


@dataclass(frozen=True)
class Number(Kind[float]):
    """A number that has no unit."""

    range: Range[float] = field(default_factory=Range)

    def read(self, value: Toml) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise InvalidScenario(
                f"{shown(value)} is no number; a number such as 3.8 is needed, without quotes or unit"
            )
        self.range.check(value, shown(value), "{:g}".format)
        return float(value)

    def write(self, value: float) -> Toml:
        return value

    def describe(self) -> str:
        return f"number{self.range.describe('{:g}'.format)}"


@dataclass(frozen=True)
class Count(Kind[int]):
    """How many."""

    range: Range[int] = field(default_factory=lambda: Range(least=0))

    def read(self, value: Toml) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidScenario(f"{shown(value)} is no whole number; a number such as 297 is needed, without quotes")
        self.range.check(value, shown(value))
        return value

    def write(self, value: int) -> Toml:
        return value

    def describe(self) -> str:
        return f"whole number{self.range.describe()}"


@dataclass(frozen=True)
class Flag(Kind[bool]):
    """Yes or no."""

    def read(self, value: Toml) -> bool:
        if not isinstance(value, bool):
            raise InvalidScenario(f"{shown(value)} is neither true nor false; write one of them, without quotes")
        return value

    def write(self, value: bool) -> Toml:
        return value

    def describe(self) -> str:
        return "true or false"


@dataclass(frozen=True)
class Text(Kind[str]):
    """Any text."""

    def read(self, value: Toml) -> str:
        if not isinstance(value, str):
            raise InvalidScenario(f"{shown(value)} is no text; put it in quotes")
        return value

    def write(self, value: str) -> Toml:
        return value

    def describe(self) -> str:
        return "text"


@dataclass(frozen=True)
class Topic(Text):
    """A topic to publish to."""

    def read(self, value: Toml) -> str:
        return checked_topic(super().read(value))

    def describe(self) -> str:
        return "MQTT topic without wildcards"


@dataclass(frozen=True)
class FileName:
    """A file that belongs to a scenario: its path as the scenario says it, and the folder from which that counts."""

    name: str
    folder: Path = field(default=Path(), compare=False, repr=False)

    @property
    def path(self) -> Path:
        return self.folder / self.name


@dataclass(frozen=True)
class File(Kind[FileName]):
    """The path of a file; a relative one counts from the folder of the scenario file."""

    def read(self, value: Toml) -> FileName:
        if not isinstance(value, str) or not value or value.endswith("/"):
            raise InvalidScenario(f"{shown(value)} is no path of a file")
        return FileName(str(PurePosixPath(value)))

    def write(self, value: FileName) -> Toml:
        return value.name

    def describe(self) -> str:
        return "path, relative to the scenario file"


@dataclass(frozen=True)
class OneOf(Kind[str]):
    """One of a few words."""

    words: tuple[str, ...]

    def read(self, value: Toml) -> str:
        if value not in self.words or not isinstance(value, str):
            raise InvalidScenario(f"{shown(value)} is not possible; choose one of {listed(self.words)}")
        return value

    def write(self, value: str) -> Toml:
        return value

    def describe(self) -> str:
        return listed(self.words)


@dataclass(frozen=True)
class Moment(Kind[Instant]):
    """An instant; as RFC 3339 text or in TOML's own notation of it."""

    def read(self, value: Toml) -> Instant:
        if not isinstance(value, (str, datetime)):
            raise InvalidScenario(f"{shown(value)} is no instant; one such as '2026-01-01T00:00:00Z' is needed")
        return instant(value)

    def write(self, value: Instant) -> Toml:
        return to_text(value)

    def describe(self) -> str:
        return "instant (RFC 3339)"


@dataclass(frozen=True)
class Place(Kind[Point]):
    """A place on the earth."""

    def read(self, value: Toml) -> Point:
        # Named, because half of the world writes longitude first.
        if not isinstance(value, dict) or set(value) != {"lat", "lon"}:
            raise InvalidScenario(f"{shown(value)} is no place; write {{lat = 49.8728, lon = 8.6512}}")
        return Point(value["lat"], value["lon"])

    def write(self, value: Point) -> Toml:
        return {"lat": value.lat, "lon": value.lon}

    def describe(self) -> str:
        return "place: {lat = degrees, lon = degrees}"


@dataclass(frozen=True)
class Optional(Kind[T | None]):
    """Something that need not be given."""

    kind: Kind[T]

    def read(self, value: Toml) -> T | None:
        return self.kind.read(value)

    def write(self, value: T | None) -> Toml:
        return None if value is None else self.kind.write(value)

    def describe(self) -> str:
        return self.kind.describe()


@dataclass(frozen=True)
class Row(Kind[tuple[Any, ...]]):
    """A fixed number of values, one kind each: ``["5 min", "7 min"]``."""

    kinds: tuple[Kind[Any], ...]
    example: str

    def read(self, value: Toml) -> tuple[Any, ...]:
        if not isinstance(value, list) or len(value) != len(self.kinds):
            raise InvalidScenario(f"{shown(value)} does not have {len(self.kinds)} parts; write it like {self.example}")
        return tuple(kind.read(part) for kind, part in zip(self.kinds, value, strict=True))

    def write(self, value: tuple[Any, ...]) -> Toml:
        return [kind.write(part) for kind, part in zip(self.kinds, value, strict=True)]

    def describe(self) -> str:
        return self.example


@dataclass(frozen=True)
class Several(Kind[tuple[T, ...]]):
    """A list of values of one kind."""

    kind: Kind[T]

    def read(self, value: Toml) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise InvalidScenario(f"{shown(value)} is no list; write it like [{self.kind.describe()}, ...]")
        return tuple(self.kind.read(part) for part in value)

    def read_at(self, key: Key, value: Toml, problems: Problems, fallback: tuple[T, ...]) -> tuple[T, ...]:
        if not isinstance(value, list):
            return super().read_at(key, value, problems, fallback)
        nothing: Any = None
        made = [self.kind.read_at((*key, str(n)), part, problems, nothing) for n, part in enumerate(value, 1)]
        if None in made:
            # What is left has other numbers than in the file.
            problems.doubt(key)
        return tuple(part for part in made if part is not None)

    def write(self, value: tuple[T, ...]) -> Toml:
        return [self.kind.write(part) for part in value]

    def describe(self) -> str:
        return f"list of {self.kind.describe()}"


def listed(words: Sequence[str]) -> str:
    """'a', 'b' or 'c'."""
    quoted = [f"'{word}'" for word in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def entry(kind: Kind[T], default: Toml, explanation: str) -> T:
    """Declare a key: what may stand there, what holds if nothing does (as the file would say it), and what it means."""
    value = MISSING if default is REQUIRED else None if default is None else kind.read(default)
    declared: Any = field(default=value, metadata={"kind": kind, "explanation": explanation})
    return cast("T", declared)


def kind_of(declared: Field[Any]) -> Kind[Any]:
    return cast("Kind[Any]", declared.metadata["kind"])
