"""The audit log: nobody has changed it, and the broker has left nothing out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from nearcast.broker.audit.audit import FOLDER
from nearcast.broker.audit.chain import TABLE, check_end, files_of, known_in, last_seen, verified
from nearcast.broker.upkeep.doctor.findings import Finding, note, ok, problem, warning
from nearcast.errors import InvalidRecord
from nearcast.journal.database import FILE
from nearcast.journal.reading import load

_ADVICE: Final = "find out who can write to the data folder; a backup has the log as it was (nearcast audit --verify)"


def audit(data: Path, *, quick: bool) -> Iterator[Finding]:
    folder, journal = data / FOLDER, data / "journal" / FILE
    known = known_in(load(journal, TABLE) if journal.exists() else {})  # before the files, which only grow
    if not files_of(folder) and not known.head.n:
        yield note("audit", f"nothing is written in {folder} yet")
        return
    try:
        if quick:
            if known.broken is not None:
                raise InvalidRecord(known.broken.what)
            check_end(folder, last_seen(folder), known.head)
            yield ok("audit", f"the log ends as it should, with entry {known.head.n}")
            return
        found = verified(folder, known.head, known.broken)
    except InvalidRecord as error:
        yield problem("audit", f"the audit log was tampered with: {error}", _ADVICE)
        return
    yield ok("audit", f"nothing was changed in entries {found.first} to {found.head.n}")
    if found.lost:
        yield warning("audit", f"{found.lost} entries were left out", "the disk did not keep up: look at its load")
