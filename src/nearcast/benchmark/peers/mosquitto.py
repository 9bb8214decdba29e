"""Eclipse Mosquitto, with nothing on disk and nothing held back: its fastest form."""

from __future__ import annotations

from nearcast.benchmark.peers.server import Server, first_line, program

_SETTINGS = """\
listener {port} 127.0.0.1
allow_anonymous true
persistence false
log_type none
set_tcp_nodelay true
max_inflight_messages 0
max_queued_messages 0
"""


class Mosquitto(Server):
    name = "mosquitto"

    @staticmethod
    def available() -> str | None:
        return None if program("mosquitto") else "mosquitto is not installed"

    def command(self) -> list[str]:
        settings = self.folder / "mosquitto.conf"
        settings.write_text(_SETTINGS.format(port=self.port))
        return [program("mosquitto") or "", "-c", str(settings)]

    @staticmethod
    def version() -> str:
        return first_line(program("mosquitto") or "", "-h").rpartition(" ")[2]
