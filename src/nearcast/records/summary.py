"""What a recording says about itself, in the file that makes it a finished one.

::

    DIR/_recording.json             written last: where it is, the recording is complete
    DIR/events/part-0000.parquet    a folder for each table, as Spark and other readers of a lake expect it
    DIR/_unfinished/...             the same while it is being written; readers skip what begins with an underscore
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from nearcast.errors import InvalidRecord
from nearcast.records.tables import VERSION

SUMMARY_FILE: Final = "_recording.json"
UNFINISHED: Final = "_unfinished"


class TableSummary(msgspec.Struct, frozen=True):
    """How many rows a table has, and the hash of what they say (see ``content``)."""

    rows: int
    sha256: str


class RecordingSummary(msgspec.Struct, frozen=True):
    """The version of the schemas, and what each table holds."""

    version: int
    tables: dict[str, TableSummary]
    about: dict[str, str | int | float] = msgspec.field(default_factory=dict)
    """What was recorded, as whoever recorded it says: of a run, its title, its scenario's digest and its seed."""


def write_summary(folder: Path, summary: RecordingSummary) -> None:
    text = msgspec.json.format(msgspec.json.encode(summary), indent=2)
    (folder / SUMMARY_FILE).write_bytes(text + b"\n")


def read_summary(folder: Path | str) -> RecordingSummary:
    """The summary of a finished recording."""
    folder = Path(folder)
    try:
        summary = msgspec.json.decode((folder / SUMMARY_FILE).read_bytes(), type=RecordingSummary)
    except FileNotFoundError:
        raise InvalidRecord(_what_is_wrong(folder)) from None
    except (OSError, msgspec.MsgspecError) as error:
        raise InvalidRecord(f"{folder / SUMMARY_FILE} cannot be read: {error}") from None
    check_version(folder, summary.version)
    return summary


def check_version(where: Path, version: int) -> None:
    if version > VERSION:
        raise InvalidRecord(
            f"{where} was recorded with version {version} of the record tables, and this nearcast knows them "
            f"up to version {VERSION}; install a newer nearcast"
        )


def _what_is_wrong(folder: Path) -> str:
    if not folder.exists():
        return f"there is no folder {folder}"
    if (folder / UNFINISHED).exists():
        return f"the recording in {folder} was never finished: its run is still going on, or was interrupted"
    return f"{folder} holds no recording: it has no {SUMMARY_FILE}"
