"""Which state a mechanism declares: fields that an exchange carries over, parameters that a self-transition may set.

Both are said where the field is declared, through ``typing.Annotated``::

    class Radial(FilterScheme):
        positions: Annotated[dict[str, Point], Transferred(per_member=True)]
        alpha: Annotated[float, Parameter()]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from nearcast.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Transferred:
    """The field is carried over to a mechanism that declares it, too, with the same type."""

    setter: str | None = None
    """The target's method of that name is called with the value instead; if it has none, the field is copied as others are."""

    per_member: bool = False
    """It is a dictionary by member: a partial transition moves the entries of its members and leaves the others."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """The field may be set while the mechanism runs: through its method ``set_<name>`` if it has one.

    Nothing is exchanged then, so that method may talk to others.
    """


@dataclass(frozen=True, slots=True)
class Declarations:
    """What one class declares; the types are without our marks, but with those of others: bounds, say."""

    transferred: Mapping[str, tuple[Any, Transferred]]
    parameters: Mapping[str, Any]

    @property
    def per_member(self) -> tuple[str, ...]:
        return tuple(name for name, (_, mark) in self.transferred.items() if mark.per_member)


@cache
def declarations(mechanism: type) -> Declarations:
    """Those of a class and its base classes."""
    try:
        hints = get_type_hints(mechanism, include_extras=True)
    except NameError as error:
        raise InvalidInput(
            f"an annotation of {mechanism.__name__} names {error.name!r}, which its module does not know when it runs; "
            "import it there, not only for type checking"
        ) from None
    transferred: dict[str, tuple[Any, Transferred]] = {}
    parameters: dict[str, Any] = {}
    for name, hint in hints.items():
        if get_origin(hint) is not Annotated:
            continue
        kind, *marks = get_args(hint)
        others = [mark for mark in marks if not isinstance(mark, (Transferred, Parameter))]
        kind = Annotated[(kind, *others)] if others else kind
        for mark in marks:
            if isinstance(mark, Transferred):
                transferred[name] = kind, mark
            elif isinstance(mark, Parameter):
                parameters[name] = kind
            elif mark is Transferred or mark is Parameter:
                raise InvalidInput(f"write {mark.__name__}() with brackets at {mechanism.__name__}.{name}")
    return Declarations(transferred, parameters)
