"""NATS with a JetStream that is on disk before it acknowledges (``sync_interval: always``, from 2.10 on)."""

from __future__ import annotations

import re
from typing import Final

from nearcast.benchmark.peers.server import Server, first_line, program

_OLDEST: Final = (2, 10)
_SETTINGS: Final = """\
listen: "127.0.0.1:{port}"
ping_interval: "1h"
jetstream {{ store_dir: "{folder}/jetstream", sync_interval: always }}
"""


class Nats(Server):
    name = "nats-jetstream"

    @staticmethod
    def available() -> str | None:
        if program("nats-server") is None:
            return "nats-server is not installed"
        found = re.search(r"v(\d+)\.(\d+)", _version())
        if found is None or (int(found[1]), int(found[2])) < _OLDEST:
            return f"{_version()} does not know sync_interval: always; scripts/install-peers builds a newer one with go"
        return None

    def command(self) -> list[str]:
        settings = self.folder / "nats.conf"
        settings.write_text(_SETTINGS.format(port=self.port, folder=self.folder))
        return [program("nats-server") or "", "-c", str(settings)]

    @staticmethod
    def version() -> str:
        return _version().rpartition("v")[2]


def _version() -> str:
    return first_line(program("nats-server") or "", "--version")
