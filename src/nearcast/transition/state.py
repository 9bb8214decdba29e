"""Carrying declared state from one mechanism to the next (BYPASS.KOM 5.2.2).

Nothing is converted: a field whose type differs is not carried over, that takes a custom transition.  Containers are copied,
because the old mechanism goes on with its own if the exchange fails; whatever they contain is handed over as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import msgspec

from nearcast.errors import InvalidInput, TransitionFailed
from nearcast.transition.declarations import Declarations, Parameter, Transferred, declarations
from nearcast.transition.mechanism import Mechanism
from nearcast.transition.null import is_null

__all__ = [
    "Declarations",
    "Parameter",
    "Savepoint",
    "Transferred",
    "carry_over",
    "declarations",
    "drop",
    "set_parameter",
]

_ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class _Move:
    field: str
    setter: str | None
    per_member: bool


def carry_over(
    source: Mechanism, target: Mechanism, members: Collection[str] | None = None, *, running: bool = False
) -> None:
    """The automatic transfer: every field that both declare with equal type.

    With ``members``, only their entries of what is kept per member.  A target that is ``running`` has state of its own: to
    it, only entries are added.
    """
    if is_null(source) or is_null(target):
        return  # a null mechanism has no state, and is the same one for all proxies of its API
    for move in _moves(type(source), type(target)):
        value = getattr(source, move.field, _ABSENT)
        if value is _ABSENT or (running and not move.per_member):
            continue
        if move.per_member:
            value = _entries(source, move.field, value, members)
        value = _copied(value)
        if move.setter:
            getattr(target, move.setter)(value)
        elif move.per_member and isinstance(present := _own(target, move.field), dict):
            present.update(value)
        else:
            setattr(target, move.field, value)


def drop(source: Mechanism, members: Collection[str]) -> None:
    """Remove the entries of members that have moved elsewhere."""
    for field in declarations(type(source)).per_member:
        entries = getattr(source, field, None)
        if entries is not None:
            for member in members:
                entries.pop(member, None)


class Savepoint:
    """What a running mechanism holds of some members, in case that a transition to it fails."""

    def __init__(self, mechanism: Mechanism, members: Collection[str]) -> None:
        self._mechanism: Final = mechanism
        self._members: Final = tuple(members)
        self._fields: Final = {
            field: (entries, {member: entries[member] for member in self._members if member in entries})
            for field in declarations(type(mechanism)).per_member
            if (entries := getattr(mechanism, field, None)) is not None
        }

    def restore(self) -> None:
        for field, (entries, held) in self._fields.items():
            for member in self._members:
                entries.pop(member, None)
            entries.update(held)
            setattr(self._mechanism, field, entries)


def set_parameter(mechanism: Mechanism, name: str, value: Any) -> bool:
    """Set a declared parameter; false if it has that value already.  Raises ``TransitionFailed`` and changes nothing."""
    kind, known = type(mechanism).__name__, declarations(type(mechanism)).parameters
    if name not in known:
        has = ", ".join(known) or "none"
        raise TransitionFailed(f"{kind} declares no parameter {name!r} (it has: {has}); mark it with Parameter()")
    try:
        converted = msgspec.convert(value, known[name])
    except (msgspec.ValidationError, TypeError) as error:
        raise TransitionFailed(f"parameter {name!r} of {kind} cannot be {value!r}: {error}") from None
    before = getattr(mechanism, name, _ABSENT)
    if before is not _ABSENT and before == converted:
        return False
    setter = getattr(mechanism, f"set_{name}", None)
    try:
        if setter is None:
            setattr(mechanism, name, converted)
        else:
            setter(converted)
    except Exception as error:
        raise TransitionFailed(f"parameter {name!r} of {kind} was not set to {value!r}: {error}") from error
    return True


@cache
def _moves(source: type, target: type) -> tuple[_Move, ...]:
    wanted = declarations(target).transferred
    moves = []
    for field, (kind, mark) in declarations(source).transferred.items():
        other = wanted.get(field)
        setter = mark.setter if mark.setter and callable(getattr(target, mark.setter, None)) else None
        if setter or (other and other[0] == kind):
            moves.append(_Move(field, setter, mark.per_member or bool(other and other[1].per_member)))
    return tuple(moves)


def _entries(source: Mechanism, field: str, value: Any, members: Collection[str] | None) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{type(source).__name__}.{field} is declared per member, but is no mapping: {value!r:.80}")
    if members is None:
        return dict(value)
    return {member: value[member] for member in members if member in value}


def _own(mechanism: Mechanism, field: str) -> Any:
    """The value of a field, unless it is one that all mechanisms of the class share."""
    value = getattr(mechanism, field, None)
    return None if value is getattr(type(mechanism), field, None) else value


def _copied(value: Any) -> Any:
    """A copy of built-in containers, also of those inside them; of nothing else: a sensor or a callback is not copied."""
    kind = type(value)
    if kind is dict:
        return {key: _copied(inner) for key, inner in value.items()}
    if kind is list or kind is tuple:
        return kind(map(_copied, value))
    if kind is set:
        return set(value)
    return value
