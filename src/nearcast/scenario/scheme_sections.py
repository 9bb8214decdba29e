"""A section for each filter scheme there is: its keys are the scheme's parameters, as those declare themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, make_dataclass
from functools import cache
from typing import Any, ClassVar, Final

import msgspec

from nearcast.errors import InvalidScheme
from nearcast.filtering.registry import SCHEMES as REGISTERED
from nearcast.filtering.registry import scheme_of
from nearcast.scenario.kinds import Count, Flag, Kind, Number, OneOf, Quantity, Range, entry
from nearcast.scenario.problems import Contradiction
from nearcast.scenario.quantities import DIMENSIONS, Dimension
from nearcast.scenario.tables import Section, Varieties
from nearcast.transition.specification import MechanismSpec, Scalar

_MEASURED: Final[dict[str, Dimension[Any]]] = {dimension.name: dimension for dimension in DIMENSIONS}


@dataclass(frozen=True, kw_only=True, slots=True)
class Scheme(Section):
    """What all schemes share."""

    needs_points: ClassVar[bool] = False

    def spec(self) -> MechanismSpec:
        """By which the halves are made; only what differs from the default stands in it, so that equal schemes are equal."""
        given = {part.name: getattr(self, part.name) for part in fields(self)}
        usual = {part.name: part.default for part in fields(self)}
        return MechanismSpec.of(self.word, **{name: value for name, value in given.items() if value != usual[name]})

    def contradictions(self) -> Iterator[Contradiction]:
        """What the scheme itself refuses: it may ask for more than the bounds that stand beside its keys."""
        given = dict(self.spec().parameters)
        alone = [((name,), _problem(self.word, {name: value})) for name, value in given.items()]
        found = alone if any(text for _, text in alone) else [(tuple(given), _problem(self.word, given))]
        for keys, text in found:
            if text:
                yield Contradiction(keys, text)

    def __reduce__(self) -> tuple[Callable[..., Scheme], tuple[Any, ...]]:
        """Scenarios travel between processes; classes that are made here can only be named there."""
        return _scheme, (self.word, {part.name: getattr(self, part.name) for part in fields(self)})


class _Sections(Mapping[str, type[Scheme]]):
    def __getitem__(self, name: str) -> type[Scheme]:
        return _section(name)

    def __iter__(self) -> Iterator[str]:
        return iter(REGISTERED)

    def __len__(self) -> int:
        return len(REGISTERED)


SCHEMES: Final = Varieties("kind", _Sections(), "RADIAL")


@cache
def _section(name: str) -> type[Scheme]:
    kind, usual = REGISTERED[name], scheme_of(MechanismSpec(name))
    described = msgspec.inspect.type_info(kind.parameters)
    assert isinstance(described, msgspec.inspect.StructType)
    keys = [(part.name, Any, _entry(name, part, getattr(usual, part.name))) for part in described.fields]
    namespace = {"word": name, "needs_points": kind.parameters.needs_points, "__doc__": kind.about}
    return make_dataclass(
        f"{name.title()}Scheme", keys, bases=(Scheme,), namespace=namespace, frozen=True, kw_only=True, slots=True
    )


def _problem(name: str, parameters: Mapping[str, Scalar]) -> str:
    try:
        scheme_of(MechanismSpec.of(name, **parameters))
    except InvalidScheme as error:
        return str(error)
    return ""


def _scheme(name: str, values: Mapping[str, Any]) -> Scheme:
    return _section(name)(**values)


def _entry(scheme: str, part: msgspec.inspect.Field, usual: Scalar) -> Any:
    described, meaning, dimension = part.type, "", None
    if isinstance(described, msgspec.inspect.Metadata):
        meaning = (described.extra_json_schema or {}).get("description", "")
        dimension = (described.extra or {}).get("dimension")
        described = described.type
    kind = _kind(described, dimension)
    if kind is None:
        raise InvalidScheme(
            f"filter scheme {scheme}: {part.name} is neither a number, a truth value nor one of a few words"
        )
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
