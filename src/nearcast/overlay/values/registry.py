"""Which kind the values of an attribute type have."""

from __future__ import annotations

from typing import Final

from nearcast.errors import InvalidValue
from nearcast.model.values import Value, type_of
from nearcast.overlay.values.hierarchies import HIERARCHIES
from nearcast.overlay.values.kinds import AttributeKind
from nearcast.overlay.values.nominals import nominal
from nearcast.overlay.values.places import PLACES
from nearcast.overlay.values.quantities import INSTANTS, NUMBERS

_kinds: Final[dict[str, AttributeKind]] = {
    "integer": NUMBERS,
    "float": NUMBERS,
    "instant": INSTANTS,
    "point": PLACES,
    "path": HIERARCHIES,
    **{name: nominal(name) for name in ("string", "boolean", "tags")},
}
_BUILT_IN: Final = frozenset(_kinds)


def register_kind(type_name: str, kind: AttributeKind) -> None:
    """Say how values of a plug-in type are merged and compared; all routers of an overlay must agree on it."""
    if type_name in _kinds:
        raise InvalidValue(f"the attribute type {type_name!r} has a kind already; unregister it first")
    _kinds[type_name] = kind


def unregister_kind(type_name: str) -> None:
    """Its values are nominal again (for tests and for reloading)."""
    if type_name in _BUILT_IN or type_name not in _kinds:
        raise InvalidValue(f"no plug-in has registered a kind for the attribute type {type_name!r}")
    del _kinds[type_name]


def kind_of(value: Value) -> AttributeKind:
    name = type_of(value).name
    return _kinds.get(name) or nominal(name)
