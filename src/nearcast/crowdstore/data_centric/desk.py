"""What the parts of the mechanism share: the state of the cell, the router, and the ways to say something."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Final

import msgspec

from nearcast.crowdstore.data_centric.entries import EVERYTHING
from nearcast.crowdstore.data_centric.messages import FRAME, KINDS, PIECES, Piece
from nearcast.crowdstore.data_centric.state import CellState
from nearcast.crowdstore.geographic.grid import Cell, CellGrid
from nearcast.crowdstore.geographic.interface import Destination, Router
from nearcast.crowdstore.nucleus import Nucleus
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.messages import Codec, Message, encoded
from nearcast.runtime.ports import Address

CELLS: Final = 100
"""So many cells are named by one message."""

UNFINISHED: Final = 64
"""Messages of which some pieces have come, at most; of each sender, ``UNFINISHED_OF_ONE``, so that one that begins many disturbs no other."""

UNFINISHED_OF_ONE: Final = 8


class Desk:
    """Messages out, whole messages in."""

    def __init__(self, nucleus: Nucleus, grid: CellGrid, memory: float) -> None:
        self.nucleus: Final = nucleus
        self.host: Final = nucleus.host
        self.grid: Final = grid
        self.state: Final = CellState(round(memory * MICROSECONDS))
        self.router: Router
        self._codec: Final[Codec[Message]] = Codec(*KINDS)
        self._pieces: Final[dict[tuple[Address, int, int], dict[int, bytes]]] = {}

    def now(self) -> Instant:
        return self.host.now()

    @property
    def here(self) -> Cell:
        """Where an answer reaches this host; the first cell as long as nobody knows."""
        return self.router.cell or self.router.place or Cell(0, 0)

    def homes(self, tags: Iterable[str]) -> dict[Cell, None]:
        """The cells that these hash to."""
        return dict.fromkeys(map(self.grid.cell_of, tags))

    def cells_of(self, key: str) -> dict[Cell, None]:
        """Who keeps conjunctions with that key: the cell that it hashes to, or all."""
        return dict.fromkeys(self.grid) if key == EVERYTHING else self.homes((key,))

    def to_cells(self, cells: Iterable[Cell], message: Message) -> None:
        wanted = list(dict.fromkeys(cells))
        for start in range(0, len(wanted), CELLS):
            destinations = [Destination(cell) for cell in wanted[start : start + CELLS]]
            for payload in payloads(message):
                self.router.route(destinations, payload)

    def to_node(self, cell: Cell, node: Address, message: Message) -> None:
        self.to_nodes([Destination(cell, node)], message)

    def to_nodes(self, destinations: Iterable[Destination], message: Message) -> None:
        wanted = list(destinations)
        for payload in payloads(message):
            self.router.route(wanted, payload)

    def tell(self, message: Message) -> None:
        """All other members of the cell, once."""
        for payload in payloads(message):
            self.router.tell_cell(payload)

    def read(self, source: Address, payload: bytes) -> Message | None:
        """The message, once all of it is here; none for what is not one."""
        try:
            message = self._codec.decoded(payload)
            return self._put_together(source, message) if isinstance(message, Piece) else message
        except (msgspec.DecodeError, msgspec.ValidationError):
            return None

    def _put_together(self, source: Address, piece: Piece) -> Message | None:
        if piece.number >= piece.count:
            return None
        key = source, piece.whole, piece.count
        found = self._pieces.pop(key, {})
        found[piece.number] = piece.data
        if len(found) < piece.count:
            self._make_room(source)
            self._pieces[key] = found  # the last that is given up
            return None
        data = b"".join(found[number] for number in range(piece.count))
        if _hash(data) != piece.whole:
            return None
        whole = self._codec.decoded(data)
        return None if isinstance(whole, Piece) else whole

    def _make_room(self, source: Address) -> None:
        own = [key for key in self._pieces if key[0] == source]
        if len(own) >= UNFINISHED_OF_ONE:
            del self._pieces[own[0]]
        elif len(self._pieces) >= UNFINISHED:
            del self._pieces[next(iter(self._pieces))]


def _hash(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big") >> 1


def payloads(message: Message) -> list[bytes]:
    """Its encoded form, in pieces if it is too long for one frame."""
    data = encoded(message)
    if len(data) <= FRAME:
        return [data]
    parts = [data[start : start + FRAME] for start in range(0, len(data), FRAME)]
    assert len(parts) <= PIECES, f"a message of {len(data)} bytes, which nobody would read: {type(message).__name__}"
    return [encoded(Piece(_hash(data), number, len(parts), part)) for number, part in enumerate(parts)]


def batches(sizes: Iterable[int], most: int = FRAME - 200) -> Iterator[int]:
    """How many of the things with these sizes go into each message of that size; at least one."""
    count = total = 0
    for size in sizes:
        if count and total + size > most:
            yield count
            count = total = 0
        count += 1
        total += size
    if count:
        yield count
