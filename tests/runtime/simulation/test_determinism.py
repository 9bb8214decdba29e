"""The same seed is the same run: in any process, whatever the hash seed is, and whoever watches."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("small_world.py")


def digest(hash_seed: str, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, str(PROGRAM), *arguments],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout


def test_a_run_is_the_same_in_every_process_and_under_every_eye() -> None:
    plain = digest("0")
    # Everything that can happen did.
    for outcome in ("received", "no coverage", "transmission lost", "queue full", "cell overloaded", "receiver down"):
        assert f"\n{outcome}: " in plain
    assert digest("1", "watched") == plain
