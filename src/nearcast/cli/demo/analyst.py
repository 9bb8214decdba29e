"""Who asks the demo's pipeline (``analysis``): starts it, and ends it with the JVM and all that belongs to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from nearcast.cli.demo.child import ChildProcess
from nearcast.errors import JobFailed, SetupError
from nearcast.model.geometry import Point
from nearcast.model.time import Instant

_PROGRAM: Final = "nearcast.cli.demo.analysis"
_STARTING: Final = 180.0
_ANSWERING: Final = 120.0
"""Seconds of patience."""


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


@dataclass(frozen=True, slots=True)
class Judgement:
    """So many deliveries were due, so many copies were sent, and so many of these were due."""

    due: int
    notified: int
    correct: int

    @property
    def recall(self) -> float:
        return self.correct / self.due if self.due else 1.0

    @property
    def precision(self) -> float:
        return self.correct / self.notified if self.notified else 1.0


class Analyst:
    """To be used with ``async with``; Spark starts meanwhile."""

    def __init__(self) -> None:
        self._child: Final = ChildProcess()
        self._asking: Final = asyncio.Lock()
        self._started = False

    @property
    def pid(self) -> int:
        return self._child.pid

    async def __aenter__(self) -> Self:
        await self._child.start(lambda folder: ("-m", _PROGRAM, str(folder)))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._child.end(by_itself=error is None)

    async def start(self, broker: str, lake: Path) -> None:
        """Returns when Spark runs; that broker, by HTTP, is the one to observe."""
        async with self._asking:
            if self._started:
                return
            await self._answer(_STARTING)
            self._say({"broker": broker, "lake": str(lake)})
            self._started = True

    async def observe(self, people: int) -> Observation:
        found = await self._ask("observe", people=people)
        densest = found["densest"]
        return Observation(
            None if densest is None else Spot(_place(densest), densest["clients"]),
            tuple(Spot(_place(point), point["clients"], point["radius"]) for point in found["points"]),
        )

    async def judge(self, truth: Mapping[str, Sequence[str]], out: Path) -> Judgement:
        """By place, into that folder, and in all; ``truth`` says of each event who had to get it."""
        file = self._child.folder / "truth.json"
        lines = (json.dumps({"event": event, "receivers": list(clients)}) for event, clients in truth.items())
        file.write_text("\n".join(lines), encoding="utf-8")
        return Judgement(**await self._ask("judge", truth=str(file), out=str(out)))

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
        self._child.stdin.write(json.dumps(words).encode() + b"\n")

    async def _answer(self, patience: float) -> dict[str, Any]:
        try:
            async with asyncio.timeout(patience):
                line = await self._child.stdout.readline()
        except TimeoutError:
            raise SetupError(
                f"the demo's Spark has not answered for {patience:.0f} s{self._child.last_words}"
            ) from None
        if not line:
            raise SetupError(f"the demo's Spark has ended{self._child.last_words}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise JobFailed(f"{answer['error']} (--no-spark shows the demo without it)")
        return answer


def _place(found: dict[str, Any]) -> Point:
    return Point(found["lat"], found["lon"])
