"""What a server compiles before it takes connections is all that matching will need."""

import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("compilation_child.py")


def test_nothing_is_left_to_compile_for_a_matcher_at_work() -> None:
    """In a process of its own: others may have compiled something here already."""
    done = subprocess.run([sys.executable, str(PROGRAM)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
