"""Which mechanism, with which parameters: the name that plans, records and messages use for it."""

from __future__ import annotations

import math
from typing import Final, TypeAlias

import msgspec

from nearcast.errors import InvalidPlan

Scalar: TypeAlias = bool | int | float | str


def check_scalar(value: object, what: str) -> None:
    """A value that can be compared and sent, or an error."""
    if isinstance(value, int):
        fits = -(2**63) <= value < 2**63
    else:
        fits = math.isfinite(value) if isinstance(value, float) else isinstance(value, str)
    if not fits:
        raise InvalidPlan(f"{what} must be a truth value, a finite number of 64 bits or a text, not {value!r:.80}")


class MechanismSpec(msgspec.Struct, frozen=True, array_like=True):
    """A mechanism by name and parameters; two that say the same are equal, in whatever order the parameters were given."""

    name: str
    parameters: tuple[tuple[str, Scalar], ...] = ()

    def __post_init__(self) -> None:
        if not self.name:
            raise InvalidPlan("a mechanism needs a name; for none at all, use transition.specification.NULL")
        for parameter, value in self.parameters:
            check_scalar(value, f"parameter {parameter!r} of {self.name}")
        by_name = dict(self.parameters)
        if len(by_name) < len(self.parameters):
            raise InvalidPlan(f"{self.name} has a parameter twice: {', '.join(name for name, _ in self.parameters)}")
        msgspec.structs.force_setattr(self, "parameters", tuple((name, by_name[name]) for name in sorted(by_name)))

    @classmethod
    def of(cls, name: str, /, **parameters: Scalar) -> MechanismSpec:
        """``MechanismSpec.of("GOSSIP", p=0.4)``."""
        return cls(name, tuple(parameters.items()))

    def changed(self, parameter: str, value: Scalar) -> MechanismSpec:
        """The same mechanism with another value of one parameter."""
        return MechanismSpec(self.name, tuple((dict(self.parameters) | {parameter: value}).items()))

    def __str__(self) -> str:
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(f'{name}={value}' for name, value in self.parameters)})"


NULL: Final = MechanismSpec("null")
"""M-null: as a target, it stops what runs; as a source, nothing ran (BYPASS.KOM 4.1)."""


def shown(spec: MechanismSpec) -> str | None:
    """As the records show it: null if there is none."""
    return None if spec == NULL else str(spec)
