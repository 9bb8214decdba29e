"""Arrow streams of strangers: what is larger than it looks is refused before it is made."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.errors import InvalidRecord
from nearcast.records.strange import MOST_UNFOLDED, strange_table_in

PLAIN = {"offset": [1, 2], "name": ["a", None], "real": [0.5, 1.5], "bytes": [b"x", b""], "texts": [["a"], None]}


def stream(columns: dict[str, Any], compression: str | None = None) -> bytes:
    table, sink = pa.table(columns), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    return sink.getvalue()


def test_plain_columns_and_dictionaries_of_texts_are_read() -> None:
    columns = PLAIN | {"client": pa.array(["ada", "ada"]).dictionary_encode()}
    assert strange_table_in(stream(columns)).equals(pa.table(columns))
    assert strange_table_in(stream({"offset": pa.array([], pa.int64())})).num_rows == 0


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
@pytest.mark.parametrize("client", [["ada", "bob"], pa.array(["ada", "ada"]).dictionary_encode()])
def test_compressed_streams_are_refused(compression: str, client: Any) -> None:
    with pytest.raises(InvalidRecord, match="compressed"):
        strange_table_in(stream({"client": client, "payload": [bytes(10_000)] * 2}, compression))


def test_a_compressed_dictionary_is_refused_although_the_rows_are_not() -> None:
    """The rows of such a stream come behind its dictionaries."""
    columns = {"client": pa.array(["x" * 10_000] * 2).dictionary_encode()}
    with pytest.raises(InvalidRecord, match="compressed"):
        strange_table_in(stream(columns, "zstd"))


@pytest.mark.parametrize(
    "column",
    [
        pa.nulls(10),
        pa.array([["a"]], pa.list_(pa.dictionary(pa.int32(), pa.string()))),
        pa.array([b"x"]).dictionary_encode(),
        pa.array([{"a": 1}]),
        pa.array(["a"], pa.string_view()),
        pa.RunEndEncodedArray.from_arrays(pa.array([1_000_000], pa.int32()), pa.array(["x"])),
    ],
)
def test_columns_that_say_much_in_few_bytes_are_refused(column: Any) -> None:
    with pytest.raises(InvalidRecord, match="plain columns"):
        strange_table_in(stream({"a": column}))


def test_a_long_text_to_which_all_rows_refer_is_refused() -> None:
    rows = 1_000
    indices = pa.array([0] * rows, pa.int32())
    long = pa.DictionaryArray.from_arrays(indices, ["x" * (MOST_UNFOLDED // rows + 1)])
    with pytest.raises(InvalidRecord, match="more than it has bytes for"):
        strange_table_in(stream({"offset": list(range(rows)), "client": long}))


@given(st.data())
def test_rubbish_is_refused_and_nothing_else_happens(data: st.DataObject) -> None:
    whole = bytearray(stream(PLAIN | {"client": pa.array(["ada", "ada"]).dictionary_encode()}))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(InvalidRecord):
        strange_table_in(bytes(whole[: data.draw(st.integers(0, len(whole)))]))
