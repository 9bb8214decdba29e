"""The files of the lake: readable to the last page, every offset once."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

from nearcast.broker.upkeep.doctor.findings import Finding, note, ok, problem, warning
from nearcast.journal.lake import EXPORTED

_NAME: Final = re.compile(r"(\d{20})-(\d{20})\.parquet")
_BACKUP: Final = "put the file from a backup in its place"


def lake(folder: Path, exported_of: Callable[[], int | None], *, quick: bool) -> Iterator[Finding]:
    """``exported_of``: what the journal says of it, asked after the lake itself: that one never runs ahead."""
    said, exported = _said(folder), exported_of()
    if not folder.is_dir():
        if exported:
            yield problem(
                "lake",
                f"{folder} is missing, and the journal has exported up to offset {exported}",
                "put it back, or restore a backup",
            )
        else:
            yield note("lake", f"{folder} does not exist yet")
        return
    yield from _mark(folder, said, exported)
    files = sorted(path for path in folder.glob("*/date=*/*.parquet") if not path.name.startswith((".", "_")))
    damaged = 0
    for path in files:
        if (wrong := _damage(path, quick=quick)) is not None:
            damaged += 1
            yield problem("lake", f"{path} is damaged: {wrong:.120}", _BACKUP)
    yield from _doubled(files)
    yield from _missing(files, exported)
    yield ok("lake", f"{len(files) - damaged} files were {'looked at' if quick else 'read'} in {folder}")


def _said(folder: Path) -> int | None:
    """None: it says something that is no offset."""
    try:
        return int((folder / EXPORTED).read_text())
    except FileNotFoundError:
        return 0
    except ValueError:
        return None


def _mark(folder: Path, said: int | None, exported: int | None) -> Iterator[Finding]:
    if said is None:
        yield problem("lake", f"{folder / EXPORTED} is no number", "remove it: the broker writes it anew")
        return
    if exported is not None and said > exported:
        yield problem(
            "lake",
            f"it says that it holds everything below offset {said}, and the journal says {exported}",
            "lake and journal are not of the same broker, or of different times: restore both from one backup",
        )


def _damage(path: Path, *, quick: bool) -> str | None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            if not quick:
                for number in range(file.num_row_groups):
                    file.read_row_group(number)
    except FileNotFoundError:
        return None  # trimmed by its operator meanwhile
    except (OSError, pa.ArrowException) as error:
        return " ".join(str(error).split())
    return None


def _doubled(files: list[Path]) -> Iterator[Finding]:
    """Two files of one table and day that hold the same offsets."""
    spans: defaultdict[Path, list[tuple[int, int, str]]] = defaultdict(list)
    for path in files:
        if (name := _NAME.fullmatch(path.name)) is not None:
            spans[path.parent].append((int(name[1]), int(name[2]), path.name))
    for folder, found in spans.items():
        found.sort()
        for (_, end, one), (first, _, other) in pairwise(found):
            if first <= end:
                yield problem(
                    "lake", f"{folder}: {one} and {other} hold the same offsets", "keep one of them: rows count twice"
                )


def _missing(files: list[Path], exported: int | None) -> Iterator[Finding]:
    """Between two exports nothing is left out; at the beginning, operators trim."""
    spans = sorted({(int(name[1]), int(name[2])) for path in files if (name := _NAME.fullmatch(path.name)) is not None})
    for (_, end), (first, _) in pairwise(spans):
        if first > end + 1 and (exported is None or first < exported):
            yield warning(
                "lake",
                f"offsets {end + 1} to {first - 1} are in no file",
                "fetch them from a backup, if they were not trimmed on purpose",
            )
