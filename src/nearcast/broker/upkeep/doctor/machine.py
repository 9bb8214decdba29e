"""Disk, clock, ports."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from nearcast.broker.settings import BrokerSettings, Listener
from nearcast.broker.upkeep.doctor.findings import Finding, note, ok, problem, warning
from nearcast.journal.lock import LOCK_FILE

_LEAST_FREE: Final = 256 * 1024 * 1024
_SYNCS: Final = 20
_SLOW: Final = 0.05
"""Seconds for a write to be on disk, beyond which nobody has a fast broker."""

_PATIENCE: Final = 3.0


def holder(data: Path) -> int | None:
    """The process of the broker that works on the folder, by the kernel's list of locks: to try the lock could disturb one that starts."""
    try:
        found = (data / "journal" / LOCK_FILE).stat()
        locks = Path("/proc/locks").read_text(encoding="ascii")
    except OSError:
        return None
    where = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    for line in locks.splitlines():
        words = line.split()
        if "->" not in words and "FLOCK" in words and where in words:
            return int(words[words.index(where) - 1])
    return None


def disk(settings: BrokerSettings) -> Iterator[Finding]:
    disks: set[int] = set()
    for folder in (settings.data, settings.lake):
        there = next((each for each in (folder, *folder.absolute().parents) if each.is_dir()), Path("/"))
        if not os.access(there, os.W_OK):
            yield problem("disk", f"{there} cannot be written", "allow the broker's account to write there")
            continue
        if there.stat().st_dev in disks:
            continue
        disks.add(there.stat().st_dev)
        free = shutil.disk_usage(there).free
        if free < _LEAST_FREE:
            yield problem(
                "disk",
                f"{free / 1e6:,.0f} MB are free at {there}",
                "make room before the broker has to refuse publishes",
            )
            continue
        journal = settings.data / "journal" / "journal.sqlite"
        growth = settings.journal.retention_size - (journal.stat().st_size if journal.exists() else 0)
        if folder == settings.data and free < growth + _LEAST_FREE:
            yield warning(
                "disk",
                f"{free / 1e9:,.1f} GB are free at {there}, and the journal may grow by {growth / 1e9:,.1f} GB",
                "make room, or lower journal.retention_size",
            )
        else:
            yield ok("disk", f"{free / 1e9:,.1f} GB are free at {there}")
    yield from _speed(settings.data)


def _speed(data: Path) -> Iterator[Finding]:
    if not data.is_dir():
        return
    path = data / f".doctor.{secrets.token_hex(8)}"
    taken = []
    try:
        with path.open("xb", buffering=0) as file:
            for _ in range(_SYNCS):
                began = time.perf_counter()
                file.write(bytes(4096))
                os.fsync(file.fileno())
                taken.append(time.perf_counter() - began)
    finally:
        path.unlink(missing_ok=True)
    median = sorted(taken)[len(taken) // 2]
    said = f"a write is on disk after {1000 * median:.1f} ms (the slowest of {_SYNCS}: {1000 * max(taken):.1f} ms)"
    if median > _SLOW:
        yield warning("disk", said, "every acknowledgement waits for that: put the data folder on a faster disk")
    else:
        yield ok("disk", said)


def clock(newest: int | None) -> Iterator[Finding]:
    """``newest``: the latest time in the journal, in microseconds."""
    now = time.time_ns() // 1000
    if newest is not None and newest > now + 2_000_000:
        yield problem(
            "clock",
            f"the newest record is {(newest - now) / 1e6:,.0f} s ahead of the clock",
            "set the clock: until it catches up, times of events are wrong and retention waits",
        )
    elif newest is not None:
        yield ok("clock", "not behind the journal")
    try:
        asked = subprocess.run(
            ["timedatectl", "show", "--property=NTPSynchronized", "--value"],
            capture_output=True, text=True, check=True, timeout=_PATIENCE,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        yield note("clock", "nobody here says whether it is synchronised")
        return
    if asked.stdout.strip() == "yes":
        yield ok("clock", "synchronised")
    else:
        yield warning("clock", "it is not synchronised", "let NTP set it: time frames and tokens depend on it")


def ports(settings: BrokerSettings, running: int | None) -> Iterator[Finding]:
    for listener in settings.listen.listeners():
        name = f"{listener.protocol}{'s' if listener.tls else ''} on {listener.host}:{listener.port or 'any'}"
        if not listener.port:
            yield ok("ports", f"{name}: a free one")
        elif running is not None:
            yield _answers(listener, name)
        else:
            yield _is_free(listener, name)


def _answers(listener: Listener, name: str) -> Finding:
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(listener.host, listener.host)  # noqa: S104 - asked, not opened
    try:
        with socket.create_connection((host, listener.port), _PATIENCE):
            return ok("ports", f"{name}: answers")
    except OSError as error:
        return problem(
            "ports",
            f"{name}: the broker runs, but nobody answers ({error.strerror or error})",
            "was it started with other ports, or does it hang? See its log",
        )


def _is_free(listener: Listener, name: str) -> Finding:
    family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((listener.host, listener.port))
        except OSError as error:
            return problem("ports", f"{name}: {error.strerror or error}", "stop what holds it, or choose another port")
    return ok("ports", f"{name}: free")
