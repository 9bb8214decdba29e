"""What devices and the node of their access network say to each other."""

from __future__ import annotations

from typing import Any, Final

from nearcast.model.time import Instant
from nearcast.overlay.routing.wire import Routed
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address

PORT: Final = 22


class Registration(Message, frozen=True, tag="registration"):
    """A context of the device, by a number of its own; without attributes it is gone.  The newest version counts."""

    context: int
    version: int
    attributes: dict[str, Any] | None
    at: Instant | None = None
    """Since when that holds, by the device's clock: what ends at one node at that instant may begin at another."""

    identity: str | None = None
    """The virtual identity under which it is archived; none: it is not."""


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


class Relay(Message, frozen=True, tag="relay"):
    """For somebody who offers a service elsewhere; the node does not read it."""

    to: Address
    service: str
    body: bytes


class Relayed(Message, frozen=True, tag="relayed"):
    """What somebody elsewhere answers, or says unasked."""

    sender: Address
    body: bytes


FROM_DEVICE: Final = (Registration, Present, Send, Relay)
TO_DEVICE: Final = (Routed, RegisterAgain, Relayed)
