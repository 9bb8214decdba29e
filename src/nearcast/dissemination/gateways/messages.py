"""What the broker and clients say to each other about gateways.

Bytes on the cellular link, 29 of them headers, with 128 bytes of payload and ids as in simulations (``client-12/345``): an event takes
225; a relay 8 more, and for each address in it 10 more; an acknowledgement of m events 35 + 14 m, so that ten of them together take 18 each.
"""

from __future__ import annotations

from typing import Final

from nearcast.dissemination.wire import EventMessage
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address

PORT: Final = 5
PATH: Final = "gateway"
AGAIN: Final = 30.0
"""Seconds after which clients register once more, in case that the broker has forgotten them."""

HOPS: Final = 2  # publisher to broker, broker to gateway; what follows is local


class Registration(Message, frozen=True, tag="gateway registration"):
    """The client hears those nearby, and can pass events on to them.

    In every hybrid mode the cloud knows two addresses of a client (BYPASS.KOM 6.3.2, footnote 5).
    """

    local: Address
    """Its address on the local link."""

    anew: bool
    """It has just been started: it does not know what it got before, and is owed nothing."""


class Registered(Message, frozen=True, tag="gateway registered"):
    window: float | None
    """Seconds over which to collect acknowledgements; none: none are wanted."""

    unwanted_too: bool = False
    """Whether they are wanted also of events that the client does not want."""


class Relay(Message, frozen=True, tag="relay"):
    """An event for the client, and for those near it."""

    event: EventMessage
    targets: tuple[Address, ...] | None = None
    """Local addresses of those whom it is for, where events are sent to each of them (UNICAST); none: whoever hears it."""


class Acknowledgement(Message, frozen=True, tag="got"):
    """These came by way of a gateway."""

    events: tuple[str, ...]


FROM_CLIENT: Final = (Registration, Acknowledgement)
TO_CLIENT: Final = (Registered, Relay)
