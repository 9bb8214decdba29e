"""What devices and the node of their access network say to each other."""

from __future__ import annotations

from typing import Any, Final

from nearcast.overlay.routing.wire import Routed
from nearcast.runtime.messages import Message

PORT: Final = 22


class Registration(Message, frozen=True, tag="registration"):
    """A context of the device, by a number of its own; without attributes it is gone.  The newest version counts."""

    context: int
    version: int
    attributes: dict[str, Any] | None


class Present(Message, frozen=True, tag="present"):
    """The device is there, with so many contexts; who silently goes is deregistered (6.3.1)."""

    contexts: tuple[tuple[int, int], ...]
    """Numbers and versions."""

    version: int
    """The newest of the device: what is older and not among these is gone."""


class RegisterAgain(Message, frozen=True, tag="register again"):
    """The node knows something else."""


class Send(Message, frozen=True, tag="send"):
    """A message of an application, to be sent on its way."""

    message: Routed


FROM_DEVICE: Final = (Registration, Present, Send)
TO_DEVICE: Final = (Routed, RegisterAgain)
