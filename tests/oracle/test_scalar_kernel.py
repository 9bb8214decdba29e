"""Where the processor has no AVX-512, a plain loop takes the place of the vector step; its answers are the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


def test_the_plain_loop_gives_the_answers_of_the_definition(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "NEARCAST_SCALAR": "1",
        "NUMBA_CACHE_DIR": str(tmp_path),  # compiled code of the two kinds must not meet in one cache
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
    }
    answer = subprocess.run(
        [sys.executable, "-W", "error", str(HERE / "scalar_check.py")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert answer.stdout.startswith("plain loop:")
