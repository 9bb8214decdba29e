"""What happens in the city: a quiet morning, a market that draws a crowd, and the way home."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nearcast.cli.demo.analyst import Analyst
from nearcast.cli.demo.broker import BY_HAND, LADDER, DemoBroker
from nearcast.cli.demo.city import City
from nearcast.cli.demo.crowd import Crowd
from nearcast.cli.demo.devices import Devices
from nearcast.cli.demo.meter import Change, Meter
from nearcast.cli.demo.pipeline import Pipeline
from nearcast.cli.demo.visits import Jams, Newcomers
from nearcast.cli.demo.witness import PATIENCE, Witness
from nearcast.errors import NearcastError, TimedOut

if TYPE_CHECKING:
    from nearcast.cli.demo.streets import Streets  # slow to import

_STEP: Final = 0.1
"""Seconds between two steps of the city."""

_LOOK: Final = 0.5
"""Seconds between two looks at the broker."""

_AFTERWARDS: Final = 5.0
"""Seconds until all have come to rest, and have followed the operator."""

_OVERTIME: Final = 60.0
"""Seconds that an act waits for the broker to be in its scheme; machines may be busy."""

_PLANNING: Final = 120.0
"""Seconds that the market waits for Spark to plan for it."""


@dataclass(frozen=True, slots=True)
class Act:
    """So many people, as a share of all, are there at its end, after a share of the time; the broker is in that scheme then."""

    words: str
    people: float
    time: float
    market_day: bool = False
    scheme: str | None = None
    planned: bool = False
    """Also, a plan of the pipeline has been carried out."""


ACTS: Final = (
    Act("morning: people turn on their phones all over the city", 0.25, 0.1),
    Act("a quiet morning", 0.25, 0.15),
    Act("market day: people come, and go to the market", 1.0, 0.3, market_day=True),
    Act("everybody is there, most of them at the market", 1.0, 0.2, market_day=True, scheme=LADDER[-1], planned=True),
    Act("the market closes: people go home", 0.25, 0.15),
    Act("a quiet evening", 0.25, 0.1, scheme=LADDER[0]),
)


class Play:
    """Everything that is shown in one day."""

    def __init__(
        self,
        broker: DemoBroker,
        streets: Streets,
        people: int,
        seconds: float,
        analyst: Analyst | None = None,
        *,
        day: int = 1,
        lenient: bool = False,
    ) -> None:
        """One of the days on that broker; ``lenient``: if Spark fails, the city goes on without it."""
        self.city: Final = City(people, streets, seed=day)
        self.witness: Final = Witness()
        self.crowd: Final = Crowd(self.city, self.witness, broker.url, day)
        self.devices: Final = Devices(broker.url, streets, seed=day)
        self.jams: Final = Jams(broker.url, self.crowd, self.witness, day)
        self.newcomers: Final = Newcomers(broker.url, streets, self.witness, day, seed=day)
        self.day: Final = day
        self.meter: Final = Meter()
        self.news: Final[deque[str]] = deque(maxlen=100)
        self.told: Callable[[str], object] = lambda _: None
        """Called with every line of news."""

        self.people: Final = people
        self.length: Final = seconds + _AFTERWARDS
        """Seconds that it will take, more or less."""

        self.pipeline = None if analyst is None else Pipeline(analyst, broker, people, self._truth)
        self._lenient: Final = lenient
        self.by_hand: Change | None = None
        self.by_plan: Change | None = None
        self._ran: set[str] = set()
        """Schemes, in this act."""

        self._broker: Final = broker
        self._seconds: Final = seconds
        self._unsettled: Change | None = None
        """A transition that not everybody has confirmed yet."""

    async def perform(self) -> None:
        """All acts; then everybody stands still, and everything that was due has come or is lost.

        At last the operator asks for a scheme by hand.
        """
        async with asyncio.TaskGroup() as tasks:
            if self.day > 1:
                await self._broker.transition(LADDER[0])
            watching, before = tasks.create_task(self._watch()), 0.0
            if self.pipeline is not None:
                tasks.create_task(self._observe(self.pipeline))
            happening = [
                tasks.create_task(self.devices.run()),
                tasks.create_task(self.jams.run(self._tell)),
                tasks.create_task(self.newcomers.run(self._tell)),
            ]
            for act in ACTS:
                await self._perform(act, before)
                before = act.people
            if self.pipeline is not None:
                self.pipeline.end()
            for each in happening:
                each.cancel()
            await asyncio.wait(happening)
            await self._settle()
            await self._change_by_hand()
            watching.cancel()

    async def _perform(self, act: Act, before: float) -> None:
        self._tell(act.words)
        self.city.market_day = act.market_day
        loop = asyncio.get_running_loop()
        began, length = loop.time(), act.time * self._seconds
        overtime = _PLANNING if act.planned and self.pipeline is not None else _OVERTIME
        then = began
        self._ran = {self.meter.scheme}
        while (now := loop.time()) < began + length or not (self._done(act) or now > began + length + overtime):
            share = before + (act.people - before) * min(1.0, (now - began) / length)
            self.crowd.approach(round(share * self.people))
            self.city.step(now - then)
            then = now
            if act.planned and self.pipeline is not None and act.scheme in self._ran:
                self.pipeline.crowd_is_there()
            await asyncio.sleep(_STEP)

    def _done(self, act: Act) -> bool:
        reached = act.scheme is None or act.scheme in self._ran
        return reached and (not act.planned or self.pipeline is None or self.by_plan is not None)

    async def _observe(self, pipeline: Pipeline) -> None:
        try:
            await pipeline.run(self._tell)
        except NearcastError as error:
            if not self._lenient:
                raise
            self.pipeline = None
            self._tell(f"Spark does not run here, and the city goes on without it: {error}")

    def _truth(self) -> dict[str, list[str]]:
        """By day and number."""
        return {event: [f"{self.day}-{person}" for person in receivers] for event, receivers in self.witness.truth()}

    async def _settle(self) -> None:
        await self.crowd.stand_still()
        waited = 0.0
        while self.witness.statistics().awaited and waited < PATIENCE:
            await asyncio.sleep(0.1)
            waited += 0.1
        self.witness.give_up(0.0)

    async def _change_by_hand(self) -> None:
        self._tell(f"the operator asks for {BY_HAND} by hand")
        await self._broker.transition(BY_HAND)
        waited = 0.0
        while self.meter.scheme != BY_HAND or self._unsettled is not None:
            if waited > _OVERTIME:
                raise TimedOut(f"not everybody has followed the broker to {BY_HAND} within {_OVERTIME:.0f} s")
            await asyncio.sleep(_STEP)
            waited += _STEP
        self.by_hand = self.meter.changes[-1]

    async def _watch(self) -> None:
        while True:
            await self._look()
            self.witness.give_up()
            await asyncio.sleep(_LOOK)

    async def _look(self) -> None:
        status = await self._broker.status()
        seen = self.witness.statistics()
        change = self.meter.read(status, self.crowd.statistics(), seen)
        self._ran.add(status.scheme)
        if change is not None:
            self._unsettled = change
            if self.by_plan is None and self.pipeline is not None and self.pipeline.planning:
                self.by_plan = change
                self._tell(f"the broker carries out Spark's plan: {short(change.after)} elsewhere")
            else:
                self._tell(change_words(change))
        elif self._unsettled is not None and not status.waiting:
            self._unsettled = None
            wrong = seen.lost + seen.doubled + seen.strays
            noticed = f"{wrong} deliveries went wrong so far" if wrong else "nobody noticed"
            where = f", {status.following - status.elsewhere} of them at the points" if status.regions else ""
            self._tell(f"all {status.following} have followed{where}; {noticed}")

    def _tell(self, words: str) -> None:
        line = f"{self.meter.seconds:5.1f} s  {words}"
        self.news.append(line)
        self.told(line)


def change_words(change: Change) -> str:
    """In plain words; whether anybody noticed is the witness's to say."""
    if LADDER.index(change.after) > LADDER.index(change.before):
        why = f"{change.people} people: the broker wants to know better where"
    else:
        why = f"{change.people} people: the broker need not know so well where"
    return f"{why}, {short(change.before)} to {short(change.after)}"


def short(scheme: str) -> str:
    """``EGRID(factor=12)`` as people who look at it all the time would say it."""
    return scheme.replace("factor=", "")
