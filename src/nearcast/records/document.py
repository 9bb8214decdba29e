"""The tables as docs/records.md shows them: ``python -m nearcast.records.document docs/records.md`` brings it up to date."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from nearcast.documents import with_section
from nearcast.records.column import Column, RecordTable
from nearcast.records.tables import TABLES

BEGIN: Final = "<!-- from src/nearcast/records: do not edit below -->\n"


def section() -> str:
    """All tables, as Markdown."""
    return "\n".join(_table(table) for table in TABLES)


def up_to_date(text: str) -> str:
    """The document with its section of tables as it should be."""
    return with_section(text, BEGIN, section())


def _table(table: RecordTable) -> str:
    rows = "\n".join(_row(column) for column in table.columns)
    return f"### {table.name}\n\n{table.description}\n\n| column | kind | meaning |\n|---|---|---|\n{rows}\n"


def _row(column: Column) -> str:
    kind = f"{column.kind} or null" if column.nullable else str(column.kind)
    unsaid = [f"`{choice}`" for choice in column.choices if f"`{choice}`" not in column.description]
    choices = f": {', '.join(unsaid)}" if unsaid else ""
    return f"| `{column.name}` | {kind} | {column.description}{choices} |"


if __name__ == "__main__":
    document = Path(sys.argv[1])
    document.write_text(up_to_date(document.read_text()))
