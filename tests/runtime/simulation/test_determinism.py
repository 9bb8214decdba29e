"""The same seed is the same run: in any process, whatever the hash seed is, and whoever watches."""

from pathlib import Path

from tests.child import run_python

PROGRAM = Path(__file__).with_name("small_world.py")


def digest(hash_seed: str, *arguments: str) -> str:
    return run_python(str(PROGRAM), *arguments, hash_seed=hash_seed)


def test_a_run_is_the_same_in_every_process_and_under_every_eye() -> None:
    plain = digest("0")
    # Everything that can happen did.
    for outcome in ("received", "no coverage", "transmission lost", "queue full", "cell overloaded", "receiver down"):
        assert f"\n{outcome}: " in plain
    assert digest("1", "watched") == plain
