"""A server under test: a process of its own, on a core of its own, in a folder that goes away with it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar, Final

import psutil

from nearcast.benchmark.broker_packets import Dialect
from nearcast.benchmark.peers.started import Started
from nearcast.errors import BenchmarkError

_SECONDS_TO_START: Final = 30.0
_SECONDS_TO_STOP: Final = 10.0
_LAST_WORDS: Final = 300


class Server(Started):
    """A server under test, on a free port of the loopback."""

    name: ClassVar[str]
    dialect: ClassVar[Dialect] = Dialect(5)
    _process: subprocess.Popen[bytes] | None = None
    _temporary: tempfile.TemporaryDirectory[str] | None = None

    @staticmethod
    @abstractmethod
    def available() -> str | None:
        """Why this server cannot run here, or ``None`` if it can."""

    @abstractmethod
    def command(self) -> list[str]:
        """What to run; ``self.port`` and ``self.folder`` are there, and files may be written."""

    @staticmethod
    @abstractmethod
    def version() -> str: ...

    def ready(self, said: str) -> bool:  # noqa: ARG002 - for those who say it
        """Whether it can be used, given all that it printed so far."""
        return _listens(self.port)

    def cpu_seconds(self) -> float:
        times = self._measured.cpu_times()
        return float(times.user + times.system)

    def resident_bytes(self) -> int:
        return int(self._measured.memory_info().rss)

    def start(self) -> None:
        self.port = free_port()
        self._temporary = tempfile.TemporaryDirectory(prefix=f"nearcast-{self.name}-", ignore_cleanup_errors=True)
        self.folder = Path(self._temporary.name)
        said = self.folder / "said"
        with said.open("wb") as out, on_core(_server_core()):
            self._process = subprocess.Popen(self.command(), stdout=out, stderr=out, cwd=self.folder)
        self._measured = psutil.Process(self._process.pid)
        deadline = time.monotonic() + _SECONDS_TO_START
        while not self.ready(words := said.read_text(errors="replace")):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise BenchmarkError(f"{self.name} did not start: {words.strip()[-_LAST_WORDS:] or 'it said nothing'}")
            time.sleep(0.02)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(_SECONDS_TO_STOP)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._temporary is not None:
            self._temporary.cleanup()


def program(name: str) -> str | None:
    """Where it is: in the virtual environment, on the path, or where Debian puts servers."""
    beside = Path(sys.executable).parent
    return shutil.which(name, path=os.pathsep.join((str(beside), os.environ.get("PATH", ""), "/usr/sbin")))


def first_line(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stdout or done.stderr).strip().partition("\n")[0]


@contextmanager
def on_core(core: int | None) -> Iterator[None]:
    """This process, and the processes that it starts, on one core; where that cannot be said, anywhere."""
    if core is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


_ALL_CORES: Final = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def _server_core() -> int | None:
    return _ALL_CORES[0] if len(_ALL_CORES) > 1 else None


def generator_core() -> int | None:
    """Another one than the servers'; ``None`` if there is only one."""
    return _ALL_CORES[1] if len(_ALL_CORES) > 1 else None


def free_port() -> int:
    """Of the loopback."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
        return True
    return False
