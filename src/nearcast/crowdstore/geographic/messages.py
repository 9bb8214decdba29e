"""What routers say to each other.  Cells go by their numbers."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from nearcast.runtime.messages import Message

PORT: Final = 32

_Number = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
_Cell = Annotated[int, msgspec.Meta(ge=0, lt=1 << 15)]
_Name = Annotated[str, msgspec.Meta(max_length=255)]


class Beacon(Message, frozen=True, tag="crowd-at"):
    """I am here: a number of three bytes (5.8.1)."""

    place: Annotated[int, msgspec.Meta(ge=0, lt=1 << 16)]
    """Twice the cell; one more while it moves, and so is no member."""


class Target(msgspec.Struct, frozen=True, array_like=True):
    """One of the destinations that a packet still has to reach."""

    cell: _Cell
    node: _Name | None = None
    walk: tuple[_Cell, _Cell] | None = None
    """While it goes round a void: the cell where that began, and the one after it."""


class Packet(Message, frozen=True, tag="crowd-route"):
    """From one cell to the next."""

    source: _Name
    number: _Number
    """Together they tell one message from all others."""

    origin: _Cell
    """Where the source is."""

    hops: Annotated[int, msgspec.Meta(ge=0, lt=1 << 16)]
    """So many more are allowed."""

    last: _Cell
    """The cell that it comes from."""

    targets: Annotated[tuple[Target, ...], msgspec.Meta(min_length=1, max_length=512)]
    payload: bytes
    refusal: bool = False
    """The payload is a ``Refused``."""


class Told(Message, frozen=True, tag="crowd-told"):
    """To all members of a cell, by one of them."""

    source: _Name
    number: _Number
    origin: _Cell
    cell: _Cell
    """Whose members it is for."""

    targets: Annotated[tuple[_Cell, ...], msgspec.Meta(min_length=1, max_length=512)]
    """The cells that it was sent to."""

    payload: bytes


class Refused(Message, frozen=True, tag="crowd-refused"):
    """A message that could not be delivered to a node (5.8.4)."""

    number: _Number
    cell: _Cell
    node: _Name
