"""Filter schemes by name: those of the house, and those that other packages bring.

A package brings a scheme by an entry point of the group ``nearcast.filter_schemes``: its name is the scheme's, and it leads to a class
of parameters (``filtering.scheme.Scheme``).  Whoever runs the scheme - broker, clients, simulator - needs the package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import invalidate_caches
from importlib.metadata import EntryPoint, entry_points
from typing import Final, NamedTuple

import msgspec

from nearcast.errors import InvalidScheme
from nearcast.filtering.broker_half import BrokerHalf, Cloud
from nearcast.filtering.client_half import ClientHalf, Surroundings
from nearcast.filtering.parameters import Attract, Egrid, Grid, Multi, Radial, Ste
from nearcast.filtering.scheme import Scheme, Territory
from nearcast.transition.specification import MechanismSpec, Scalar

GROUP: Final = "nearcast.filter_schemes"


class Entry(NamedTuple):
    """What a name stands for."""

    parameters: type[Scheme]
    preset: Mapping[str, Scalar] = {}
    """Defaults that differ from those of the class."""

    explanation: str = ""

    @property
    def about(self) -> str:
        return " ".join((self.explanation or self.parameters.__doc__ or "").split()).removesuffix(".")


_OURS: Final[dict[str, Entry]] = {
    "RADIAL": Entry(Radial),
    "LPS": Entry(Radial, {}, "RADIAL, under the name of LCN 2016"),
    "STE": Entry(Ste),
    "GRID": Entry(Grid),
    "EGRID": Entry(Egrid),
    "RGRID": Entry(
        Egrid,
        {"cover": "circle", "remember_location": False},
        "EGRID as LCN 2016 has it: circles, and a broker that forgets positions",
    ),
    "ATTRACT": Entry(Attract),
    "MULTI": Entry(Multi),
}


class _Schemes(Mapping[str, Entry]):
    """Packages are asked only for what the house does not have, and loaded only when it is needed."""

    def __getitem__(self, name: str) -> Entry:
        return _OURS[name] if name in _OURS else _loaded(name, _brought()[name])

    def __contains__(self, name: object) -> bool:  # without loading it, as the one that is inherited would
        return name in _OURS or name in _brought()

    def __iter__(self) -> Iterator[str]:
        yield from _OURS
        yield from _brought()

    def __len__(self) -> int:
        return len(_OURS) + len(_brought())


SCHEMES: Final = _Schemes()


def look_again() -> None:
    """For packages that have been installed since the first look."""
    invalidate_caches()
    _brought.cache_clear()
    _loaded.cache_clear()


@cache
def _brought() -> dict[str, EntryPoint]:
    return {found.name: found for found in entry_points(group=GROUP) if found.name not in _OURS}


@cache
def _loaded(name: str, found: EntryPoint) -> Entry:
    try:
        parameters = found.load()
    except Exception as error:
        raise InvalidScheme(f"filter scheme {name}: {found.value!r} cannot be loaded: {error}") from error
    if not (isinstance(parameters, type) and issubclass(parameters, Scheme)):
        raise InvalidScheme(f"filter scheme {name}: {found.value!r} is no class of nearcast.filtering.scheme.Scheme")
    return Entry(parameters)


def scheme_of(spec: MechanismSpec) -> Scheme:
    """The parameters that a specification stands for."""
    try:
        entry = SCHEMES[spec.name]
    except KeyError:
        raise InvalidScheme(f"there is no filter scheme {spec.name!r}; there are {', '.join(SCHEMES)}") from None
    try:
        return msgspec.convert({**entry.preset, **dict(spec.parameters)}, entry.parameters)
    except msgspec.ValidationError as error:
        has = ", ".join(entry.parameters.__struct_fields__)
        raise InvalidScheme(f"filter scheme {spec.name}: {error}; its parameters are {has}") from None


def broker_halves(territory: Territory, cloud: Cloud) -> Callable[[MechanismSpec], BrokerHalf]:
    return lambda spec: scheme_of(spec).broker_half(territory, cloud)


def client_halves(territory: Territory, surroundings: Surroundings) -> Callable[[MechanismSpec], ClientHalf]:
    return lambda spec: scheme_of(spec).client_half(territory, surroundings)
