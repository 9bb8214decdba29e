"""What a connection costs that says nothing: how much the server grows by it."""

from __future__ import annotations

import resource
import time
from typing import Final

from nearcast.benchmark.broker_crowd import Crowd
from nearcast.benchmark.broker_packets import SUBACK
from nearcast.benchmark.peers.server import Server
from nearcast.benchmark.report import Measurement

_SPARE_FILES: Final = 500
_WARMING: Final = 100
_MEBIBYTE: Final = 2**20


def allow_files() -> int:
    """Let this process, and the servers that it starts, open as many files as the system allows; how many?"""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


def idle(server: Server, connections: int) -> Measurement:
    """Connect, subscribe to one topic each, say nothing more (keep-alive 0)."""
    possible = min(connections, allow_files() - _SPARE_FILES)
    with Crowd(server.port, payload=0, dialect=server.dialect) as crowd:
        # What the server sets up once, for the first ones, is not the price of a connection.
        probe, *_ = crowd.connect([f"first-{number}" for number in range(_WARMING)])
        before = server.resident_bytes()
        started = time.perf_counter()
        links = crowd.connect([f"idle-{number}" for number in range(possible)])
        seconds = time.perf_counter() - started
        crowd.ask([(link, crowd.dialect.subscribe([f"idle/{number}"])) for number, link in enumerate(links)], SUBACK)
        crowd.settle(probe)
        after = server.resident_bytes()
    parameters = {
        "connections": possible,
        "subscriptions": possible,
        "total_mebibytes": round(after / _MEBIBYTE, 1),
        "connections_per_second": round(possible / seconds),
    }
    return Measurement(server.name, "idle_connection_bytes", "B", (after - before) / possible, parameters)
