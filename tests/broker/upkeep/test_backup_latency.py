"""A backup does not hold up the broker: how long acknowledgements take with one and without, side by side.

``HYPOTHESIS_PROFILE=thorough pytest -n 0 -s tests/broker/upkeep/test_backup_latency.py`` prints the figures of docs/how-to/back-up-and-monitor.md.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import statistics
import time
from pathlib import Path

from mqtt5 import PubAckPacket, PublishPacket, QoS
from tests.broker.talker import run, talking
from tests.broker.upkeep.commands import nearcast
from tests.effort import campaign
from tests.served import ServedBroker, served

MEGABYTES = 150
ROUNDS = 5
LARGE = 250_000
IN_FLIGHT = 50


async def _fill(broker: ServedBroker) -> None:
    payload = random.Random(1).randbytes(LARGE)
    async with talking(broker, "filler") as filler:
        count = MEGABYTES * 1_000_000 // LARGE
        for number in range(count):
            filler.publish("bulk", payload, qos=QoS.AT_LEAST_ONCE, packet_id=number + 1)
            if number >= IN_FLIGHT:
                await filler.next(PubAckPacket)
        for _ in range(IN_FLIGHT):
            await filler.next(PubAckPacket)


async def _latencies(broker: ServedBroker, ended: asyncio.Event, least: int) -> list[float]:
    """Seconds from publish to acknowledgement, one after the other, until it has ended and there are enough."""
    taken: list[float] = []
    async with talking(broker, "prober") as prober:
        while not ended.is_set() or len(taken) < least:
            began = time.perf_counter()
            prober.send(PublishPacket("probe", b"x" * 100, qos=QoS.AT_LEAST_ONCE, packet_id=1))
            await prober.next(PubAckPacket)
            taken.append(time.perf_counter() - began)
    return taken


def _percentile(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


@campaign
def test_acknowledgements_go_on_during_a_backup(tmp_path: Path) -> None:
    async def story() -> None:
        alone: list[list[float]] = []
        beside: list[list[float]] = []
        seconds: list[float] = []
        with served(tmp_path) as broker:
            await _fill(broker)
            for number in range(ROUNDS):
                ended = asyncio.Event()
                measuring = asyncio.create_task(_latencies(broker, ended, 0))
                began = time.perf_counter()
                await nearcast("backup", tmp_path / f"backup{number}", "--data", broker.data)
                seconds.append(time.perf_counter() - began)
                ended.set()
                beside.append(await measuring)
                ended = asyncio.Event()
                ended.set()
                alone.append(await _latencies(broker, ended, len(beside[-1])))  # as many, right afterwards
                await asyncio.to_thread(shutil.rmtree, tmp_path / f"backup{number}")
        for part in (0.5, 0.99, 1.0):
            without = statistics.median(_percentile(each, part) for each in alone)
            during = statistics.median(_percentile(each, part) for each in beside)
            name = "slowest" if part == 1.0 else f"p{100 * part:g}"
            print(
                f"{name}: {1000 * without:.2f} ms without, {1000 * during:.2f} ms during a backup: {during / without:.2f} times"
            )
        print(
            f"backups of {MEGABYTES} MB: {statistics.median(seconds):.1f} s; acknowledgements: {[len(each) for each in beside]}"
        )
        assert min(map(len, beside)) > 50, "the broker stood still"
        # Loosely: machines have other work; a broker that waits for the whole backup is far beyond it.
        assert statistics.median(max(each) for each in beside) < statistics.median(seconds) / 2

    run(story())
