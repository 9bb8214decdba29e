"""Mechanisms of one kind by name: those of the house, and those that other packages bring by an entry point.

A name stands for a class of parameters, each declared once: type, default and, in a ``msgspec.Meta``, bounds, what it means
(``description``) and what it measures (``extra``).  Whatever names a mechanism - a scenario, settings, a plan, a message - reads its
parameters by these declarations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import invalidate_caches
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from nearcast.errors import InvalidInput
from nearcast.transition.specification import MechanismSpec, Scalar

P = TypeVar("P", bound=msgspec.Struct)

LENGTH: Final = {"dimension": "length"}
"""``extra`` of a parameter in metres; a scenario has it with a unit."""

DURATION: Final = {"dimension": "duration"}
"""... in seconds."""


class Entry(NamedTuple, Generic[P]):
    """What a name stands for."""

    parameters: type[P]
    preset: Mapping[str, Scalar] = {}
    """Defaults that differ from those of the class."""

    explanation: str = ""

    @property
    def about(self) -> str:
        return " ".join((self.explanation or self.parameters.__doc__ or "").split()).removesuffix(".")


class Registry(Mapping[str, Entry[P]]):
    """Packages are asked only for what the house does not have, and loaded only when it is needed."""

    def __init__(
        self, word: str, group: str, base: Callable[..., P], ours: Mapping[str, Entry[P]], error: type[InvalidInput]
    ) -> None:
        """``word`` and ``error`` are for whoever asks for what cannot be; entry points of the ``group`` lead to a class of ``base``."""
        assert isinstance(base, type)  # said otherwise, because mypy accepts no abstract class there
        self.word: Final = word
        self.group: Final = group
        self.error: Final = error
        self._base: Final[Any] = base
        self._ours: Final = ours
        self._found: dict[str, EntryPoint] | None = None
        self._loaded: Final[dict[str, Entry[P]]] = {}

    def __getitem__(self, name: str) -> Entry[P]:
        if name in self._ours:
            return self._ours[name]
        if name not in self._loaded:
            self._loaded[name] = self._load(name, self._brought()[name])
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:  # without loading it, as the one that is inherited would
        return name in self._ours or name in self._brought()

    def __iter__(self) -> Iterator[str]:
        yield from self._ours
        yield from self._brought()

    def __len__(self) -> int:
        return len(self._ours) + len(self._brought())

    def look_again(self) -> None:
        """For packages that have been installed since the first look."""
        invalidate_caches()
        self._found = None
        self._loaded.clear()

    def parameters_of(self, spec: MechanismSpec) -> P:
        """The parameters that a specification stands for."""
        try:
            entry = self[spec.name]
        except KeyError:
            raise self.error(f"there is no {self.word} {spec.name!r}; there are {', '.join(self)}") from None
        try:
            return msgspec.convert({**entry.preset, **dict(spec.parameters)}, entry.parameters)
        except msgspec.ValidationError as error:
            has = ", ".join(entry.parameters.__struct_fields__) or "none"
            raise self.error(f"{self.word} {spec.name}: {error}; its parameters are {has}") from None

    def _brought(self) -> dict[str, EntryPoint]:
        if self._found is None:
            self._found = {
                found.name: found for found in entry_points(group=self.group) if found.name not in self._ours
            }
        return self._found

    def _load(self, name: str, found: EntryPoint) -> Entry[P]:
        try:
            parameters: Any = found.load()
        except Exception as error:
            raise self.error(f"{self.word} {name}: {found.value!r} cannot be loaded: {error}") from error
        if not (isinstance(parameters, type) and issubclass(parameters, self._base)):
            kind = f"{self._base.__module__}.{self._base.__qualname__}"
            raise self.error(f"{self.word} {name}: {found.value!r} is no class of {kind}")
        return Entry(parameters)
