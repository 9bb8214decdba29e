"""Memory per client, measured as the growth of a fresh process: ``python -m nearcast.benchmark.memory CLIENTS``.

What the process holds more after loading than before is divided by the number of clients: identifiers, positions,
subscriptions and indexes, allocators' losses included.  The city itself exists before and is not counted, except
for the identifiers, which the matcher keeps.
"""

from __future__ import annotations

import ctypes
import gc
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from nearcast.errors import BenchmarkError


def bytes_per_client(clients: int) -> float:
    """Start a fresh process, let it load that many clients, and ask it how much it grew."""
    done = subprocess.run(
        [sys.executable, "-m", "nearcast.benchmark.memory", str(clients)], capture_output=True, text=True, check=True
    )
    return float(json.loads(done.stdout)["bytes_per_client"])


def _resident() -> int:
    gc.collect()
    # Freed memory that the allocator keeps for later is nobody's.
    ctypes.CDLL(None).malloc_trim(0)
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise BenchmarkError("/proc/self/status does not say how large the process is")


def _measure(clients: int) -> float:
    from nearcast.benchmark.ours import Ours, batches
    from nearcast.benchmark.workload import city

    def load(count: int) -> Ours:
        world = city(count, 1024, seed=3)
        ours = Ours(world)
        ours.matcher.match_batch(batches(world.events, 1024)[0])
        return ours

    load(1_000)  # compiles everything
    world = city(clients, 1024, seed=3)
    events = batches(world.events, 1024)[0]
    world = replace(world, ids=())
    before = _resident()
    ours = Ours(replace(world, ids=tuple(f"client-{number:07d}" for number in range(clients))))
    ours.matcher.match_batch(events)
    matcher = ours.matcher
    del ours
    after = _resident()
    assert matcher is not None
    return (after - before) / clients


if __name__ == "__main__":
    print(json.dumps({"bytes_per_client": _measure(int(sys.argv[1]))}))
