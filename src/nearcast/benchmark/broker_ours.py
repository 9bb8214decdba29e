"""nearcast's own broker as its users start it: ``nearcast serve``, journal and all."""

from __future__ import annotations

from importlib.metadata import version

from nearcast.benchmark.peers.server import Server, program


class Nearcast(Server):
    name = "nearcast"

    @staticmethod
    def available() -> str | None:
        return None if program("nearcast") else "the command nearcast is not installed"

    def command(self) -> list[str]:
        options = {"--port": str(self.port), "--http-port": "0", "--data": str(self.folder / "data")}
        return [program("nearcast") or "", "serve", *(part for option in options.items() for part in option)]

    def ready(self, said: str) -> bool:
        return "ready" in said.split()

    @staticmethod
    def version() -> str:
        return version("nearcast")
