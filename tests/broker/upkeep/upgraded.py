"""Opens the journal and the identities of a data folder, and kills itself before statement number STEP: ``DATA STEP``."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any


def main(data: Path, step: int) -> None:
    statements = 0
    connect = sqlite3.connect

    def one_more(_statement: str) -> None:
        nonlocal statements
        statements += 1
        if statements == step:
            os.kill(os.getpid(), signal.SIGKILL)

    def watched(*arguments: Any, **more: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **more)
        connection.set_trace_callback(one_more)
        return connection

    sqlite3.connect = watched  # type: ignore[assignment]
    from nearcast.journal import Journal, JournalSettings
    from nearcast.journal.identities import Identities

    journal = Journal.open(data / "journal", JournalSettings(), lambda call, *rest: call(*rest), lambda: 0)
    Identities(data / "identities.db").close()
    journal.close()
    print(statements)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
