"""A process of the demo, with a folder of its own: both are gone when the demo ends."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

_ENDING: Final = 10.0
"""Seconds of patience."""

_LONGEST: Final = 16 * 1024
"""Bytes of a line of its log."""


class ChildProcess:
    """Python that runs a program of ours."""

    def __init__(self, heard: Callable[[str], None] | None = None) -> None:
        """``heard`` is told what it says on stderr, line by line."""
        self.log: Final[deque[str]] = deque(maxlen=20)
        self.silence: asyncio.Task[None]
        """Done when its stderr has ended, which everything that it has started holds as well."""

        self._heard: Final = heard
        self._folder: TemporaryDirectory[str]
        self._process: asyncio.subprocess.Process

    @property
    def folder(self) -> Path:
        return Path(self._folder.name)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def stdin(self) -> asyncio.StreamWriter:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def stdout(self) -> asyncio.StreamReader:
        assert self._process.stdout is not None
        return self._process.stdout

    @property
    def last_words(self) -> str:
        """For the end of an error message."""
        return f": {self.log[-1]}" if self.log else ""

    async def start(self, arguments: Callable[[Path], Sequence[str]]) -> None:
        """With these, which may name the folder."""
        self._folder = TemporaryDirectory(prefix="nearcast-demo-")
        try:
            # A session of its own: Ctrl-C is for the demo, which then ends the process in good order.
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, *arguments(self.folder)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
                env={**os.environ, "TMPDIR": self._folder.name},
            )
        except BaseException:
            self._folder.cleanup()
            raise
        self.silence = asyncio.create_task(self._read())

    async def end(self, *, by_itself: bool) -> None:
        """It and all that it has started, by force if it must be; ``by_itself``: it ends when it has nothing more to read."""
        self.stdin.close()
        try:
            if not (by_itself and await self._gone()):
                self._kill(signal.SIGTERM)
                if not await self._gone():
                    self._kill(signal.SIGKILL)
                    await self._gone()
            with suppress(TimeoutError):
                async with asyncio.timeout(_ENDING):
                    await self.stdout.read()
        finally:
            self.silence.cancel()
            self._folder.cleanup()

    async def _read(self) -> None:
        assert self._process.stderr is not None
        rest = b""
        # Not by lines: one that is longer than the buffer of the stream would be an error.
        while chunk := await self._process.stderr.read(_LONGEST):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._note(line)
            rest = rest[:_LONGEST]
        if rest:
            self._note(rest)

    def _note(self, line: bytes) -> None:
        text = line[:_LONGEST].decode(errors="replace").rstrip()
        self.log.append(text)
        if self._heard is not None:
            self._heard(text)

    def _kill(self, what: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, what)

    async def _gone(self) -> bool:
        ended = asyncio.ensure_future(self._process.wait())
        _, pending = await asyncio.wait([self.silence, ended], timeout=_ENDING)
        ended.cancel()
        return not pending
