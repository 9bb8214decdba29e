"""A real broker in a process of its own, for tests that are on no event loop, or on several."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.serve_process import ServeProcess


class ServedBroker:
    """Settings and data in one folder; always on the same port once it has one."""

    def __init__(self, folder: Path, settings: str = "") -> None:
        file = folder / "settings.toml"
        file.write_text(settings)
        self.process = ServeProcess(folder / "data", "--config", str(file))
        self.ports: dict[str, int] = {}
        """Of each protocol: mqtt, mqtts, websocket, websockets, http."""

    @property
    def url(self) -> str:
        return f"mqtt://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        return self.ports.get("mqtt", 0)

    @property
    def certificate(self) -> Path:
        """The one that it has made for itself."""
        return self.process.data / "certificate.pem"

    @property
    def log(self) -> list[str]:
        return self.process.said

    def start(self) -> None:
        self.process.start(self.port)
        self.ports = {protocol: port for protocol, (_, port) in self.process.addresses.items()}

    def kill(self) -> None:
        """As a power failure would."""
        self.process.kill()

    def stop(self) -> None:
        if self.process.is_running:
            self.process.stop()


@contextmanager
def served(folder: Path, settings: str = "") -> Iterator[ServedBroker]:
    broker = ServedBroker(folder, settings)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()
