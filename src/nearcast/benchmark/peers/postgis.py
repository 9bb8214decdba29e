"""PostGIS: ST_DWithin on the sphere over a GiST index, 1,024 events joined in one question.

The events are in a table already and the answer comes as binary COPY, parsed after the measured time.  Measured
at 1 M clients: geography on the sphere 10-13 k events/s; geometry in a plane 11-14 k.  The first asks nearcast's
own question and is taken.  The cluster lives in a folder of its own, without network and without fsync.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nearcast.benchmark.peers.peer import Pairs, Peer
from nearcast.benchmark.workload import RADIUS
from nearcast.errors import BenchmarkError

if TYPE_CHECKING:
    from nearcast.benchmark.plane import Floats

_SETTINGS: Final = {
    "listen_addresses": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "shared_buffers": "1GB",
    "work_mem": "256MB",
    "maintenance_work_mem": "512MB",
    "max_wal_size": "4GB",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",  # one core, like everybody else here
}
_ROW: Final = np.dtype([("fields", ">i2"), ("s1", ">i4"), ("event", ">i4"), ("s2", ">i4"), ("client", ">i4")])
_HEADER, _TRAILER = 19, 2


class PostGIS(Peer):
    name = "postgis"

    @staticmethod
    def available() -> str | None:
        if importlib.util.find_spec("psycopg") is None:
            return "the Python package psycopg is not installed"
        programs = _programs()
        if programs is None:
            return "PostgreSQL (initdb, pg_ctl) is not installed"
        if not list(_share(programs).glob("extension/postgis.control")):
            return "PostgreSQL is installed, its extension postgis is not"
        if os.geteuid() == 0 and _servant() is None:
            return "PostgreSQL does not run as root, and there is no user postgres or nobody"
        return None

    def start(self) -> None:
        import psycopg

        self.folder = Path(tempfile.mkdtemp(prefix="nearcast-postgis-"))
        if (servant := _servant()) is not None:
            shutil.chown(self.folder, servant)
        self._run("initdb", "--auth=trust", "--username=bench", "--no-sync", "--encoding=UTF8")
        options = " ".join(f"-c {name}='{value}'" for name, value in _SETTINGS.items())
        self._run("pg_ctl", "--wait", f"--log={self.folder}/log", f"--options=-k {self.folder} {options}", "start")
        self.started = True
        self.connection = psycopg.connect(host=str(self.folder), user="bench", dbname="postgres", autocommit=True)
        self._load()

    def stop(self) -> None:
        if hasattr(self, "connection"):
            self.connection.close()
        if hasattr(self, "started"):
            self._run("pg_ctl", "--wait", "--mode=immediate", "stop")
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder, ignore_errors=True)

    def prepare(self, start: int, stop: int) -> Any:
        return start, (
            "COPY (SELECT e.number, c.number FROM events e "  # noqa: S608
            f"JOIN clients c ON ST_DWithin(c.place, e.place, {RADIUS}, false) "
            f"WHERE e.number >= {start} AND e.number < {stop}) TO STDOUT (FORMAT binary)"
        )

    def query(self, request: Any) -> Any:
        start, question = request
        with self.connection.cursor() as cursor, cursor.copy(question) as copy:
            return start, list(copy)

    def pairs(self, reply: Any) -> Pairs:
        start, blocks = reply
        data = b"".join(bytes(block) for block in blocks)
        rows = np.frombuffer(data[_HEADER : len(data) - _TRAILER], _ROW)
        return Pairs(rows["event"].astype(np.int64) - start, rows["client"].astype(np.int64))

    def version(self) -> str:
        row = self.connection.execute("SELECT postgis_lib_version(), current_setting('server_version')").fetchone()
        assert row is not None
        return f"{row[0]} on PostgreSQL {str(row[1]).split()[0]}"

    def _load(self) -> None:
        self.connection.execute("CREATE EXTENSION postgis")
        self._table("clients", self.world.lat, self.world.lon)
        self._table("events", self.world.events.lat, self.world.events.lon)
        self.connection.execute("CREATE INDEX ON clients USING gist (place)")
        self.connection.execute("CREATE INDEX ON events (number)")
        self.connection.execute("VACUUM ANALYZE")

    def _table(self, name: str, lat: Floats, lon: Floats) -> None:
        connection = self.connection
        connection.execute(f"CREATE TEMPORARY TABLE plain_{name} (number int, lon float8, lat float8)")
        lines = "".join(f"{i}\t{x!r}\t{y!r}\n" for i, (x, y) in enumerate(zip(lon.tolist(), lat.tolist(), strict=True)))
        with connection.cursor() as cursor, cursor.copy(f"COPY plain_{name} FROM STDIN") as copy:
            copy.write(lines)
        # Neighbours next to each other on disk, as a careful operator would have it.
        connection.execute(
            f"CREATE TABLE {name} AS SELECT number, ST_SetSRID(ST_MakePoint(lon, lat), 4326)::geography AS place "  # noqa: S608
            f"FROM plain_{name}" + (" ORDER BY ST_MakePoint(lon, lat)" if name == "clients" else "")
        )

    def _run(self, program: str, *arguments: str) -> None:
        programs = _programs()
        assert programs is not None
        servant = _servant()
        done = subprocess.run(
            [programs / program, f"--pgdata={self.folder}/data", *arguments],
            user=servant,
            group=None if servant is None else pwd.getpwnam(servant).pw_gid,
            extra_groups=None if servant is None else [],
            cwd=self.folder,
            env={"LC_ALL": "C", "PATH": os.environ.get("PATH", "")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        if done.returncode:
            raise BenchmarkError(f"{program} failed: {done.stderr.strip()}")


def _programs() -> Path | None:
    """Where initdb and pg_ctl are: on the path, or where Debian puts them."""
    if (found := shutil.which("initdb")) and shutil.which("pg_ctl"):
        return Path(found).resolve().parent
    folders = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(folders, key=lambda folder: int(folder.parent.name), default=None)


def _share(programs: Path) -> Path:
    configured = programs / "pg_config"
    if configured.exists():
        answer = subprocess.run([configured, "--sharedir"], capture_output=True, text=True, check=False)
        if answer.returncode == 0:
            return Path(answer.stdout.strip())
    return Path("/usr/share/postgresql") / programs.parent.name


def _servant() -> str | None:
    """As whom to run the server: nobody else if we are not root."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in known), None)
