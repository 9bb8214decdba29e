"""The other end of ``ChildProcess`` in the live demos: a program that is told its settings, answers in lines, and fails in one."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import msgspec

from nearcast.errors import NearcastError

S = TypeVar("S", bound=msgspec.Struct)


def answer(account: msgspec.Struct) -> None:
    """One line, at once."""
    sys.stdout.buffer.write(msgspec.json.encode(account) + b"\n")
    sys.stdout.buffer.flush()


def run_told(program: Callable[[S], Coroutine[Any, Any, None]], settings: type[S]) -> int:
    """Run it with the settings of the command line; the exit status."""
    try:
        asyncio.run(program(msgspec.json.decode(sys.argv[1], type=settings)))
    except NearcastError as error:
        print(error, file=sys.stderr)
        return 1
    return 0
