"""Another Python, for what depends on the process: hash seeds, what is loaded, how much memory is used."""

from __future__ import annotations

import os
import subprocess
import sys


def run_python(*arguments: str, hash_seed: str = "0", **environment: str) -> str:
    """What Python prints when it is started with these arguments (``-c``, program, ...)."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded_by(statement: str) -> set[str]:
    """The modules that are there after it."""
    return set(run_python("-c", f"{statement}\nimport sys; print(*sys.modules)").split())
