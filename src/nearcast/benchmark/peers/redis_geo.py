"""Redis GEOSEARCH over a Unix socket, 1,024 questions in a pipeline.

The protocol is written and read as bytes here: requests are ready before, replies are parsed after the measured
time, which is therefore the server's.  Redis keeps a position as 52 bits of a geohash (steps of 0.4 m here) and
takes the earth for a sphere of 6,372,797.56 m, so it errs near the border: of 279 answers that differed from the
exact ones in 8,192 events, all were within 0.24 m of it, 15 of them outside the band of 0.15 m.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

import numpy as np

from nearcast.benchmark.peers.peer import Pairs, Peer
from nearcast.benchmark.workload import RADIUS
from nearcast.errors import BenchmarkError

_END: Final = b"end of the pipeline"
_SECONDS_TO_START: Final = 20.0
_CLIENTS_PER_COMMAND: Final = 1_000


class RedisGeo(Peer):
    name = "redis"

    @staticmethod
    def available() -> str | None:
        return None if shutil.which("redis-server") else "redis-server is not installed"

    def start(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="nearcast-redis-")
        path = Path(self.folder.name) / "socket"
        settings = {"port": "0", "unixsocket": str(path), "save": "", "appendonly": "no", "dir": self.folder.name}
        options = [part for name, value in settings.items() for part in (f"--{name}", value)]
        self.server = subprocess.Popen(["redis-server", *options], stdout=subprocess.DEVNULL)
        self.connection = socket.socket(socket.AF_UNIX)
        deadline = time.monotonic() + _SECONDS_TO_START
        while self.connection.connect_ex(str(path)):
            if self.server.poll() is not None or time.monotonic() > deadline:
                raise BenchmarkError("redis-server did not start")
            time.sleep(0.02)
        self._load()

    def stop(self) -> None:
        if hasattr(self, "connection"):
            self.connection.close()
        if hasattr(self, "server"):
            self.server.terminate()
            self.server.wait()
        if hasattr(self, "folder"):
            self.folder.cleanup()

    def prepare(self, start: int, stop: int) -> bytes:
        events, radius = self.world.events, str(RADIUS)
        places = zip(events.lon[start:stop].tolist(), events.lat[start:stop].tolist(), strict=True)
        return b"".join(
            _command("GEOSEARCH", "clients", "FROMLONLAT", repr(lon), repr(lat), "BYRADIUS", radius, "m")
            for lon, lat in places
        )

    def query(self, request: bytes) -> bytes:
        return self._ask(request)

    def pairs(self, reply: bytes) -> Pairs:
        # One array per question, whose elements are the textual ids of clients.
        counts = np.array([int(count) for count in re.findall(rb"^\*(\d+)\r$", reply, re.MULTILINE)], np.int64)
        numbers = np.array([int(number) for number in re.findall(rb"client-(\d+)", reply)], np.int64)
        return Pairs(np.repeat(np.arange(len(counts)), counts), numbers)

    def version(self) -> str:
        reply = self._ask(_command("INFO", "server"))
        found = re.search(rb"redis_version:(\S+)", reply)
        return found[1].decode() if found else "unknown"

    def _load(self) -> None:
        world = self.world
        rows = list(zip(world.lon.tolist(), world.lat.tolist(), world.ids, strict=True))
        for first in range(0, len(rows), _CLIENTS_PER_COMMAND):
            some = rows[first : first + _CLIENTS_PER_COMMAND]
            reply = self._ask(_command("GEOADD", "clients", *(str(part) for row in some for part in row)))
            if not reply.startswith(b":"):
                raise BenchmarkError(f"redis-server refused clients: {reply[:100]!r}")

    def _ask(self, request: bytes) -> bytes:
        self.connection.sendall(request + _command("ECHO", _END.decode()))
        reply = bytearray()
        while not reply.endswith(_END + b"\r\n"):
            received = self.connection.recv(1 << 20)
            if not received:
                raise BenchmarkError("redis-server closed the connection")
            reply += received
        return bytes(reply)


def _command(*words: str) -> bytes:
    encoded = [word.encode() for word in words]
    return b"*%d\r\n" % len(encoded) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in encoded)
