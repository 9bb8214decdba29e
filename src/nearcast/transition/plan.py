"""Execution plans: what several hosts are to do, each by itself and in this order (BYPASS.KOM 5.2.3)."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import msgspec

from nearcast.errors import InvalidPlan
from nearcast.runtime.messages import Message
from nearcast.transition.specification import MechanismSpec, Scalar, check_scalar


class Exchange(msgspec.Struct, frozen=True, array_like=True, tag="exchange"):
    """Exchange the mechanism of a proxy."""

    proxy: str
    target: MechanismSpec


class SetState(msgspec.Struct, frozen=True, array_like=True, tag="set"):
    """Set a declared parameter of the running mechanism of a proxy."""

    proxy: str
    state: str
    value: Scalar

    def __post_init__(self) -> None:
        check_scalar(self.value, f"state {self.state!r} of {self.proxy!r}")


Action: TypeAlias = Exchange | SetState


_AT: Final = " at "

LATEST: Final = 2**62
"""The latest clock that is taken from others: one can still be added to it, and sent."""

Initiator = Annotated[str, msgspec.Meta(max_length=255)]
"""As it comes from others: who follows repeats it in each of its messages, which must fit into a frame."""


class PlanId(msgspec.Struct, frozen=True, array_like=True, order=True):
    """Which plan: plans are ordered by the Lamport clock; those of several initiators at one clock, by their names."""

    clock: int
    initiator: str
    """Who made it, and for which place, if it is for one (``for_place``): both travel with self-healing, in a few bytes."""

    @classmethod
    def for_place(cls, clock: int, initiator: str, place: str) -> PlanId:
        """A plan for whoever is there; no place: for whoever gets it, or hears of it."""
        return cls(clock, f"{initiator}{_AT}{place}" if place else initiator)

    @property
    def place(self) -> str:
        return self.initiator.partition(_AT)[2]

    def __str__(self) -> str:
        return f"{self.clock}@{self.initiator}"


class ExecutionPlan(msgspec.Struct, frozen=True, array_like=True):
    """Ordered actions; a host carries them out without asking anybody."""

    id: PlanId
    actions: tuple[Action, ...]

    def __post_init__(self) -> None:
        if not self.actions:
            raise InvalidPlan(f"plan {self.id} has no actions")
        if self.id.clock < 1:
            raise InvalidPlan(f"the clock of a plan starts at 1, but that of {self.id.initiator!r} is {self.id.clock}")


class PlanMessage(Message, frozen=True, tag="plan"):
    plan: ExecutionPlan
    attempt: int = 0
    """Comes back with the answer: a host that was brought up anew has to answer anew."""


class PlanDone(Message, frozen=True, tag="plan done"):
    """A host has done what the plan says, as far as nothing newer was said."""

    plan: PlanId
    ok: bool
    error: str | None = None
    """What failed; the actions before it were carried out, those after it were not."""

    clock: int = 0
    """The highest that the host knows: an initiator that lags behind learns it here."""

    outdated_by: PlanId | None = None
    """The newest plan because of which an action was left out."""

    attempt: int = 0
    """That of the message to which this is the answer."""
