"""Local transports by name: those of the house, and those that other packages bring.

A package brings one by an entry point of the group ``nearcast.transports``, which leads to a class of parameters (``Transport``); hosts need
a link of its interface's name.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

from nearcast.errors import InvalidPlan
from nearcast.transition.registry import DURATION, Entry, Registry

Grace = Annotated[
    float,
    Meta(
        ge=0,
        le=3_600,
        extra=DURATION,
        description="a host that has changed to it goes on over the transport before, too, for so long",
    ),
]
Reminder = Annotated[
    float,
    Meta(
        ge=1,
        le=3_600,
        extra=DURATION,
        description="how often a host that was told of it says so on all its transports, to those who come by",
    ),
]

GRACE: Final = 5.0
"""Seconds.  Told once a second (``local_link.REPEAT``), neighbours would have to miss five announcements in a row."""

REMINDER: Final = 10.0
"""Seconds.  People pass each other for about a minute at a range of 30 m."""


class Transport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of a transport: its fields (``transition.registry`` says how they are declared)."""

    interface: ClassVar[str]
    """Of the host's links, that one."""

    grace: Grace = GRACE
    reminder: Reminder = REMINDER


class WiFi(Transport, frozen=True, kw_only=True):
    """Wi-Fi in ad hoc mode: far and fast, at the price of a radio that listens all the time."""

    interface: ClassVar[str] = "wifi"


class Bluetooth(Transport, frozen=True, kw_only=True):
    """Bluetooth Low Energy: a third of the range, a sixth of the rate, a sixteenth of the power."""

    interface: ClassVar[str] = "bluetooth"


_OURS: Final[dict[str, Entry[Transport]]] = {"WIFI": Entry(WiFi), "BLUETOOTH": Entry(Bluetooth)}

TRANSPORTS: Final = Registry("local transport", "nearcast.transports", Transport, _OURS, InvalidPlan)
transport_of: Final = TRANSPORTS.parameters_of
