"""What the pipeline finds while the city lives, and what it plans."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from nearcast.cli.demo.analysis import CELL
from nearcast.cli.demo.analyst import Analyst, Judgement, MadePlan, Observation, Spot
from nearcast.cli.demo.broker import LADDER, DemoBroker
from nearcast.cli.demo.places import nearest_place

AT_POINTS: Final = LADDER[-1]
ELSEWHERE: Final = LADDER[1]
"""A crowd is worth knowing exactly; of the few who are not in it, cells are enough."""

_PAUSE: Final = 3.0
"""Seconds from one observation to the next: the machine belongs to the city."""

_SHOWN: Final = 3
Truth = Callable[[], Mapping[str, Sequence[str]]]
"""Of each event so far, the clients that had to get it."""


class Pipeline:
    """Observes until it is ended; plans once, when there is a crowd."""

    def __init__(self, analyst: Analyst, broker: DemoBroker, people: int, truth: Truth = dict) -> None:
        self.analyst: Final = analyst
        self.is_there = False
        self.observed: Observation | None = None
        self.observations = 0
        self.planning = False
        """A plan is on its way to the broker, or there."""

        self.judged: Judgement | None = None
        self.plan: MadePlan | None = None
        self.moved = 0
        """People whom the plan has brought to another scheme, as the journal says in the end."""

        self._broker: Final = broker
        self._people: Final = people
        self._truth: Final = truth
        self._crowded: Final = asyncio.Event()
        self._ended: Final = asyncio.Event()

    def crowd_is_there(self) -> None:
        """Now it is worth planning."""
        self._crowded.set()

    def end(self) -> None:
        """What is being asked is still answered."""
        self._ended.set()

    async def run(self, tell: Callable[[str], None]) -> None:
        await self.analyst.start(self._broker.http, self._broker.lake)
        self.is_there = True
        tell("Spark is there too, and reads the broker's journal")
        while not self._ended.is_set():
            crowded = self._crowded.is_set()
            observed = self.observed = await self.analyst.observe(self._people)
            self.observations += 1
            for line in observation_words(observed):
                tell(f"Spark: {line}")
            if crowded and self.plan is None and observed.points:
                self.planning = True
                tell(f"Spark plans {AT_POINTS} at {points_word(len(observed.points))}, {ELSEWHERE} elsewhere")
                self.plan = await self.analyst.plan(AT_POINTS, ELSEWHERE, observed)
            elif not (self._crowded.is_set() and self.plan is None):
                await self._judge(tell)
                with suppress(TimeoutError):
                    async with asyncio.timeout(_PAUSE):
                        await self._ended.wait()

    async def _judge(self, tell: Callable[[str], None]) -> None:
        """Recall and precision so far, which the dashboard shows by place."""
        if truth := self._truth():
            found = self.judged = await self.analyst.judge(truth, self._broker.observed)
            tell(f"Spark: {judged_words(found)}")

    async def look_back(self) -> None:
        """When all is over: what the broker has written down of the plan, and of all that was said."""
        await self._judge(lambda _: None)
        if self.plan is not None:
            self.moved = await self.analyst.carried_out(self.plan.id)

    def plan_words(self) -> str:
        if self.plan is None:
            return "no plan yet"
        points = points_word(len(self.plan.observed.points))
        return f"planned {self.plan.scheme} at {points}, {self.plan.elsewhere} elsewhere"

    def words(self) -> tuple[str, str]:
        """For a screen: what it sees, and what it has planned."""
        if self.observed is None:
            return "is starting" if not self.is_there else "looks for the first time", ""
        return "; ".join(line.partition(":")[0] for line in observation_words(self.observed)), self.plan_words()


def observation_words(observed: Observation) -> Iterator[str]:
    if observed.densest is not None:
        densest = observed.densest
        yield f"{densest.people:.0f} people in the densest {CELL:.0f} m, near {nearest_place(densest.place)}"
    if observed.points:
        yield f"{points_word(len(observed.points))}: {', '.join(_spot_words(spot) for spot in observed.points[:_SHOWN])}"


def judged_words(found: Judgement) -> str:
    return f"recall {found.recall:.3f}, precision {found.precision:.3f} of the copies that the broker has sent"


def points_word(number: int) -> str:
    return "1 attraction point" if number == 1 else f"{number} attraction points"


def _spot_words(spot: Spot) -> str:
    return f"{nearest_place(spot.place)} ({spot.people:.0f} within {spot.radius:.0f} m)"
