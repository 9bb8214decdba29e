"""What routers of an overlay did with updates and messages, hop by hop."""

from __future__ import annotations

from typing import Final

from nearcast.records.column import Column, Kind, RecordTable, instant, name

UPDATE: Final = "update"
FORWARDED: Final = "forwarded"
PRUNED: Final = "pruned"
DELIVERED: Final = "delivered"
IN_VAIN: Final = "in vain"

HOPS: Final = RecordTable(
    "hops",
    "A router told a neighbour of contexts, or a message came by. Simulations have it where it was asked for.",
    (
        instant("time", "when it happened"),
        name("router", "where it happened"),
        name(
            "what",
            "`update`: the neighbour was told of a context; `forwarded` to the neighbour; `pruned`: not, because nobody there can be meant; `delivered` to somebody registered here; `in vain`: neither sent on nor delivered",
            *(UPDATE, FORWARDED, PRUNED, DELIVERED, IN_VAIN),
        ),
        Column(
            "subject", Kind.TEXT, "the id of the event; of an update the handle of the context, or the kind of message"
        ),
        name("neighbour", "to whom, or from whom it came in vain; null: to nobody else", nullable=True),
    ),
)
