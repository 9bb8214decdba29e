"""Durable publishes: acknowledged only when on disk.  nearcast at QoS 1, NATS JetStream with ``sync_interval: always``.

Each publisher has a fixed number of messages in flight: it sends as many as were just acknowledged.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from abc import abstractmethod
from typing import Final

from nearcast.benchmark.broker_crowd import Crowd, Link
from nearcast.benchmark.broker_laps import Lane, Lap, Watch
from nearcast.benchmark.broker_packets import PUBACK, Stamps
from nearcast.benchmark.peers.server import Server

PAYLOAD: Final = 128
_SUBJECT: Final = "durable.bench"
_MOST: Final = 256


class Durable(Lane):
    metric = "durable_publishes_per_second"

    def __init__(self, server: Server, crowd: Crowd, publishers: int, in_flight: int) -> None:
        super().__init__(
            server,
            {"publishers": publishers, "in_flight": in_flight, "payload_bytes": PAYLOAD, "fsync_microseconds": 0},
        )
        self._crowd, self._in_flight = crowd, in_flight
        self._links = self.connect(publishers)
        for link in self._links:
            link.acknowledged = 0
        self._sent = [0] * publishers

    @abstractmethod
    def connect(self, publishers: int) -> list[Link]: ...

    @abstractmethod
    def packets(self, publisher: int, first: int, count: int) -> bytes: ...

    def lap(self, seconds: float) -> Lap:
        self.parameters["fsync_microseconds"] = round(fsync_microseconds())
        before = sum(self._sent)
        watch = Watch(self.server)
        while time.perf_counter() - watch.started < seconds:
            for number, link in enumerate(self._links):
                room = self._in_flight - (self._sent[number] - link.acknowledged)
                if room:
                    self._crowd.send(link, self.packets(number, self._sent[number], room))
                    self._sent[number] += room
            self._crowd.poll(0.05)
        under_way = sum(self._sent) - sum(link.acknowledged for link in self._links)
        self._crowd.wait(PUBACK, int(self._crowd.tally[PUBACK]) + under_way)
        return watch.lap(sum(self._sent) - before)


class DurableMqtt(Durable):
    def connect(self, publishers: int) -> list[Link]:
        dialect = self._crowd.dialect
        self._stamps = [Stamps(dialect, f"durable/{number}", PAYLOAD, _MOST, qos=1) for number in range(publishers)]
        return self._crowd.connect([f"durable-{self._in_flight}-{number}" for number in range(publishers)])

    def packets(self, publisher: int, first: int, count: int) -> bytes:
        return self._stamps[publisher].take(first, count)


class DurableNats(Durable):
    def connect(self, publishers: int) -> list[Link]:
        self._publishes = [
            f"PUB {_SUBJECT} {_inbox(number)} {PAYLOAD}\r\n".encode() + bytes(PAYLOAD) + b"\r\n"
            for number in range(publishers)
        ]
        links = [self._crowd.open() for _ in range(publishers)]
        for number, link in enumerate(links):
            # An inbox for each: acknowledgements go to the publisher that waits for them.
            greeting = f'CONNECT {{"verbose":false,"pedantic":false}}\r\nSUB {_inbox(number)} 1\r\n'
            self._crowd.send(link, greeting.encode())
        stream = json.dumps({"name": "BENCH", "subjects": [_SUBJECT], "storage": "file", "num_replicas": 1})
        creation = f"PUB $JS.API.STREAM.CREATE.BENCH {_inbox(0)} {len(stream)}\r\n{stream}\r\n"
        self._crowd.ask([(links[0], creation.encode())], PUBACK)
        return links

    def packets(self, publisher: int, first: int, count: int) -> bytes:  # noqa: ARG002 - JetStream counts by itself
        return self._publishes[publisher] * count


def fsync_microseconds() -> float:
    """How long this disk takes to keep 4 KiB, right now: the median of a few."""
    found = []
    with tempfile.NamedTemporaryFile(prefix="nearcast-fsync-") as file:
        for _ in range(20):
            file.write(bytes(4096))
            file.flush()
            started = time.perf_counter()
            os.fsync(file.fileno())
            found.append(1e6 * (time.perf_counter() - started))
    return statistics.median(found)


def _inbox(publisher: int) -> str:
    return f"_INBOX.bench.{publisher}"
