"""``nearcast bench federation``: people roam between brokers of which one is killed every few seconds.

All the time, messages are addressed to teams, whose members are wherever they are.  What was acknowledged must reach every member,
once; that is counted by who should have got what, and not by what the brokers say.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

import nearcast.client.client as clients
from nearcast.benchmark.federation_brokers import FederatedBroker, started
from nearcast.benchmark.report import OURSELVES, Measurement, Missing, Report, machine
from nearcast.errors import BenchmarkError, NearcastError

Progress = Callable[[str], None]

_HEALING: Final = 120.0
"""Seconds after the last kill in which all must have arrived."""

_TRACEBACK: Final = 30
"""Lines of a log that are shown of an error."""

_OUTAGE: Final = 1.0
"""A message that takes longer than that to reach everybody was held up by something."""


@dataclass(frozen=True, slots=True)
class Campaign:
    brokers: int = 5
    people: int = 1_000
    seconds: float = 60.0
    teams: int = 20
    kill_every: float = 10.0
    messages_per_second: float = 5.0
    roams_per_second: float = 20.0
    publishers: int = 5
    replicate: bool = False
    seed: int = 1


QUICK: Final = Campaign(
    brokers=3, people=30, seconds=20.0, teams=3, messages_per_second=5.0, roams_per_second=2.0, publishers=2
)


@dataclass(slots=True)
class Person:
    name: str
    team: int
    client: clients.Client
    at: int
    """Number of the broker to which it went last."""

    got: Counter[str] = field(default_factory=Counter)
    task: asyncio.Task[None] | None = None


@dataclass(slots=True)
class Sent:
    team: int
    at: float
    missing: int
    done: float | None = None
    """When the last member got it."""


@dataclass(slots=True)
class Outcome:
    acknowledged: int
    wanted: int
    lost: int
    doubled: int
    recognised: int
    """Copies that only the client recognised."""

    roams: int
    kills: int
    healing: list[float]
    """For each kill, the seconds until everything that it held up had arrived."""

    latencies: list[float]


class _Run:
    def __init__(self, campaign: Campaign, brokers: list[FederatedBroker], progress: Progress) -> None:
        self.campaign: Final = campaign
        self.brokers: Final = brokers
        self.progress: Final = progress
        self.random: Final = Random(campaign.seed)
        self.people: Final[list[Person]] = []
        self.sent: Final[dict[str, Sent]] = {}
        self.acknowledged: Final[set[str]] = set()
        self.members: Final[Counter[int]] = Counter()
        self.kills: Final[list[float]] = []
        self.roams = 0

    # People

    async def gather(self) -> None:
        """Everybody connects, and is known everywhere."""
        size, campaign = len(self.brokers), self.campaign
        for number in range(campaign.people):
            name, team, at = f"p{number}", number % campaign.teams, number % size
            client = clients.connect(
                self.brokers[at].url,
                client_id=name,
                schemes=False,
                timeout=120,
                others=[broker.url for broker in self.brokers],
            )
            person = Person(name, team, client, at)
            self.people.append(person)
            self.members[team] += 1
        for first in range(0, len(self.people), 50):
            await asyncio.gather(*map(self._enter, self.people[first : first + 50]))
        self.progress(f"{campaign.people} people are connected")
        await self._warm()

    async def _enter(self, person: Person) -> None:
        await person.client.__aenter__()
        await person.client.update(attributes={"team": person.team})
        person.task = asyncio.create_task(self._listen(person))
        await person.client.accept_addressed()

    async def _listen(self, person: Person) -> None:
        events = person.client.addressed()
        async with events:
            async for event in events:
                self._got(person, event.payload.decode())

    def _got(self, person: Person, message: str) -> None:
        person.got[message] += 1
        sent = self.sent.get(message)
        if sent is not None and person.got[message] == 1:
            sent.missing -= 1
            if sent.missing == 0:
                sent.done = time.monotonic()

    async def _warm(self) -> None:
        """Contexts travel: until a message to everybody reaches everybody, nothing is counted."""
        async with clients.connect(self.brokers[0].url, client_id="warming", schemes=False) as client:
            for attempt in range(60):
                word = f"warm {attempt}"
                await client.publish("warm", word, to="team >= 0")
                await asyncio.sleep(1.0)
                if all(person.got[word] for person in self.people):
                    return
        raise BenchmarkError("a message to everybody did not reach everybody although nobody had failed")

    # What happens

    async def run(self) -> None:
        campaign = self.campaign
        end = time.monotonic() + campaign.seconds
        async with asyncio.TaskGroup() as tasks:
            for number in range(campaign.publishers):
                tasks.create_task(self._publish(number, end))
            tasks.create_task(self._roam(end))
            tasks.create_task(self._kill(end))

    async def _publish(self, number: int, end: float) -> None:
        pause = self.campaign.publishers / self.campaign.messages_per_second
        home = self.brokers[number % len(self.brokers)]
        others = [broker.url for broker in self.brokers]
        async with clients.connect(
            home.url, client_id=f"publisher-{number}", schemes=False, timeout=120, others=others
        ) as client:
            count = 0
            while time.monotonic() < end:
                await asyncio.sleep(self.random.uniform(0, 2 * pause))
                count += 1
                name, team = f"m{number}-{count}", self.random.randrange(self.campaign.teams)
                self.sent[name] = Sent(team, time.monotonic(), self.members[team])
                while name not in self.acknowledged:
                    with contextlib.suppress(NearcastError):
                        await client.publish("news", name, to=f"team = {team}", id=name)
                        self.acknowledged.add(name)

    async def _roam(self, end: float) -> None:
        while time.monotonic() < end:
            await asyncio.sleep(self.random.expovariate(self.campaign.roams_per_second))
            person = self.random.choice(self.people)
            there = [number for number, broker in enumerate(self.brokers) if broker.up and number != person.at]
            if there:
                person.at = self.random.choice(there)
                self.roams += 1
                await person.client.go_to(self.brokers[person.at].url)

    async def _kill(self, end: float) -> None:
        async with asyncio.TaskGroup() as rising:
            while time.monotonic() + self.campaign.kill_every <= end:
                await asyncio.sleep(self.campaign.kill_every)
                up = [broker for broker in self.brokers if broker.up]
                if len(up) < 2:  # on a machine this slow nobody would be left
                    continue
                broker = self.random.choice(up)
                self.kills.append(time.monotonic())
                await broker.kill()
                self.progress(f"killed {broker.name}, {len(up) - 1} are left")
                rising.create_task(broker.start())

    async def heal(self) -> None:
        """Until everything has arrived, or nothing more will."""
        deadline = time.monotonic() + _HEALING
        while time.monotonic() < deadline and any(self.sent[name].missing for name in self.acknowledged):  # noqa: ASYNC110 - many bring it about
            await asyncio.sleep(0.1)
        await asyncio.sleep(2.0)  # what would come twice has time to

    async def leave(self) -> None:
        for person in self.people:
            if person.task is not None:
                person.task.cancel()
        await asyncio.gather(*(person.client.close() for person in self.people), return_exceptions=True)
        await asyncio.gather(*(each.task for each in self.people if each.task is not None), return_exceptions=True)

    def _tell_lost(self) -> None:
        for name in sorted(self.acknowledged):
            without = [person for person in self._team(self.sent[name].team) if not person.got[name]]
            if without:
                ago = time.monotonic() - self.sent[name].at
                shown = ", ".join(f"{person.name} at b{person.at}" for person in without[:5])
                self.progress(f"{name}, sent {ago:.1f} s ago, did not reach {len(without)}: {shown}")

    def _tell_problems(self) -> None:
        """What brokers said that they should not have had to say."""
        for broker in self.brokers:
            for number, line in enumerate(broker.log):
                if " ERROR " in line:
                    self.progress(f"{broker.name}: " + "\n    ".join(broker.log[number : number + _TRACEBACK]))

    def outcome(self) -> Outcome:
        self._tell_lost()
        self._tell_problems()
        wanted = [(person, name) for name in self.acknowledged for person in self._team(self.sent[name].team)]
        lost = sum(not person.got[name] for person, name in wanted)
        doubled = sum(count - 1 for person in self.people for count in person.got.values())
        streams = [stream for person in self.people for stream in person.client.streams()]
        arrived = [sent for sent in self.sent.values() if sent.done is not None]
        latencies = [sent.done - sent.at for sent in arrived if sent.done is not None]
        return Outcome(
            len(self.acknowledged),
            len(wanted),
            lost,
            doubled,
            sum(stream.duplicates for stream in streams),
            self.roams,
            len(self.kills),
            [self._healing(number) for number in range(len(self.kills))],
            latencies,
        )

    def _team(self, team: int) -> list[Person]:
        return [person for person in self.people if person.team == team]

    def _healing(self, number: int) -> float:
        """From a kill to when the last message arrived that was held up, of those sent before the next one."""
        kill = self.kills[number]
        until = self.kills[number + 1] if number + 1 < len(self.kills) else float("inf")
        held_up = [
            sent.done
            for sent in self.sent.values()
            if sent.done is not None and sent.done > kill and sent.at < until and sent.done - sent.at > _OUTAGE
        ]
        held_up = [done for done in held_up if done < until] or held_up
        return max(held_up, default=kill) - kill


async def _measured(campaign: Campaign, progress: Progress) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        brokers = await started(Path(folder), campaign.brokers, progress, replicate=campaign.replicate)
        try:
            run = _Run(campaign, brokers, progress)
            try:
                await run.gather()
                await run.run()
                progress("nobody is killed any more; what is on its way arrives")
                await run.heal()
                return run.outcome()
            finally:
                await run.leave()
        finally:
            await asyncio.gather(*(broker.end() for broker in brokers))


def measured(campaign: Campaign, progress: Progress = lambda _: None) -> Outcome:
    return asyncio.run(_measured(campaign, progress))


def run(
    *, quick: bool = False, peers: bool = True, progress: Progress = lambda _: None, campaign: Campaign | None = None
) -> Report:
    """Run a campaign: what was lost or doubled is among the results, and is told as it is found."""
    campaign = campaign or (QUICK if quick else Campaign())
    outcome = measured(campaign, progress)
    parameters = {
        "brokers": campaign.brokers,
        "people": campaign.people,
        "kills": outcome.kills,
        "roams": outcome.roams,
        "messages": outcome.acknowledged,
    }

    def row(metric: str, unit: str, value: float) -> Measurement:
        return Measurement(OURSELVES, metric, unit, round(value, 3), dict(parameters))

    latencies, healing = sorted(outcome.latencies) or [0.0], outcome.healing or [0.0]
    results = (
        row("deliveries_expected", "1", outcome.wanted),
        row("deliveries_lost", "1", outcome.lost),
        row("deliveries_doubled", "1", outcome.doubled),
        row("copies_recognised_by_clients", "1", outcome.recognised),
        row("recovery_median_seconds", "s", statistics.median(healing)),
        row("recovery_longest_seconds", "s", max(healing)),
        row("reached_all_p50_seconds", "s", statistics.median(latencies)),
        row("reached_all_p99_seconds", "s", latencies[min(len(latencies) - 1, int(0.99 * len(latencies)))]),
    )
    for number, seconds in enumerate(outcome.healing, 1):
        progress(f"kill {number}: all that it held up had arrived after {seconds:.1f} s")
    missing = (Missing("others", "no other broker here finds people by their context"),) if peers else ()
    return Report("federation", machine(), results, missing, {})
