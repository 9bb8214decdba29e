"""What Spark keeps of a part of a stream between batches: blobs by their names, tables as Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow as pa
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from nearcast.errors import InvalidSettings
from nearcast.pipeline.streaming.packing import blob_of, rows_in

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessorHandle

HEAD: Final = "head"
LAYOUT: Final = 1
"""Of all that is stored.  Whoever changes what the blobs mean adds one, and leaves head, map and the key of the first part where
they are: whoever looks elsewhere finds no state at all (but see ``layout``)."""


class Head(msgspec.Struct, frozen=True):
    """What is read with every batch.

    All names are new whenever something is written: what a failed attempt has left in a worker is not taken for the state.
    """

    lineage: str
    """Of the part, for ever: under this name workers keep what they have loaded of it."""
    version: str
    base: str
    since: list[str]
    watermark: int
    parts: int
    """Into so many is the stream dealt: were it another number, events would be answered by states that lack a past."""
    layout: int = 0
    """Heads from before there were such numbers say nothing."""


def other_layout(where: str, layout: str) -> InvalidSettings:
    return InvalidSettings(
        f"{where} was written by another version of nearcast (layout {layout} of the state, not {LAYOUT}); "
        "go on with that version, or begin with another checkpoint"
    )


class Store:
    """One map for all: every state that is declared costs some 20 ms with every batch, and so does every schema that is text."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        name = StructType([StructField("name", StringType(), nullable=False)])
        blob = StructType([StructField("blob", BinaryType(), nullable=False)])
        self._blobs: Final[MapState] = handle.getMapState("blobs", name, blob)

    def head(self) -> Head | None:
        found = self._blobs.getValue((HEAD,))
        if found is None:
            return None
        head = msgspec.msgpack.decode(bytes(found[0]), type=Head)
        if head.layout != LAYOUT:
            raise other_layout("the checkpoint of this stream", str(head.layout))
        return head

    def put_head(self, head: Head) -> None:
        self._blobs.updateValue((HEAD,), (msgspec.msgpack.encode(head),))

    def table(self, name: str, schema: pa.Schema) -> pa.Table:
        """The table of that name; one without rows if there is none."""
        found = self._blobs.getValue((name,))
        return schema.empty_table() if found is None else rows_in(found[0], schema)

    def put(self, name: str, table: pa.Table) -> None:
        self._blobs.updateValue((name,), (blob_of(table),))

    def remove(self, name: str) -> None:
        self._blobs.removeKey((name,))
