"""aMQTT, the MQTT 3.1.1 broker in Python."""

from __future__ import annotations

import importlib.util
import json

from nearcast.benchmark.broker_packets import Dialect
from nearcast.benchmark.peers.server import Server, program


class Amqtt(Server):
    name = "amqtt"
    dialect = Dialect(4)

    @staticmethod
    def available() -> str | None:
        if importlib.util.find_spec("amqtt") is None or program("amqtt") is None:
            return "the Python package amqtt is not installed"
        return None

    def command(self) -> list[str]:
        settings = {
            "listeners": {"default": {"type": "tcp", "bind": f"127.0.0.1:{self.port}", "max_connections": 0}},
            "plugins": {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}},
        }
        path = self.folder / "amqtt.yaml"
        path.write_text(json.dumps(settings))  # which is YAML too
        return [program("amqtt") or "", "-c", str(path)]

    @staticmethod
    def version() -> str:
        from importlib.metadata import version

        return version("amqtt")
