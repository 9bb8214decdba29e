"""A section for each mechanism that a registry knows: its keys are the mechanism's parameters, as those declare themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, make_dataclass
from typing import Any, ClassVar, Final, Generic, TypeVar

import msgspec

from nearcast.errors import InvalidInput
from nearcast.scenario.kinds import Count, Flag, Kind, Number, OneOf, Quantity, Range, entry
from nearcast.scenario.problems import Contradiction
from nearcast.scenario.quantities import DIMENSIONS, Dimension
from nearcast.scenario.tables import Section
from nearcast.transition.registry import Entry, Registry
from nearcast.transition.specification import MechanismSpec, Scalar

_MEASURED: Final[dict[str, Dimension[Any]]] = {dimension.name: dimension for dimension in DIMENSIONS}


@dataclass(frozen=True, kw_only=True, slots=True)
class Declared(Section):
    """What the sections of all mechanisms share."""

    registered: ClassVar[Registry[Any]]

    def spec(self) -> MechanismSpec:
        """By which it is made; only what differs from the default stands in it, so that equal mechanisms are equal."""
        given = {part.name: getattr(self, part.name) for part in fields(self)}
        usual = {part.name: part.default for part in fields(self)}
        return MechanismSpec.of(self.word, **{name: value for name, value in given.items() if value != usual[name]})

    def contradictions(self) -> Iterator[Contradiction]:
        """What the mechanism itself refuses: it may ask for more than the bounds that stand beside its keys."""
        given = dict(self.spec().parameters)
        alone = [((name,), self._problem({name: value})) for name, value in given.items()]
        found = alone if any(text for _, text in alone) else [(tuple(given), self._problem(given))]
        for keys, text in found:
            if text:
                yield Contradiction(keys, text)

    def _problem(self, parameters: Mapping[str, Scalar]) -> str:
        try:
            self.registered.parameters_of(MechanismSpec.of(self.word, **parameters))
        except InvalidInput as error:
            return str(error)
        return ""

    def __reduce__(self) -> tuple[Callable[..., Declared], tuple[Any, ...]]:
        """Scenarios travel between processes; classes that are made here can only be named there."""
        return _made, (self.registered.word, self.word, {part.name: getattr(self, part.name) for part in fields(self)})


D = TypeVar("D", bound=Declared)
_SECTIONS: Final[dict[str, DeclaredSections[Any]]] = {}


class DeclaredSections(Mapping[str, type[D]], Generic[D]):
    """By the names of the mechanisms."""

    def __init__(self, base: type[D], more: Callable[[Entry[Any]], dict[str, Any]] = lambda _: {}) -> None:
        """``more`` is what else stands in the class, beside the keys."""
        self._base: Final = base
        self._more: Final = more
        self._made: Final[dict[str, type[D]]] = {}
        _SECTIONS[base.registered.word] = self

    def __getitem__(self, name: str) -> type[D]:
        if name not in self._made:
            self._made[name] = self._section(name, self._base.registered[name])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._base.registered)

    def __len__(self) -> int:
        return len(self._base.registered)

    def _section(self, name: str, kind: Entry[Any]) -> type[D]:
        registered = self._base.registered
        usual, described = registered.parameters_of(MechanismSpec(name)), msgspec.inspect.type_info(kind.parameters)
        assert isinstance(described, msgspec.inspect.StructType)
        keys = [
            (part.name, Any, _entry(f"{registered.word} {name}", part, getattr(usual, part.name), registered.error))
            for part in described.fields
        ]
        return make_dataclass(
            "".join(filter(str.isalnum, name.title())) + self._base.__name__,
            keys,
            bases=(self._base,),
            namespace={"word": name, "__doc__": kind.about, **self._more(kind)},
            frozen=True,
            kw_only=True,
            slots=True,
        )


def _made(word: str, name: str, values: Mapping[str, Any]) -> Declared:
    section: Declared = _SECTIONS[word][name](**values)
    return section


def _entry(mechanism: str, part: msgspec.inspect.Field, usual: Scalar, error: type[InvalidInput]) -> Any:
    described, meaning, dimension = part.type, "", None
    if isinstance(described, msgspec.inspect.Metadata):
        meaning = (described.extra_json_schema or {}).get("description", "")
        dimension = (described.extra or {}).get("dimension")
        described = described.type
    kind = _kind(described, dimension)
    if kind is None:
        raise error(f"{mechanism}: {part.name} is neither a number, a truth value nor one of a few words")
    return entry(kind, kind.write(usual), meaning)


def _kind(described: msgspec.inspect.Type, dimension: str | None) -> Kind[Any] | None:
    match described:
        case msgspec.inspect.BoolType():
            return Flag()
        case msgspec.inspect.LiteralType(values) if all(isinstance(value, str) for value in values):
            return OneOf(tuple(map(str, values)))
        case msgspec.inspect.IntType():
            return Count(Range(described.ge, described.gt, described.le))
        case msgspec.inspect.FloatType() if dimension is not None:
            return Quantity(_MEASURED[dimension], _real(described))
        case msgspec.inspect.FloatType():
            return Number(_real(described))
    return None


def _real(described: msgspec.inspect.FloatType) -> Range[float]:
    least, above, most = (
        None if bound is None else float(bound) for bound in (described.ge, described.gt, described.le)
    )
    return Range(least, above, most)
