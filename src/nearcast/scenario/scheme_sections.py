"""A section for each filter scheme there is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from nearcast.filtering.registry import SCHEMES as REGISTERED
from nearcast.scenario.declared_sections import Declared, DeclaredSections
from nearcast.scenario.tables import Varieties
from nearcast.transition.registry import Registry


@dataclass(frozen=True, kw_only=True, slots=True)
class Scheme(Declared):
    """What all schemes share."""

    registered: ClassVar[Registry[object]] = REGISTERED  # type: ignore[type-var,assignment]
    needs_points: ClassVar[bool] = False


SCHEMES: Final = Varieties(
    "kind", DeclaredSections(Scheme, lambda kind: {"needs_points": kind.parameters.needs_points}), "RADIAL"
)
