"""All people that are connected, and how many they are to be."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from random import Random
from types import TracebackType
from typing import Final, Self

from nearcast.cli.demo.city import City
from nearcast.cli.demo.person import Person, PersonStatistics
from nearcast.cli.demo.witness import Witness

_AT_ONCE: Final = 25
"""People who connect at the same time."""


@dataclass(frozen=True, slots=True)
class CrowdStatistics:
    connected: int
    came: int
    people: PersonStatistics
    """Of all who are or were there."""


class Crowd:
    """To be used with ``async with``; whoever fails ends the block with that failure."""

    def __init__(self, city: City, witness: Witness, url: str, day: int = 1, seed: int = 7) -> None:
        self._city: Final = city
        self._witness: Final = witness
        self._url: Final = url
        self._day: Final = day
        self._chance: Final = Random(seed)
        self._moving: Final = asyncio.Event()
        self._moving.set()
        self._tasks: Final = asyncio.TaskGroup()
        self._people: Final[dict[int, Person]] = {}
        self._came = 0
        self._gone = PersonStatistics()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._moving.set()
        for person in self._people.values():
            person.leaving.set()
        await self._tasks.__aexit__(kind, error, trace)

    @property
    def everybody(self) -> list[Person]:
        """Those who come and go included."""
        return list(self._people.values())

    @property
    def people(self) -> list[Person]:
        """Those who are connected and have subscribed."""
        return [person for person in self._people.values() if person.listening]

    def statistics(self) -> CrowdStatistics:
        people = self._gone
        for person in self._people.values():
            people += person.statistics()
        return CrowdStatistics(len(self.people), self._came, people)

    def approach(self, wanted: int) -> None:
        """Have people come or go, so that there are so many."""
        staying = [person for person in self._people.values() if not person.leaving.is_set()]
        for person in staying[max(0, wanted) :]:  # who came last, for the market, goes first
            person.leaving.set()
        coming = sum(not person.listening for person in staying)
        total = len(self._city.present)
        for _ in range(min(wanted - len(staying), _AT_ONCE - coming, total - self._came)):
            self._enter()

    async def stand_still(self) -> None:
        """Returns when the broker knows where everybody is, and everybody waits."""
        self._moving.clear()
        await asyncio.gather(*(person.still.wait() for person in self._people.values()))

    def _enter(self) -> None:
        number = self._came
        self._came += 1
        self._city.enter(number)
        chance = Random(self._chance.random())
        person = self._people[number] = Person(
            number, self._city, self._witness, self._url, chance, self._day, self._moving
        )
        self._tasks.create_task(self._live(person))

    async def _live(self, person: Person) -> None:
        had = await person.live()
        self._gone += had
        self._city.leave(person.number)
        del self._people[person.number]
