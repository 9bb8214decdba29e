"""Texts that nobody else writes, and a search for them in every file, however it is packed."""

from __future__ import annotations

import base64
import re
import sqlite3
from pathlib import Path
from typing import Any

MARKER = "xQ7mark"
"""All markers begin so."""


def found_below(folder: Path, needles: tuple[str, ...] = (MARKER,)) -> dict[str, list[str]]:
    """By file, what of it was found: in its name, in its bytes, and in its columns if it is a table."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        hits = [needle for needle in needles if needle in str(path.relative_to(folder))]
        for text in _texts(path):
            places = [text.find(form) for needle in needles for form in _forms(needle)]
            hits += [repr(text[max(0, place - 40) : place + 60]) for place in places if place >= 0]
        if hits:
            found[str(path.relative_to(folder))] = hits
    return found


def traces(folder: Path, identities: tuple[str, ...]) -> dict[str, list[str]]:
    """Markers anywhere, and identities anywhere but in the audit log: its chain stays whole, and nobody knows whose they were."""
    named = found_below(folder, identities)
    return found_below(folder) | {name: found for name, found in named.items() if "audit" not in name}


def _forms(needle: str) -> tuple[bytes, ...]:
    """As it stands, in UTF-16, and as a part of some text in base 64."""
    plain = needle.encode()
    shifted = (base64.b64encode(b"\0" * skip + plain)[4 if skip else 0 : -4] for skip in range(3))
    return plain, needle.encode("utf-16-le"), *(form for form in shifted if len(form) >= 8)


def _texts(path: Path) -> list[bytes]:
    data = path.read_bytes()
    if not data.strip(b"\0"):  # room that is kept free
        return []
    texts = [data]
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as file:
            texts.append(repr(file.schema_arrow).encode() + repr(file.metadata.metadata).encode())
            # All pages, dictionaries included: of columns as they are stored, names that no row uses would still be there.
            for group in range(file.num_row_groups):
                for column in file.read_row_group(group).columns:
                    for chunk in column.chunks:
                        texts += _buffers(chunk)
    elif data[:16] == b"SQLite format 3\0":
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        texts += [repr(row).encode() for name in names for row in connection.execute(f'SELECT * FROM "{name}"')]  # noqa: S608
        connection.close()
    return texts


def _buffers(array: Any) -> list[bytes]:
    import pyarrow as pa

    own = [buffer.to_pybytes() for buffer in array.buffers() if buffer is not None]
    if pa.types.is_dictionary(array.type):
        own += _buffers(array.dictionary)
    return own


def in_text(text: str, needle: str = MARKER) -> list[str]:
    return [line for line in text.splitlines() if re.search(re.escape(needle), line)]
