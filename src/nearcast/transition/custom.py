"""Custom transitions: how state gets from one mechanism to another that keeps it differently (BYPASS.KOM 5.2.2).

They are registered for two types and serve the types derived from them as well; the closest wins.  The digest's erratum on
Fig. 23 applies: the transition whose types are closer is chosen (T1, where the text says T2).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Any, Final, Generic, TypeVar

from nearcast.errors import InvalidInput, TransitionFailed
from nearcast.transition.null import NullMechanism

A = TypeVar("A")
B = TypeVar("B")


class Transition(ABC, Generic[A, B]):
    """``class RadialToGrid(Transition[Radial, Grid]): source = Radial; target = Grid; ...``."""

    source: type
    """It, or any type derived from it; ``NullMechanism``: any mechanism at all."""

    target: type

    @abstractmethod
    def transfer(self, source: A, target: B, members: Collection[str] | None) -> None:
        """Give the target what it can use of the source, which must stay as it is: it goes on if the exchange fails.

        ``members``: only theirs, to be added to what the target may have already; ``None``: everything, to a target that is
        new.  Local work only.
        """


class Transitions:
    """The custom transitions of one proxy."""

    def __init__(self) -> None:
        self._registered: Final[list[Transition[Any, Any]]] = []
        self._resolved: Final[dict[tuple[type, type], Transition[Any, Any] | None]] = {}

    def __len__(self) -> int:
        return len(self._registered)

    def register(self, transition: Transition[Any, Any]) -> None:
        for end in ("source", "target"):
            if not isinstance(getattr(transition, end, None), type):
                raise InvalidInput(f"{type(transition).__name__}.{end} must be a class of mechanisms; set it")
        for other in self._registered:
            if (other.source, other.target) == (transition.source, transition.target):
                raise InvalidInput(f"{_shown(transition)} is registered already, as {type(other).__name__}")
        self._registered.append(transition)
        self._resolved.clear()

    def resolve(self, source: type, target: type) -> Transition[Any, Any] | None:
        """The closest one for these types; none: the automatic transfer is to be used."""
        key = source, target
        if key not in self._resolved:
            self._resolved[key] = self._closest(source, target)
        return self._resolved[key]

    def _closest(self, source: type, target: type) -> Transition[Any, Any] | None:
        ranked = []
        for transition in self._registered:
            from_source, from_target = _distance(source, transition.source), _distance(target, transition.target)
            if from_source and from_target:
                # First by how many ends are only the wildcard, then by the steps up to the declared types.
                ranked.append((from_source[0] + from_target[0], from_source[1] + from_target[1], transition))
        if not ranked:
            return None
        best = min(rank[:2] for rank in ranked)
        closest = [transition for *rank, transition in ranked if tuple(rank) == best]
        if len(closest) > 1:
            raise TransitionFailed(
                f"from {source.__name__} to {target.__name__}, {' and '.join(map(_shown, closest))} are equally close; "
                "register one for exactly these types"
            )
        return closest[0]


def _distance(actual: type, declared: type) -> tuple[int, int] | None:
    """Whether only the wildcard fits (0 or 1), and the steps up to the declared type; none if it does not fit."""
    if issubclass(actual, NullMechanism):
        # It is no mechanism of its API, although it can be called like one: it has none of the state.
        return (0, 0) if declared is NullMechanism else None
    if declared is NullMechanism:
        return 1, 0
    if not issubclass(actual, declared):
        return None
    steps, level = 0, {actual}
    while declared not in level:
        steps, level = steps + 1, {base for kind in level for base in kind.__bases__}
        if not level:  # a class that only says that others are derived from it
            return 0, len(actual.__mro__)
    return 0, steps


def _shown(transition: Transition[Any, Any]) -> str:
    return f"{type(transition).__name__} ({transition.source.__name__} to {transition.target.__name__})"
