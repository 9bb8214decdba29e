"""Erases, killed at one step after the other, of which every so manieth is tried, and each time goes on: ``PLANTED WORK USER EVERY NEEDLE...``.

Prints how many steps were tried; fails where something is left, or where what is left differs from the end of an erasure that
nobody interrupted.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from tests.broker.erasing.markers import found_below

from nearcast.broker.erasing.offline import offline
from nearcast.broker.erasing.plan import Plan, forget_plan, read_plan
from nearcast.broker.settings import BrokerSettings
from nearcast.journal import store
from nearcast.journal.identities import Identities

KEPT = "kept.txt"


def main(planted: Path, work: Path, user: str, every: int, needles: list[str]) -> None:
    steps = _forked(lambda: _whole(planted, work, user, needles))
    assert steps == 0, "without interruption"
    # How many steps there are differs: what waits for the disk is written together as threads take turns.
    for tried, step in enumerate(count(1, every)):
        _fresh(planted, work)
        killed = _forked(lambda at=step: _erase(work, user, at))
        assert killed in {0, -signal.SIGKILL}, (step, killed)
        assert _forked(lambda: _finish(work, user, needles)) == 0, f"after step {step}"
        if not killed:
            print(tried)
            return


def _fresh(planted: Path, work: Path) -> None:
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(planted, work, ignore=shutil.ignore_patterns("reserve"))


def _whole(planted: Path, work: Path, user: str, needles: list[str]) -> None:
    _fresh(planted, work)
    _erase(work, user, 0)
    forget_plan(work)
    assert found_below(work, tuple(needles)) == {}
    (work.parent / KEPT).write_text(_lake(work))


def _finish(work: Path, user: str, needles: list[str]) -> None:
    _erase(work, user, 0)
    forget_plan(work)
    assert found_below(work, tuple(needles)) == {}, found_below(work, tuple(needles))
    assert (work.parent / KEPT).read_text() == _lake(work)


def _lake(work: Path) -> str:
    files = sorted((work / "lake").glob("*/date=*/*.parquet"))
    return repr([(file.name, pq.ParquetFile(file).read().to_pylist()) for file in files])


def _erase(work: Path, user: str, step: int) -> None:
    """At which step it kills itself, if it has as many."""
    steps = 0

    def one_more(*_: Any) -> None:
        nonlocal steps
        steps += 1
        if steps == step:
            os.kill(os.getpid(), signal.SIGKILL)

    # Every statement of SQL is a step, and so is every change of a name and every sync.
    for holder, name in ((Path, "replace"), (Path, "unlink"), (os, "fsync"), (Identities, "erase_user")):
        _watch(holder, name, one_more)
    real = vars(store)["open_for_writing"]

    def opened(*arguments: Any) -> Any:
        connection = real(*arguments)
        connection.set_trace_callback(one_more)
        return connection

    vars(store)["open_for_writing"] = opened
    with offline(BrokerSettings(data=work), 0, lambda *_: None) as erasure:
        erasure.carry_out(read_plan(work) or Plan(user=user))


def _watch(holder: Any, name: str, told: Any) -> None:
    real = getattr(holder, name)

    def watched(*arguments: Any, **more: Any) -> Any:
        told()
        done = real(*arguments, **more)
        told()
        return done

    setattr(holder, name, watched)


def _forked(function: Any) -> int:
    """In a process of its own: its status, as of ``subprocess``."""
    child = os.fork()
    if not child:
        try:
            function()
        except BaseException as error:  # noqa: BLE001 - told, and over
            print(repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5:])
