"""A real broker in a process of its own, which can be killed and started again."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

NEARCAST: Final = Path(sys.executable).with_name("nearcast")
PATIENCE: Final = 60
"""Seconds; the machine may be busy."""


class ServedBroker:
    """``nearcast serve``, always on the same port once it has one."""

    def __init__(self, folder: Path, settings: str = "") -> None:
        self._folder: Final = folder
        self._settings: Final = folder / "settings.toml"
        self._settings.write_text(settings)
        self._process: subprocess.Popen[str] | None = None
        self._listener: threading.Thread | None = None
        self.ports: dict[str, int] = {}
        """Of each protocol: mqtt, mqtts, websocket, websockets, http."""

        self.log: list[str] = []

    @property
    def url(self) -> str:
        return f"mqtt://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        return self.ports.get("mqtt", 0)

    @property
    def certificate(self) -> Path:
        """The one that it has made for itself."""
        return self._folder / "data" / "certificate.pem"

    def start(self) -> None:
        command = [str(NEARCAST), "serve", "--port", str(self.port), "--http-port", "0"]
        command += ["--data", str(self._folder / "data"), "--config", str(self._settings)]
        self._process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env={**os.environ, "NO_COLOR": "1"}
        )
        ready = threading.Event()
        self._listener = threading.Thread(target=self._listen, args=(self._process, ready), daemon=True)
        self._listener.start()
        if not ready.wait(PATIENCE) or self._process.poll() is not None:
            self.stop()
            raise AssertionError("the broker did not start:\n" + "\n".join(self.log))

    def _listen(self, process: subprocess.Popen[str], ready: threading.Event) -> None:
        assert process.stderr is not None
        for line in process.stderr:
            self.log.append(line.rstrip())
            found = re.match(r"(\w+) on .*:(\d+)$", line)
            if found:
                self.ports[found[1]] = int(found[2])
            if line.rstrip() == "ready":
                ready.set()
        ready.set()  # it has ended

    def kill(self) -> None:
        """As a power failure would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if self._listener is not None:
                self._listener.join(PATIENCE)
            assert process.stderr is not None
            process.stderr.close()


@contextmanager
def served(folder: Path, settings: str = "") -> Iterator[ServedBroker]:
    broker = ServedBroker(folder, settings)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()
