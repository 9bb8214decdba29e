"""Who is not there: messages in vain become fewer, and nobody is missed (7.2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.strategies import WORLDS
from tests.overlay.routing_changes import changed, changes, edges_of, everybody_gets_it, messages, restless
from tests.overlay.routing_worlds import Overlay
from tests.overlay.temporal.test_future import Life

from nearcast.errors import InvalidSettings
from nearcast.model.area import Box
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.values import Range
from nearcast.overlay.aggregation.aggregates import Aggregation
from nearcast.overlay.aggregation.thresholds import Fixed
from nearcast.overlay.routing.absences import Absences, AbsenceSettings
from nearcast.overlay.routing.adaptive import Adaptive
from nearcast.overlay.routing.aggregated import Aggregated, AggregatedSettings
from nearcast.overlay.routing.hop_local import HopLocal
from nearcast.overlay.routing.merged import merging
from nearcast.overlay.routing.messages import PORT, Absence, Needless, Nobody, Somebody
from nearcast.overlay.routing.reporting import ServiceArea
from nearcast.overlay.routing.settings import AdaptiveSettings
from nearcast.overlay.routing.wire import routed
from nearcast.overlay.values.domains import Domains
from nearcast.overlay.values.possible import possibly

CITY = WORLDS[2]
Make = Callable[[AbsenceSettings | None], HopLocal]


def adaptive(absences: AbsenceSettings | None) -> HopLocal:
    """Composites are never worth it, so that all is speculation."""
    return Adaptive(AdaptiveSettings(propagate_above=math.inf), absences=absences)


def aggregated(absences: AbsenceSettings | None) -> HopLocal:
    return Aggregated(
        Aggregation(threshold=Fixed(0.2)),
        AggregatedSettings(in_vain=1e9),
        Domains({"age": Range(0, 100)}),
        absences=absences,
    )


def as_written(absences: AbsenceSettings | None) -> HopLocal:
    """By the aggregates that are made of a neighbour's contexts, as in the document."""
    return Aggregated(Aggregation(threshold=Fixed(0.2)), AggregatedSettings(by_aggregates=True), absences=absences)


def both_chapters(absences: AbsenceSettings | None) -> HopLocal:
    condense = merging(Aggregation(threshold=Fixed(0.2)), Domains({"a": Range(0, 3), "b": Range(0, 3)}))
    return Adaptive(AdaptiveSettings(window=2.0), condense=condense, absences=absences)


def chain(size: int, make: Make, absences: AbsenceSettings | None = None) -> Overlay:
    overlay = Overlay(size, lambda: make(absences or AbsenceSettings(after=2)))
    overlay.connect((number, number + 1) for number in range(size - 1))
    overlay.run(5)
    return overlay


def ask(overlay: Overlay, to: str, times: int = 1, sender: int = 0) -> int:
    """How many copies the last of so many messages takes."""
    for _ in range(times):
        event = overlay.publish(sender, to)
        overlay.run(4)
        assert overlay.got(event) == overlay.expected(sender, event)
    return sum(overlay.copies(event).values())


def crowd(overlay: Overlay, router: int) -> None:
    """More than a set holds: what is told of them is an interval."""
    for age in range(10, 90, 5):
        overlay.register(router, {"age": age, "role": "guest"})
    overlay.run(5)


@pytest.mark.parametrize("make", [adaptive, aggregated])
def test_nobody_aged_61_behind_this_link(make: Make) -> None:
    overlay = chain(2, make)
    crowd(overlay, 1)
    assert ask(overlay, "age = 61") == 1
    assert ask(overlay, "age = 61", 4) == 0
    assert ask(overlay, "age = 60") == 1
    # Whoever asks for more asks for nobody, either.
    assert ask(overlay, "age = 61 AND role = 'guest'") == 0
    assert ask(overlay, "age = 61 OR age = 60") == 1
    assert overlay.routers[0].statistics().knowledge.absences_heard == 1
    assert overlay.routers[1].statistics().knowledge.absences_told == 1


@pytest.mark.parametrize("make", [adaptive, aggregated])
def test_of_many_different_messages_the_constraint_that_was_in_vain_each_time_is_told(make: Make) -> None:
    overlay = chain(2, make)
    crowd(overlay, 1)
    for year in range(3):
        ask(overlay, f"age = 61 AND role = 'guest' AND age > {year}")
    assert ask(overlay, "age = 61 AND role = 'guest' AND age > 50") == 0
    assert ask(overlay, "age = 62") == 1


@pytest.mark.parametrize("make", [adaptive, aggregated])
def test_whoever_comes_takes_it_back_along_the_whole_way(make: Make) -> None:
    overlay = chain(5, make)
    for router in range(1, 5):
        crowd(overlay, router)
    assert ask(overlay, "age = 61", 12) == 0
    handle = overlay.register(4, {"age": 61})
    overlay.run(5)
    assert ask(overlay, "age = 61") == 4
    overlay.update(handle, {"age": 60})
    overlay.run(20)
    assert ask(overlay, "age = 61", 16) == 0
    overlay.update(handle, {"age": 61})
    overlay.run(5)
    assert ask(overlay, "age = 61") == 4


@pytest.mark.parametrize("make", [adaptive, aggregated])
def test_who_cannot_know_does_not_say_it(make: Make) -> None:
    overlay = Overlay(4, lambda: make(AbsenceSettings(after=2)))  # a star; 0 asks, 2 and 3 hang on 1
    overlay.connect([(0, 1), (1, 2), (1, 3)])
    crowd(overlay, 2)
    crowd(overlay, 3)
    handle = overlay.register(2, {"age": 61})
    overlay.run(5)
    assert ask(overlay, "age = 61", 6) == 2  # never in vain at 2, not any more at 3
    assert [router.statistics().knowledge.absences_told for router in overlay.routers] == [0, 0, 0, 1]
    overlay.remove(handle)
    overlay.run(15)
    assert ask(overlay, "age = 61", 8) == 0


def test_what_saves_nothing_is_given_back_and_what_others_build_on_is_not() -> None:
    overlay = chain(3, adaptive, AbsenceSettings(after=2, window=10.0))
    crowd(overlay, 1)
    crowd(overlay, 2)
    assert ask(overlay, "age = 61", 8) == 0
    for _ in range(12):  # router 1 leaves out nothing, because router 0 does
        assert ask(overlay, "age = 61") == 0
        overlay.run(2)
    assert [router.statistics().knowledge.absences_heard for router in overlay.routers] == [1, 1, 0]
    overlay.run(60)
    assert [router.statistics().knowledge.absences_heard for router in overlay.routers] == [0, 0, 0]
    assert [router.statistics().knowledge.absences_told for router in overlay.routers] == [0, 0, 0]
    assert ask(overlay, "age = 61") == 2


def test_there_are_never_more_than_so_many() -> None:
    overlay = chain(2, aggregated, AbsenceSettings(after=1, most=3, window=100.0))
    crowd(overlay, 1)
    for age in range(61, 65):
        ask(overlay, f"age = {age}", 3)
    assert overlay.routers[1].statistics().knowledge.absences_told == 3
    assert [ask(overlay, f"age = {age}") for age in range(61, 65)] == [0, 0, 0, 1]


def test_within_a_service_area_positions_change_unheard_and_nobody_is_missed() -> None:
    area = Box(8.0, 49.0, 8.1, 49.1)
    overlay = Overlay(2, lambda: aggregated(AbsenceSettings(after=1)), lambda _: ServiceArea(area))
    overlay.connect([(0, 1)])
    handle = overlay.register(1, {"position": Point(49.01, 8.01), "age": 30})
    overlay.run(5)
    here = "S_WITHIN(position, BBOX(8.05, 49.05, 8.06, 49.06))"
    ask(overlay, f"{here} AND age = 30", 5)
    ask(overlay, f"{here} AND age = 31", 5)
    overlay.update(handle, {"position": Point(49.055, 8.055), "age": 30})
    overlay.run(5)
    event = overlay.publish(0, f"{here} AND age = 30")
    overlay.run(5)
    assert overlay.got(event) == [handle]


def test_a_word_that_cannot_be_true_is_counted_and_everything_is_asked_for() -> None:
    overlay = chain(2, aggregated)
    overlay.register(1, {"age": 61})
    overlay.run(5)
    number = int.from_bytes(overlay.routers[1].news("r000")[8:], "little")
    tree = overlay.routers[1]._tree.identity
    overlay.wires.links["r001"].post("r000", PORT, Nobody(tree=tree, number=number, conjunct="age = 61 OR age = 3"))
    overlay.run(2)
    assert overlay.routers[0].statistics().malformed == 1
    everybody_gets_it(overlay, [(0, "age = 61")])


@pytest.mark.parametrize("kind", [Somebody, Needless])
def test_who_was_told_nothing_says_nothing(kind: type[Somebody | Needless]) -> None:
    overlay = chain(2, aggregated)
    overlay.register(1, {"age": 61})
    overlay.run(5)
    number = int.from_bytes(overlay.routers[1].news("r000")[8:], "little")
    tree = overlay.routers[1]._tree.identity
    overlay.wires.links["r001"].post("r000", PORT, kind(tree=tree, number=number, conjunct="age = 61"))
    overlay.run(30)
    assert ask(overlay, "age = 61") == 1


def test_what_is_given_back_is_taken_back_in_order() -> None:
    """It may have been said once more while the answer was on its way; then it would be held, and nobody would look after it."""
    said: list[tuple[type[Absence], str]] = []
    absences = Absences(
        AbsenceSettings(after=1), possibly, lambda *_: False, lambda _, kind, text: said.append((kind, text))
    )
    absences.open(["r001"])
    absences.local("r000/1", {"age": 60})
    message = routed(Event("e", "news", 0, to="age = 61"), "r001")
    absences.came_in_vain("r001", message)
    absences.local("r000/1", {"age": 61})
    absences.local("r000/1", {"age": 60})
    for _ in range(2):
        absences.came_in_vain("r001", message)
    assert said == [(Nobody, "age = 61"), (Somebody, "age = 61"), (Nobody, "age = 61")]
    absences.hear("r001", Needless(tree=0, number=0, conjunct="age = 61"))  # of the first one
    assert said[3:] == [(Somebody, "age = 61")]
    assert absences.told == 0


def test_who_does_not_want_to_hear_of_it_may_be_told_all_the_same() -> None:
    made = iter([aggregated(None), aggregated(AbsenceSettings(after=1))])
    overlay = Overlay(2, lambda: next(made))
    overlay.connect([(0, 1)])
    crowd(overlay, 1)
    assert ask(overlay, "age = 61", 5) == 1


@pytest.mark.parametrize("make", [adaptive, aggregated])
def test_fewer_messages_for_fewer_words(make: Make) -> None:
    """Half of the messages ask for one of five ages that nobody has."""
    loads = []
    for absences in (None, AbsenceSettings()):
        overlay = Overlay(6, lambda absences=absences: make(absences), check_wire=False)  # type: ignore[misc]
        overlay.wires.longest = 1_000
        overlay.connect((number, number + 1) for number in range(5))
        random = Random(1)
        for router in range(6):
            crowd(overlay, router)
        before = load(overlay)
        for _ in range(400):
            age = random.choice([61, 62, 63, 64, 66]) if random.random() < 0.5 else random.randrange(10, 90)
            event = overlay.publish(random.randrange(6), f"age = {age}")
            overlay.run(0.5)
            assert overlay.got(event) == overlay.expected(random.randrange(6), event)
        loads.append(load(overlay) - before)
    without, with_them = loads
    assert with_them < 0.8 * without


def load(overlay: Overlay) -> int:
    return sum(
        statistics.forwarded + statistics.knowledge.updates_sent
        for statistics in (router.statistics() for router in overlay.routers)
    )


@pytest.mark.parametrize("make", [adaptive, aggregated])
@given(st.data(), st.integers(2, 5), st.integers(0, 2**32))
@settings(max_examples=10)
def test_with_contexts_and_messages_of_any_kind_nobody_is_missed(
    make: Make, data: st.DataObject, size: int, seed: int
) -> None:
    overlay = Overlay(size, lambda: make(AbsenceSettings(after=1)), seed=seed)
    overlay.connect(data.draw(edges_of(size)))
    asked = data.draw(messages(size, CITY, most=3))
    for change in data.draw(st.lists(changes(size, CITY), max_size=15)):
        changed(overlay, change)
        if data.draw(st.booleans()):
            overlay.publish(*data.draw(st.sampled_from(asked)))
    everybody_gets_it(overlay, [*asked, *asked])
    if overlay.contexts:
        handle = data.draw(st.sampled_from(sorted(overlay.contexts)))
        overlay.remove(handle)
        everybody_gets_it(overlay, asked)


@pytest.mark.parametrize("make", [adaptive, aggregated, as_written, both_chapters])
@pytest.mark.parametrize("trees", [False, True])
@pytest.mark.parametrize("loss", [0.0, 0.2])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=8)
def test_while_contexts_and_trees_change_and_words_are_lost_nobody_is_missed(
    make: Make, seed: int, loss: float, trees: bool
) -> None:
    restless(lambda: make(AbsenceSettings(after=1, window=2.0)), seed, loss=loss, trees=trees)


@pytest.mark.parametrize("wrong", [{"window": 0.0}, {"after": 0}, {"most": 0}])
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidSettings):
        AbsenceSettings(**wrong)


@pytest.mark.parametrize("make", [aggregated, both_chapters])
@pytest.mark.parametrize("seed", range(4))
def test_messages_that_wait_for_somebody_hear_that_nobody_is_not_so_any_more(make: Make, seed: int) -> None:
    life = Life(seed, lambda: make(AbsenceSettings(after=1, window=5.0)))
    life.live(12, 5)
    life.check()
