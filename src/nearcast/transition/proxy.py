"""Where users find the mechanism that is active now (BYPASS.KOM 5.2.1)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Generic, TypeVar

from nearcast.transition.mechanism import Mechanism
from nearcast.transition.specification import MechanismSpec

M = TypeVar("M", bound=Mechanism)


@dataclass(frozen=True, slots=True)
class ParallelStatistics:
    members: Mapping[str, int]
    """Of each mechanism that runs."""

    default: str


class Proxy(Generic[M]):
    """One mechanism at a time: ``proxy.active.publish(event)``.

    Users keep the proxy, never what is active in it.
    """

    def __init__(self, name: str, spec: MechanismSpec, active: M) -> None:
        self.name: Final = name
        self.spec: MechanismSpec = spec
        """Which mechanism is active; changed by the engine only, as is ``active``."""

        self.active: M = active
        self.changed: Callable[[], None] = _nobody
        """Called when the mechanism, or a parameter of it, was exchanged; to be set by whoever keeps what follows from it."""


class ParallelProxy(Generic[M]):
    """Several mechanisms at a time, each for some members (BYPASS.KOM 4.2.3: a broker that runs A and B in parallel)."""

    def __init__(self, name: str, spec: MechanismSpec, instance: M) -> None:
        self.name: Final = name
        self.default: MechanismSpec = spec
        """The mechanism of newcomers."""

        self._instances: dict[MechanismSpec, M] = {spec: instance}
        # Dictionaries as ordered sets: results must not depend on the order of hashes.
        self._members: dict[MechanismSpec, dict[str, None]] = {spec: {}}
        self._of: dict[str, MechanismSpec] = {}

    @property
    def instances(self) -> Mapping[MechanismSpec, M]:
        """All that run now, in the order in which they were started."""
        return MappingProxyType(self._instances)

    @property
    def members(self) -> Collection[str]:
        """All of them, in the order in which they came."""
        return self._of.keys()

    def members_of(self, spec: MechanismSpec) -> tuple[str, ...]:
        return tuple(self._members.get(spec, ()))

    def spec_for(self, member: str) -> MechanismSpec:
        """Whose member it is; a stranger's is the default."""
        return self._of.get(member, self.default)

    def instance_for(self, member: str) -> M:
        return self._instances[self.spec_for(member)]

    def add(self, member: str) -> M:
        """A newcomer, which becomes a member of the default; whoever is a member already stays where it is."""
        if member not in self._of:
            self._of[member] = self.default
            self._members[self.default][member] = None
        return self.instance_for(member)

    def remove(self, member: str) -> None:
        """It has gone; a mechanism without members that is not the default ends."""
        spec = self._of.pop(member, None)
        if spec is not None:
            del self._members[spec][member]
            self.discard_empty()

    def groups(self, members: Iterable[str]) -> dict[MechanismSpec, tuple[str, ...]]:
        """These members by their present mechanism."""
        groups: dict[MechanismSpec, dict[str, None]] = {}
        for member in members:
            groups.setdefault(self.spec_for(member), {})[member] = None
        return {spec: tuple(group) for spec, group in groups.items()}

    def statistics(self) -> ParallelStatistics:
        return ParallelStatistics({str(spec): len(self._members[spec]) for spec in self._instances}, str(self.default))

    def move(self, members: Iterable[str], spec: MechanismSpec, instance: M) -> None:
        """For the engine: from now on, they are members of this mechanism."""
        self._instances.setdefault(spec, instance)
        there = self._members.setdefault(spec, {})
        for member in members:
            before = self._of.get(member)
            if before is not None:
                del self._members[before][member]
            there[member] = None
            self._of[member] = spec

    def rename(self, spec: MechanismSpec, changed: MechanismSpec) -> None:
        """For the engine: a mechanism got another parameter, and with it another key."""
        self._instances = {changed if key == spec else key: value for key, value in self._instances.items()}
        self._members = {changed if key == spec else key: value for key, value in self._members.items()}
        self._of = {member: changed if key == spec else key for member, key in self._of.items()}
        self.default = changed if self.default == spec else self.default

    def is_needed(self, instance: M) -> bool:
        """Whether it has members, or is for newcomers."""
        return any(it is instance and self._needed(spec) for spec, it in self._instances.items())

    def discard_empty(self) -> None:
        """Stop and discard every mechanism that has no members and is not the default."""
        for spec in [spec for spec in self._instances if not self._needed(spec)]:
            del self._members[spec]
            self._instances.pop(spec).stop_mechanism()

    def _needed(self, spec: MechanismSpec) -> bool:
        return bool(self._members[spec]) or spec == self.default


def _nobody() -> None:
    """Nobody wants to know."""
