"""Messages for whoever will be there, against the definition of delivery."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.overlay.temporal.waiting import WaitingTown
from tests.overlay.temporal.worlds import inside, square

from nearcast.model.event import Event
from nearcast.model.temporal import RELATIONS, WITH_TOLERANCE, TemporalPredicate
from nearcast.model.time import MICROSECONDS
from nearcast.overlay.routing.adaptive import Adaptive
from nearcast.overlay.routing.aggregated import Aggregated
from nearcast.overlay.routing.knowledge import Knowledge
from nearcast.overlay.routing.reference import Reference
from nearcast.overlay.temporal.expiry import Lifetimes
from nearcast.overlay.temporal.future import FutureSettings
from nearcast.overlay.temporal.messages import FULLY, NOT_AT_ALL
from nearcast.overlay.temporal.settings import TemporalSettings
from nearcast.overlay.values.possible import possibly

CHAIN = [(0, 1), (1, 2), (2, 3), (3, 4)]
SETTINGS = TemporalSettings(settling=4.0)


def town() -> WaitingTown:
    return WaitingTown(5, CHAIN, SETTINGS, check_wire=True)


def test_a_message_that_is_for_nobody_never_leaves_the_node_of_its_sender() -> None:
    there = town()
    ada = there.person("ada")
    ada.register("me", {"role": "guest"})
    ada.go("r003", inside(3))
    there.run(5)
    there.publish(0, there.message("overlaps", 10, 100))
    there.run(300)
    assert there.keeps() == 0
    assert (there.holding(), ada.got) == ([], [])


def test_it_goes_to_where_somebody_comes_and_only_there() -> None:
    there = town()
    ada = there.person("ada")
    there.publish(0, there.message("overlaps", 0, 100))
    there.run(5)
    assert there.holding() == ["r000"]
    ada.register("me", {"role": "staff"})
    ada.go("r002", inside(2))
    there.run(5)
    assert there.holding() == ["r000", "r001", "r002"]
    assert ada.got == ["e"]
    ada.go("r004", inside(4))
    there.run(20)
    assert ada.got == ["e"]


def test_who_is_there_already_gets_it_when_its_time_has_come() -> None:
    there = town()
    ada = there.person("ada")
    ada.register("me", {"role": "staff"})
    ada.go("r004", inside(4))
    there.run(5)
    there.publish(0, there.message("overlaps", 60, 100))
    there.run(50)
    assert (there.holding(), ada.got) == (list(there.names), [])
    there.run(20)
    assert ada.got == ["e"]


def test_it_is_kept_until_its_time_is_over_and_a_little_longer() -> None:
    there = WaitingTown(5, CHAIN, SETTINGS, future=FutureSettings(lifetimes=Lifetimes(grace=20.0)))
    there.publish(0, there.message("overlaps", 10, 100))
    there.run(119)
    assert there.holding() == ["r000"]
    there.run(2)
    assert there.holding() == []


TO = ("a = 1", "a = 0 OR b = 1", "a > 0 AND b IS NULL", "NOT (a = 1)", "TRUE", "b = 1 OR b = 0", "a IS NULL")


def tree(random: Random, size: int) -> list[tuple[int, int]]:
    order = random.sample(range(size), size)
    return [(order[child], order[random.randrange(child)]) for child in range(1, size)]


class Life:
    """People change, walk, leave and return, second by second; messages are sent meanwhile."""

    def __init__(
        self,
        seed: int,
        knowledge: Callable[[], Knowledge],
        *,
        depth: int = FULLY,
        size: int = 5,
        indexed: tuple[str, ...] = (),
        service_areas: bool = False,
    ) -> None:
        self.random = random = Random(seed)
        settings = TemporalSettings(depth=depth, settling=4.0, indexed=indexed)
        self.town = WaitingTown(
            size,
            tree(random, size),
            settings,
            knowledge=knowledge,
            service_areas=service_areas,
            trusted=(1, 3),
            without_access=(size - 2,),
            seed=seed,
        )
        self.homes = [number for number in range(size) if number != size - 2]
        for number, name in enumerate(("ada", "bob", "cyd")):
            self.town.person(name, (1, 3)[number % 2], contexts=("me", "car"), changing=number != 1)
        self.events: list[Event] = []

    def step(self) -> None:
        random, town = self.random, self.town
        person = town.people[random.choice(sorted(town.people))]
        match random.randrange(8):
            case 0 | 1 | 2:
                context = {name: random.randrange(3) for name in "ab" if random.random() < 0.7}
                person.register(random.choice(("me", "car")), context)
            case 3 if person.contexts:
                person.deregister(random.choice(sorted(person.contexts)))
            case 4 | 5:
                home = random.choice(self.homes)
                person.go(town.names[home], random.choice([inside(home), inside(home, 1.7), None]))
            case 6:
                person.walk(inside(random.randrange(len(town.names)), 0.2))
            case 7 if random.random() < 0.5:
                person.go(None, None)
        town.run(random.choice([1.0, 1.0, 2.0, 7.0, 20.0]))

    def send(self) -> None:
        random, town = self.random, self.town
        relation = random.choice(RELATIONS)
        a, b = sorted(town.now + random.randrange(-60, 120) * MICROSECONDS + random.choice([-1, 0, 0, 1]) for _ in "ab")
        z = random.choice([1, 2 * MICROSECONDS, 20 * MICROSECONDS]) if relation in WITH_TOLERANCE else 0
        when = TemporalPredicate(
            relation, a if random.random() < 0.9 else None, b if random.random() < 0.9 else None, z
        )
        event = Event(
            f"e{len(self.events)}",
            "news",
            town.now,
            to=random.choice(TO),
            when=when,
            reach=random.choice([None, None, square(random.randrange(3), random.randrange(1, 4))]),
            lifetime=300 * MICROSECONDS,
        )
        self.events.append(event)
        town.publish(random.randrange(len(town.names)), event)
        town.run(1.0)

    def live(self, steps: int, messages: int) -> None:
        for _ in range(steps):
            self.step()
        for _ in range(messages):
            self.send()
            for _ in range(self.random.randrange(3)):
                self.step()
        for _ in range(steps):
            self.step()

    def check(self) -> None:
        town = self.town
        town.run(400)
        assert not any(town.holding(event.id) for event in self.events)
        expected = {event.id: town.expected(event) for event in self.events}
        for person in town.people.values():
            if person.device._node is None:
                person.go("r000", None)
        town.run(60)
        for event in self.events:
            assert town.receivers(event) == expected[event.id], (event.id, event.to, event.when, event.reach)


@pytest.mark.parametrize("knowledge", [Reference, Adaptive, Aggregated])
@examples(6)
@given(
    seed=st.integers(0, 1_000_000),
    depth=st.sampled_from([FULLY, 2, NOT_AT_ALL]),
    indexed=st.sampled_from([(), ("a", "b")]),
)
def test_all_who_will_be_there_get_it_once_and_nobody_else(
    knowledge: Callable[[], Knowledge], seed: int, depth: int, indexed: tuple[str, ...]
) -> None:
    life = Life(seed, knowledge, depth=depth, indexed=indexed)
    life.live(12, 5)
    life.check()


def coarsely() -> Reference:
    return Reference(judge=possibly)


@pytest.mark.parametrize("knowledge", [coarsely, Adaptive, Aggregated])
@examples(4)
@given(seed=st.integers(0, 1_000_000))
def test_also_where_routers_know_no_more_than_areas(knowledge: Callable[[], Knowledge], seed: int) -> None:
    life = Life(seed, knowledge, service_areas=True)
    life.live(12, 5)
    life.check()
