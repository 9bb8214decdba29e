"""Who asks the demo's pipeline (``analysis``): starts it, and ends it with the JVM and all that belongs to it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Final, Self

from nearcast.errors import JobFailed, SetupError
from nearcast.model.geometry import Point
from nearcast.model.time import Instant

_PROGRAM: Final = "nearcast.cli.demo.analysis"
_STARTING: Final = 180.0
_ANSWERING: Final = 120.0
_ENDING: Final = 10.0
"""Seconds of patience."""

_LONGEST: Final = 16 * 1024
"""Bytes of a line of its log."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A place with people: an attraction point, or a cell."""

    place: Point
    people: float
    radius: float = 0.0


@dataclass(frozen=True, slots=True)
class Observation:
    densest: Spot | None
    """The cell with most of them."""

    points: tuple[Spot, ...]
    """Largest first."""


@dataclass(frozen=True, slots=True)
class MadePlan:
    """A scheme for whoever is at one of the points that were observed."""

    id: str
    scheme: str
    elsewhere: str
    observed: Observation


@dataclass(frozen=True, slots=True)
class PastAnswer:
    """So many events match, and so many of them were given with this answer and those before it."""

    total: int
    given: int
    next: str | None


class Analyst:
    """To be used with ``async with``; Spark starts meanwhile."""

    def __init__(self) -> None:
        self._folder: TemporaryDirectory[str]
        self._process: asyncio.subprocess.Process
        self._log: Final[deque[str]] = deque(maxlen=20)
        self._reading: asyncio.Task[None]
        self._asking: Final = asyncio.Lock()

    async def __aenter__(self) -> Self:
        self._folder = TemporaryDirectory(prefix="nearcast-demo-")
        try:
            # A session of its own: Ctrl-C is for the demo, which then ends Spark in good order.
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", _PROGRAM, self._folder.name),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
                env={**os.environ, "TMPDIR": self._folder.name},
            )
        except BaseException:
            self._folder.cleanup()
            raise
        self._reading = asyncio.create_task(self._read())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        stdin.close()
        try:
            # Everything that it has started holds its stderr: when that ends, all are gone.
            if error is not None or not await self._gone():
                self._kill(signal.SIGTERM)
                if not await self._gone():
                    self._kill(signal.SIGKILL)
                    await self._gone()
            assert self._process.stdout is not None
            with suppress(TimeoutError):
                async with asyncio.timeout(_ENDING):
                    await self._process.stdout.read()
        finally:
            self._reading.cancel()
            self._folder.cleanup()

    async def start(self, broker: str, lake: Path) -> None:
        """Returns when Spark runs; that broker, by HTTP, is the one to observe."""
        async with self._asking:
            await self._answer(_STARTING)
            self._say({"broker": broker, "lake": str(lake)})

    async def observe(self, people: int) -> Observation:
        found = await self._ask("observe", people=people)
        densest = found["densest"]
        return Observation(
            None if densest is None else Spot(_place(densest), densest["clients"]),
            tuple(Spot(_place(point), point["clients"], point["radius"]) for point in found["points"]),
        )

    async def plan(self, scheme: str, elsewhere: str, observed: Observation) -> MadePlan:
        """For the points of the last observation, which that is."""
        made = await self._ask("plan", scheme=scheme, elsewhere=elsewhere)
        return MadePlan(made["plan"], scheme, elsewhere, observed)

    async def carried_out(self, plan: str) -> int:
        """How many people changed by that plan."""
        return int((await self._ask("carried_out", plan=plan))["people"])

    async def answer(self, question: str, asked: Instant, first: int, cursor: str | None = None) -> PastAnswer:
        """The events come by the broker, to whoever has subscribed under that id."""
        return PastAnswer(**await self._ask("answer", question=question, asked=asked, first=first, cursor=cursor))

    async def _ask(self, do: str, **given: object) -> Any:
        async with self._asking:
            self._say({"do": do, **given})
            return (await self._answer(_ANSWERING))["found"]

    def _say(self, words: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(words).encode() + b"\n")

    async def _answer(self, patience: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(patience):
                line = await self._process.stdout.readline()
        except TimeoutError:
            raise SetupError(f"the demo's Spark has not answered for {patience:.0f} s{self._last_words()}") from None
        if not line:
            raise SetupError(f"the demo's Spark has ended{self._last_words()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise JobFailed(f"{answer['error']} (--no-spark shows the demo without it)")
        return answer

    async def _read(self) -> None:
        assert self._process.stderr is not None
        rest = b""
        # Not by lines: one that is longer than the buffer of the stream would be an error.
        while chunk := await self._process.stderr.read(_LONGEST):
            *lines, rest = (rest + chunk).split(b"\n")
            self._log.extend(line[:_LONGEST].decode(errors="replace").rstrip() for line in lines)
            rest = rest[:_LONGEST]
        if rest:
            self._log.append(rest.decode(errors="replace").rstrip())

    def _last_words(self) -> str:
        return f": {self._log[-1]}" if self._log else ""

    def _kill(self, what: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, what)

    async def _gone(self) -> bool:
        ended = asyncio.ensure_future(self._process.wait())
        _, pending = await asyncio.wait([self._reading, ended], timeout=_ENDING)
        ended.cancel()
        return not pending


def _place(found: dict[str, Any]) -> Point:
    return Point(found["lat"], found["lon"])
