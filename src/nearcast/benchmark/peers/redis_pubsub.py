"""Redis over TCP, for positions (GEOADD, GEOSEARCH) and messages (PUBLISH); nothing on disk."""

from __future__ import annotations

import re

from nearcast.benchmark.peers.server import Server, first_line, program


class RedisPubSub(Server):
    name = "redis"

    @staticmethod
    def available() -> str | None:
        return None if program("redis-server") else "redis-server is not installed"

    def command(self) -> list[str]:
        settings = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "save": "",
            "appendonly": "no",
            "dir": str(self.folder),
            "client-output-buffer-limit": "pubsub 0 0 0",
        }
        return [
            program("redis-server") or "",
            *(part for name, value in settings.items() for part in (f"--{name}", value)),
        ]

    @staticmethod
    def version() -> str:
        found = re.search(r"v=(\S+)", first_line(program("redis-server") or "", "--version"))
        return found[1] if found else "unknown"
