"""A real ``nearcast serve`` in a process of its own, which can fall, be told to stop, and be started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import PATIENCE

COMMAND = Path(sys.executable).with_name("nearcast")


class ServedBroker:
    """Settings and data in one folder, served by one process after the other, on the same port once it has one.

    On an event loop, ``start``, ``kill`` and ``stop`` are for ``asyncio.to_thread`` if others are to go on meanwhile.
    """

    def __init__(self, folder: Path, settings: str = "") -> None:
        self.data = folder / "data"
        self.addresses: dict[str, tuple[str, int]] = {}
        """Of each protocol (mqtt, mqtts, websocket, websockets, http), while it is ready."""

        self.port = 0
        """Of MQTT; kept when it falls."""

        self.said: list[str] = []
        """Lines of standard error, of all lives."""

        self._settings = folder / "settings.toml"
        self._settings.write_text(settings)
        self._process: subprocess.Popen[str] | None = None
        self._reading: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None

    @property
    def url(self) -> str:
        return f"mqtt://127.0.0.1:{self.port}"

    @property
    def http(self) -> str:
        return "http://{}:{}".format(*self.addresses["http"])

    @property
    def certificate(self) -> Path:
        """The one that it has made for itself."""
        return self.data / "certificate.pem"

    def start(self) -> None:
        """Until it says that it is ready."""
        command = [str(COMMAND), "serve", "--port", str(self.port), "--http-port", "any"]
        process = self._process = subprocess.Popen(
            [*command, "--data", str(self.data), "--config", str(self._settings)],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "NO_COLOR": "1"},
        )
        ready = threading.Event()
        self._reading = threading.Thread(target=self._read, args=(process, ready), daemon=True)
        self._reading.start()
        if not ready.wait(PATIENCE) or not self.addresses:
            self.kill()
            raise AssertionError("the broker did not start:\n" + "\n".join(self.said))
        self.port = self.addresses.get("mqtt", ("", 0))[1]

    def _read(self, process: subprocess.Popen[str], ready: threading.Event) -> None:
        assert process.stderr is not None
        addresses: dict[str, tuple[str, int]] = {}
        for line in map(str.rstrip, process.stderr):
            self.said.append(line)
            protocol, _, where = line.partition(" on ")
            if line == "ready":
                self.addresses = addresses
                ready.set()
            elif where and protocol.isalpha() and "://" not in where:  # an address of a page is for people
                host, _, port = where.rpartition(":")
                addresses[protocol] = host, int(port)
        ready.set()  # it has ended

    def kill(self) -> int:
        """As the power would: SIGKILL.  Its exit status."""
        return self._end(signal.SIGKILL)

    def reload(self, settings: str | None = None) -> None:
        """As an operator would: SIGHUP, perhaps with other settings in the file."""
        assert self._process is not None, "it does not run"
        if settings is not None:
            self._settings.write_text(settings)
        self._process.send_signal(signal.SIGHUP)

    def stop(self) -> int:
        """As an operator would: SIGTERM.  Its exit status."""
        return self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> int:
        process, self._process, self.addresses = self._process, None, {}
        assert process is not None, "it does not run"
        process.send_signal(how)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self._reading is not None:
            self._reading.join(PATIENCE)
        assert process.stderr is not None
        process.stderr.close()
        return process.returncode


@contextmanager
def served(folder: Path, settings: str = "") -> Iterator[ServedBroker]:
    broker = ServedBroker(folder, settings)
    broker.start()
    try:
        yield broker
    finally:
        if broker.is_running:
            broker.stop()
