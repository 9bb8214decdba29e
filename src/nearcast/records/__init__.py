"""Arrow schemas of everything that is logged or archived, and the recorder that writes it.

The tables (``tables``, documented in docs/records.md) are shared by simulator, broker and pipeline.  ``RecordWriter``
writes them as a recording, ``read`` and ``dataset`` read one.  pyarrow is loaded when it is needed.
"""

from nearcast.records.arrow import arrow_schema
from nearcast.records.column import Column, Kind, RecordTable
from nearcast.records.content import content_hash
from nearcast.records.reader import dataset, read
from nearcast.records.summary import RecordingSummary, TableSummary, read_summary
from nearcast.records.tables import TABLES, VERSION, table
from nearcast.records.writer import RecordWriter, RecordWriterStatistics, TableStatistics

__all__ = [
    "TABLES",
    "VERSION",
    "Column",
    "Kind",
    "RecordTable",
    "RecordWriter",
    "RecordWriterStatistics",
    "RecordingSummary",
    "TableStatistics",
    "TableSummary",
    "arrow_schema",
    "content_hash",
    "dataset",
    "read",
    "read_summary",
    "table",
]
