"""What routers say to each other, and the head of all that they pass on."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from nearcast.runtime.messages import Message

MOST_HOPS: Final = 64
"""Of a packet, as the time to live of IP in ns-3."""

INFINITE: Final = 255
"""The metric of a route that is broken."""

LATEST: Final = 2**48
"""No sequence number is larger: one that cannot be counted on would end the routes to a host for ever."""

FRAME: Final = 1_400
"""Bytes of a message: with all headers it stays below the threshold of RTS/CTS (THYME 6.2), and fits into a datagram of any network."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
Advertised = tuple[Name, Annotated[int, msgspec.Meta(ge=0, le=INFINITE)], Annotated[int, msgspec.Meta(ge=0, le=LATEST)]]
"""A destination, how many hops it is away, and the sequence number of that knowledge: odd if it is that the route is broken.

A plain tuple: in a crowd of 200, a hundred million are looked at in ten minutes.
"""


class Routes(Message, frozen=True, tag="crowd-routes"):
    """All that the sender knows, or what has changed; or a part of either."""

    routes: tuple[Advertised, ...]


class Packet(Message, frozen=True):
    """Base of all messages for one host, however far away; records show each kind by itself."""

    source: Name
    destination: Name
    hops: Annotated[int, msgspec.Meta(ge=0, le=MOST_HOPS)]
    """How many transmissions it may take, this one included."""
