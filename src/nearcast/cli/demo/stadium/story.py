"""What happens in the stadium, and what must come of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from nearcast.cli.demo.adhoc.street import meeting_point
from nearcast.cli.demo.broker import DemoBroker
from nearcast.cli.demo.stadium.board import Show
from nearcast.cli.demo.stadium.fan import VENUE, Order, content_of
from nearcast.cli.demo.stadium.stand import PATIENCE, Accounts, Stand, StandSettings
from nearcast.client.client import Client, connect
from nearcast.client.crowds import NAME, OWNER, SINCE, TOPIC
from nearcast.crowdstore.bridge import ARCHIVE
from nearcast.crowdstore.objects import digest_of
from nearcast.errors import TimedOut

PHOTO: Final = 20_000
FILM: Final = 200_000
"""Bytes."""

COUNTING: Final = 15.0
"""Seconds after which the crowd has counted itself several times."""


@dataclass(frozen=True, slots=True)
class Person:
    name: str
    pid: int
    mechanism: str
    published: int
    copies: int
    told: int
    doubled: int


@dataclass(frozen=True, slots=True)
class Outcome:
    people: tuple[Person, ...]
    checks: tuple[str, ...]
    """What was to be seen, and was."""

    archived: tuple[str, ...]
    """Objects of the crowd that the broker has in the end."""

    counted: float
    """People, by the crowd's own count."""

    seconds: float


async def tell_story(settings: StandSettings, show: Show) -> Outcome:
    began = time.monotonic()
    group, group_port = await meeting_point(settings.address)
    with show:
        show.say(f"a stadium; {settings.early} people are there, a process each, who meet at {group}:{group_port}")
        async with (
            DemoBroker(10) as broker,
            Stand(settings, group, group_port, broker.url, show.draw) as stand,
            connect(broker.url, client_id="at home") as home,
        ):
            story = Story(stand, home, show)
            await story.tell()
            return await story.outcome(time.monotonic() - began)


def _by_cells(now: Accounts) -> bool:
    return all(each.mechanism == "DCS" for each in now.values())


class Story:
    def __init__(self, stand: Stand, home: Client, show: Show) -> None:
        self._stand: Final = stand
        self._home: Final = home
        self._show: Final = show
        self._checks: Final[list[str]] = []
        settings = stand.settings
        self._all: Final = settings.processes

    async def tell(self) -> None:
        await self._few()
        await self._late()
        await self._many()
        await self._gone()
        await self._bridged()

    async def outcome(self, seconds: float) -> Outcome:
        accounts = await self._stand.look()
        doubled = {name: len(each.told) - len(set(each.told)) for name, each in accounts.items()}
        if any(doubled.values()):
            raise TimedOut(f"somebody was told twice: {doubled}")
        self._checked("nobody was told of anything twice")
        late = self._stand.settings.name(self._stand.settings.early)
        if "eve/banner" in accounts[late].told or "ada/goal-1-again" in accounts["bob"].told:
            raise TimedOut("somebody was told of what was taken back before, or of what the formula excludes")
        self._checked(f"{late} never heard of the banner, nor bob, who wants no replays, of one")
        people = tuple(
            Person(
                name, self._stand.pid(name), each.mechanism, each.published, each.held, len(each.told), doubled[name]
            )
            for name, each in accounts.items()
        )
        counted = max(each.counted for each in accounts.values())
        archived = tuple(sorted(await self._archived()))
        return Outcome(people, tuple(self._checks), archived, counted, round(seconds, 1))

    # In acts

    async def _few(self) -> None:
        """Publish, and subscribe with a formula."""
        stand = self._stand
        await stand.come(range(stand.settings.early), bridge=2)
        await stand.order("bob", Order(do="subscribe", formula="goal & !replay"))
        self._show.say(
            "bob subscribes to 'goal & !replay'; the crowd is small, so every subscription is told to everybody (PL/SG)"
        )
        await self._publish("ada", "goal-1", "goal", "portugal")
        await self._publish("ada", "goal-1-again", "goal", "replay")
        await self._publish("eve", "banner", "fans")
        await self._must(lambda now: "ada/goal-1" in now["bob"].told, "bob hears of ada's goal")
        await stand.order("bob", Order(do="download", owner="ada", name="goal-1"))
        await self._same("ada", "bob", "goal-1", "bob has it from ada's own phone")
        await stand.order("eve", Order(do="unpublish", name="banner"))
        self._show.say("eve takes her banner back")

    async def _late(self) -> None:
        """Somebody comes late, and hears what was before."""
        stand = self._stand
        number = stand.settings.early
        await stand.come(range(number, number + 1))
        late = stand.settings.name(number)
        self._show.say(f"{late} comes late, and subscribes to 'goal | fans', whenever it was")
        await stand.order(late, Order(do="subscribe", formula="goal | fans"))
        wanted = {"ada/goal-1", "ada/goal-1-again"}
        await self._must(lambda now: wanted <= {*now[late].told}, f"{late} hears of both goals of the past")

    async def _many(self) -> None:
        """The crowd grows, and changes its mechanism."""
        stand, everybody = self._stand, self._all
        self._show.say(f"the others come: {everybody} in all")
        await stand.come(range(stand.settings.early + 1, everybody))
        await self._publish("ada", "goal-2", "goal", "portugal")
        if not await stand.happens(_by_cells, COUNTING):
            # A count of few errs by 13 % and more; so one of them decides instead.
            counted = stand.accounts["ada"].counted
            self._show.say(
                f"their count, {counted:.1f}, is not above {stand.settings.many:.1f}: ada has them change all the same"
            )
            await stand.order("ada", Order(do="initiate"))
        await self._must(
            _by_cells, f"the crowd has grown, and all {everybody} keep things by cells of the stand now (DCS)"
        )
        await self._must(lambda now: "ada/goal-2" in now["bob"].told, "bob hears of the goal that was shot meanwhile")

    async def _gone(self) -> None:
        """Somebody publishes, and is gone; somebody else gets it all the same."""
        stand = self._stand
        held = stand.accounts["eve"].held
        await self._publish("tom", "film", "goal", "film", size=FILM)
        digest = stand.accounts["tom"].digest
        await self._must(lambda now: "tom/film" in now["bob"].told, "bob hears of tom's film")
        await self._must(lambda now: now["eve"].held > held, "eve, who stands beside tom, has a copy of it")
        await stand.kill("tom")
        self._show.say("tom's phone is dead")
        await stand.order("bob", Order(do="download", owner="tom", name="film"))
        if stand.accounts["bob"].digest != digest:
            raise TimedOut("bob got something else than tom has published")
        self._checked("bob has tom's film, from a copy")
        await stand.come(range(3, 4))
        await stand.order("tom", Order(do="subscribe", formula="goal"))
        self._show.say("tom is back, and has forgotten everything")
        await self._must(
            lambda now: (
                {"ada/goal-1", "ada/goal-2", "tom/film"} <= {*now["tom"].told} and now["tom"].mechanism == "DCS"
            ),
            "tom has followed the others, and hears of all that was, his own film among it",
        )

    async def _bridged(self) -> None:
        """To a broker, and back."""
        goals = {"ada/goal-1", "ada/goal-1-again", "ada/goal-2", "tom/film"}
        await self._becomes(goals, "eve's phone has taken all goals to the broker's archive")
        await self._stand.order("ada", Order(do="unpublish", name="goal-1-again"))
        await self._becomes(goals - {"ada/goal-1-again"}, "and what ada takes back is there no more")
        event = await self._home.publish(TOPIC + VENUE, b"well played!", tags=["goal"])
        self._show.say("somebody at home publishes at the broker")
        await self._must(lambda now: f"{ARCHIVE}/{event}" in now["bob"].told, "bob hears of it in the crowd")

    # Steps

    async def _publish(self, name: str, what: str, *tags: str, size: int = PHOTO) -> None:
        self._show.say(f"{name} publishes {what} ({', '.join(tags)}), {size // 1_000} kB")
        await self._stand.order(name, Order(do="publish", name=what, tags=tags, size=size))

    async def _same(self, owner: str, reader: str, name: str, what: str) -> None:
        if self._stand.accounts[reader].digest != digest_of(content_of(name, PHOTO)).hex():
            raise TimedOut(f"{reader} got something else than {owner} has published")
        self._checked(what)

    async def _must(self, holds: Callable[[Accounts], bool], what: str) -> None:
        await self._stand.until(holds, what)
        self._checked(what)

    async def _becomes(self, wanted: set[str], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while (found := await self._archived()) != wanted:
            await self._stand.look()
            if time.monotonic() > deadline:
                raise TimedOut(f"the broker's archive has {sorted(found)}, not {sorted(wanted)}")
        self._checked(what)

    async def _archived(self) -> set[str]:
        events = self._home.subscribe(TOPIC + VENUE, since=SINCE, until="now", retained=False)
        return {
            f"{event.attributes[OWNER]}/{event.attributes[NAME]}" async for event in events if OWNER in event.attributes
        }

    def _checked(self, what: str) -> None:
        self._checks.append(what)
        self._show.say(what, seen=True)
