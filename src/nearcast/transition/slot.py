"""A proxy with all that its mechanisms are made and filled with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from nearcast.errors import TransitionFailed
from nearcast.transition.custom import Transitions
from nearcast.transition.mechanism import Mechanism
from nearcast.transition.null import null_of
from nearcast.transition.proxy import ParallelProxy, Proxy
from nearcast.transition.specification import NULL, MechanismSpec, Scalar
from nearcast.transition.state import Savepoint, carry_over, declarations, set_parameter

M = TypeVar("M", bound=Mechanism)
Make = Callable[[MechanismSpec], M]
"""Makes the mechanism that a specification names, not started; raises what it likes for one that it does not know."""


@dataclass(slots=True)
class Slot:
    proxy: Proxy[Any] | ParallelProxy[Any]
    api: type
    make: Make[Any]
    transitions: Transitions = field(default_factory=Transitions)
    busy: bool = False
    """Its mechanism is being exchanged, or changed, just now."""

    def started(self, spec: MechanismSpec, sources: Sequence[tuple[Mechanism, Collection[str] | None]]) -> Mechanism:
        """A new mechanism that has the state of these members of these sources (none: of all), and runs."""
        target: Mechanism = null_of(self.api) if spec == NULL else self.make(spec)
        if not isinstance(target, self.api):
            raise TransitionFailed(f"{spec} was made as {type(target).__name__}, which is no {self.api.__name__}")
        for place, (source, members) in enumerate(sources):
            # What is shared comes from the first; from the others, only what belongs to their members.
            self._transfer(source, target, members, running=place > 0)
        try:
            target.start_mechanism()
        except Exception:
            with suppress(Exception):  # what it held already must not stay behind; the first error is the one to tell
                target.stop_mechanism()
            raise
        return target

    def extended(self, target: Mechanism, sources: Sequence[tuple[Mechanism, Collection[str]]]) -> Mechanism:
        """A running mechanism that has got the state of further members, or none of it if that fails."""
        saved = Savepoint(target, [member for _, members in sources for member in members])
        try:
            for source, members in sources:
                self._transfer(source, target, members, running=True)
        except Exception:
            saved.restore()
            raise
        return target

    def set_all(self, running: dict[MechanismSpec, Mechanism], state: str, value: Scalar) -> list[MechanismSpec]:
        """Set a parameter of all that declare it; answers which were changed: all of them or, after an error, none."""
        affected = {spec: it for spec, it in running.items() if state in declarations(type(it)).parameters}
        if not affected:
            raise TransitionFailed(f"{' and '.join(map(str, running))} declares no parameter {state!r}")
        renamed = {spec.changed(state, value) if spec in affected else spec for spec in running}
        if len(renamed) < len(running):
            raise TransitionFailed("then two mechanisms would be the same; use a partial or total transition")
        before = {spec: getattr(it, state, None) for spec, it in affected.items()}
        changed: list[MechanismSpec] = []
        try:
            for spec, it in affected.items():
                if set_parameter(it, state, value):
                    changed.append(spec)
        except TransitionFailed:
            for spec in changed:
                set_parameter(affected[spec], state, before[spec])
            raise
        return changed

    def _transfer(
        self, source: Mechanism, target: Mechanism, members: Collection[str] | None, *, running: bool
    ) -> None:
        custom = self.transitions.resolve(type(source), type(target))
        if custom is None:
            carry_over(source, target, members, running=running)
        else:
            custom.transfer(source, target, members)
