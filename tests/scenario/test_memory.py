"""A run takes the memory of its clients, not of its length: records are streamed, and nobody remembers everything."""

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import json, resource, sys
from nearcast.scenario.reading import read
from nearcast.scenario.simulation import simulate
from pathlib import Path
changes = {"clients.number": 1_000, "world.side": "2500 m", "world.points": 60, "run.duration": sys.argv[1]}
changes["workload.1.rate"] = "0.3/s"
summary = simulate(read("city-10000", changes), 1, out=Path(sys.argv[2]))
print(json.dumps([resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, summary.counts["messages"]]))
"""


def run(duration: str, out: Path) -> tuple[float, int]:
    finished = subprocess.run(
        [sys.executable, "-c", PROGRAM, duration, str(out)], capture_output=True, text=True, check=True, timeout=300
    )
    mebibytes, messages = json.loads(finished.stdout)
    return mebibytes, messages


def test_four_times_as_long_takes_no_more_memory(tmp_path: Path) -> None:
    short, few = run("30 s", tmp_path / "short")
    long, many = run("120 s", tmp_path / "long")
    assert many > 3.5 * few > 50_000
    # What is written in the meantime would alone take more than a hundred, kept as Python's objects.
    assert long - short < 60
