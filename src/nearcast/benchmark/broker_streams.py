"""Streams of small messages through a broker: one publisher to many subscribers, or many pairs.

A publisher has a bounded number of messages under way, so that no broker need queue without limit or drop; what it
loses or reorders nevertheless is counted.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

import numpy as np

from nearcast.benchmark.broker_crowd import Crowd, Link
from nearcast.benchmark.broker_frames import Numbers
from nearcast.benchmark.broker_laps import Lane, Lap, Watch
from nearcast.benchmark.broker_packets import PUBACK, PUBLISH, SUBACK, Stamps, acknowledgements
from nearcast.benchmark.peers.server import Server
from nearcast.benchmark.plane import Floats

PAYLOAD: Final = 128
PATIENCE: Final = 3.0
_PAUSE: Final = 1e-4  # the generator reads more at once, and stays well below a whole core
_BREATH: Final = 2e-5
_PACED_BLOCK: Final = 4096


@dataclass(frozen=True, slots=True)
class Shape:
    publishers: int
    subscribers: int
    """Of each publisher."""
    qos: int
    window: int
    """Messages of one publisher under way at most."""
    block: int
    """Messages that are sent together."""


FAN_OUT: Final = Shape(publishers=1, subscribers=30, qos=0, window=512, block=16)
# A server that joins writes gains by every message that waits; with few under way it cannot (measured with 1 and with
# 512 under way, deliveries per second of the server's core: nearcast 80 k and 1.8 M, Mosquitto 102 k and 199 k).
FAN_OUT_SHALLOW: Final = Shape(publishers=1, subscribers=30, qos=0, window=4, block=1)
PAIRS: Final = Shape(publishers=10, subscribers=1, qos=0, window=256, block=16)
PAIRS_ACKNOWLEDGED: Final = Shape(publishers=10, subscribers=1, qos=1, window=100, block=10)


@dataclass(frozen=True, slots=True)
class Latencies:
    """Milliseconds from the moment at which a message was due to its arrival."""

    rate: float
    median: float
    p99: float
    differing: int


class Streams(Lane):
    """Message ``n`` of publisher ``p`` must reach each of its subscribers, once and after message ``n - 1``."""

    def __init__(self, server: Server, crowd: Crowd, shape: Shape) -> None:
        parameters = {
            "publishers": shape.publishers,
            "subscribers": shape.subscribers,
            "payload_bytes": PAYLOAD,
            "qos": shape.qos,
            "in_flight": shape.window,
            "mqtt": "5.0" if server.dialect.level == 5 else "3.1.1",
        }
        super().__init__(server, parameters)
        self.metric = "fanout_deliveries_per_second" if shape.subscribers > 1 else "one_to_one_messages_per_second"
        self.shape, self._crowd = shape, crowd
        topics = [f"bench/{self.metric}/{shape.qos}/{number}" for number in range(shape.publishers)]
        self._publishers = crowd.connect([f"publisher-{topic}" for topic in topics])
        wanted = topics * shape.subscribers
        receivers = crowd.connect([f"subscriber-{number}-{shape.qos}-{topic}" for number, topic in enumerate(wanted)])
        crowd.ask(
            [
                (link, crowd.dialect.subscribe([topic], shape.qos))
                for link, topic in zip(receivers, wanted, strict=True)
            ],
            SUBACK,
        )
        self._stream = {link.number: number % shape.publishers for number, link in enumerate(receivers)}
        self._stamps = [Stamps(crowd.dialect, topic, PAYLOAD, shape.block, shape.qos) for topic in topics]
        self._paced = [Stamps(crowd.dialect, topic, PAYLOAD, _PACED_BLOCK, shape.qos) for topic in topics]
        self._sent = [0] * shape.publishers
        self._received = [0] * shape.publishers
        self._next = dict.fromkeys(self._stream, 0)
        self._disordered = 0
        self._due: tuple[float, float, list[int]] | None = None
        self._waited: list[Floats] = []

    def lap(self, seconds: float) -> Lap:
        crowd, shape = self._crowd, self.shape
        crowd.arrived = self._arrived
        self._disordered = 0
        before = sum(self._received)
        watch = Watch(self.server)
        deadline = watch.started + seconds
        while time.perf_counter() < deadline:
            for stream, stamps in enumerate(self._stamps):
                while self._under_way(stream) <= shape.window - shape.block:
                    crowd.send(self._publishers[stream], stamps.take(self._sent[stream]))
                    self._sent[stream] += shape.block
            crowd.poll(0.05)
            time.sleep(_PAUSE)
        lost = self._drain()
        return watch.lap(sum(self._received) - before - lost, lost + self._disordered)

    def paced(self, rate: float, seconds: float) -> Latencies:
        """At ``rate`` messages per second, whatever the broker makes of it."""
        crowd, streams = self._crowd, self.shape.publishers
        crowd.arrived = self._arrived
        self._disordered, self._waited = 0, []
        first = list(self._sent)
        started = time.perf_counter()
        self._due = started, rate / streams, first
        while (now := time.perf_counter()) - started < seconds:
            for stream, stamps in enumerate(self._paced):
                # The streams take turns, so that messages come one by one.
                due = first[stream] + int((now - started) * rate / streams + 1 - stream / streams)
                if count := min(due - self._sent[stream], _PACED_BLOCK):
                    crowd.send(self._publishers[stream], stamps.take(self._sent[stream], count))
                    self._sent[stream] += count
            crowd.poll(0.0)
            # Whoever spins all the time is made to wait when others want the core; this costs 0.1 ms at most.
            time.sleep(_BREATH)
        lost = self._drain()
        self._due = None
        waited = 1e3 * np.concatenate([*self._waited, np.zeros(0)])
        median, p99 = np.percentile(waited, (50, 99)) if len(waited) else (np.inf, np.inf)
        return Latencies(rate, float(median), float(p99), lost + self._disordered)

    def _under_way(self, stream: int) -> float:
        under_way = self._sent[stream] - self._received[stream] / self.shape.subscribers
        if self.shape.qos:
            under_way = max(under_way, self._sent[stream] - self._publishers[stream].acknowledged)
        return under_way

    def _arrived(self, link: Link, numbers: Numbers, identifiers: Numbers) -> None:
        now = time.perf_counter()
        count, expected = len(numbers), self._next[link.number]
        stream = self._stream[link.number]
        if numbers[0] != expected or (count > 1 and (np.diff(numbers) != 1).any()):
            self._disordered += 1
        self._next[link.number] = expected + count
        self._received[stream] += count
        if self.shape.qos:
            self._crowd.send(link, acknowledgements(identifiers))
        if self._due is not None:
            started, rate, first = self._due
            due = started + (numbers.astype(np.float64) - first[stream] + stream / self.shape.publishers) / rate
            self._waited.append(now - due)

    def _drain(self) -> int:
        """Wait for the rest; how many never came?  They count as come, so that the next lap finds a clean start."""
        deliveries = self.shape.subscribers * sum(self._sent)
        missing = deliveries - sum(self._received)
        self._crowd.hope(PUBLISH, int(self._crowd.tally[PUBLISH]) + missing, PATIENCE)
        if self.shape.qos:
            self._crowd.wait(PUBACK, int(self._crowd.tally[PUBACK]) + sum(self._unacknowledged()))
        lost = deliveries - sum(self._received)
        for stream, sent in enumerate(self._sent):
            self._received[stream] = sent * self.shape.subscribers
        for number, stream in self._stream.items():
            self._next[number] = self._sent[stream]
        return max(0, lost)

    def _unacknowledged(self) -> list[int]:
        links = zip(self._sent, self._publishers, strict=True)
        return [sent - publisher.acknowledged for sent, publisher in links]
