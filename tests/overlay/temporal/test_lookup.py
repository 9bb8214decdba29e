"""Questions and answers: who collects where, and what happens when somebody is gone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec
import pytest
from tests.overlay.temporal.worlds import Town, inside

from nearcast.model.temporal import TemporalPredicate
from nearcast.overlay.routing.wire import routed
from nearcast.overlay.temporal.messages import FULLY, NOT_AT_ALL, Answer, Question, Resolution
from nearcast.overlay.temporal.settings import TemporalSettings
from nearcast.overlay.temporal.xcast import Xcast
from nearcast.runtime.ports import Sending
from nearcast.runtime.simulation.network import Parcel

#      0
#     / \
#    1   2
#   / \   \
#  3   4   5
#     / \
#    6   7
EDGES = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 5), (4, 6), (4, 7)]
LEAVES = (3, 5, 6, 7)


class Crowd(Town):
    """Somebody at each leaf; what passes between routers is written down."""

    def __init__(self, depth: int, *, at: tuple[int, ...] = LEAVES, patience: float = 60.0) -> None:
        settings = TemporalSettings(depth=depth, settling=3.0, patience=patience)
        super().__init__(8, EDGES, settings, trusted=(0, 2, 6))
        self.sent: list[Parcel] = []
        transmit = self.wires.transmit

        def noted(parcel: Parcel) -> Sending:
            self.sent.append(parcel)
            return transmit(parcel)

        for number in at:
            person = self.person(f"p{number}", (0, 2, 6)[number % 3])
            person.register("me", {"a": 1})
            person.go(self.names[number], inside(number))
        self.began = self.now
        self.run(60)
        self.wires.transmit = noted  # type: ignore[method-assign]
        self.resolving: list[str] = []
        for name, temporal in self.temporal.items():
            temporal.xcast.send = self._noted(name, temporal.xcast)  # type: ignore[method-assign]

    def _noted(self, name: str, xcast: Xcast) -> Callable[..., None]:
        send = xcast.send

        def noted(*arguments: object, **named: object) -> None:
            self.resolving.append(name)
            send(*arguments, **named)  # type: ignore[arg-type]

        return noted

    def ask(self, router: int = 0) -> None:
        event = self.event("a = 1", TemporalPredicate("overlaps", self.began, self.began + 10_000_000))
        self.publish(router, event)
        self.everybody = self.expected(event)
        self.run(40)
        self.got = self.receivers(event)

    def count(self, kind: type) -> int:
        return sum(isinstance(parcel.message, kind) for parcel in self.sent)


@pytest.mark.parametrize(
    ("depth", "resolving"),
    [
        (FULLY, ["r000"]),
        (2, ["r001", "r002"]),
        (3, ["r003", "r004", "r005"]),
        (4, ["r003", "r005", "r006", "r007"]),
        (NOT_AT_ALL, ["r003", "r005", "r006", "r007"]),
    ],
)
def test_answers_are_collected_from_the_nth_branching_point_on(depth: int, resolving: list[str]) -> None:
    town = Crowd(depth)
    town.ask()
    assert town.got == town.everybody == [f"p{number}" for number in LEAVES]
    assert sorted(town.resolving) == resolving
    # Only where one has collected all, nothing else is to be waited for.
    wholes = {parcel.message.whole for parcel in town.sent if isinstance(parcel.message, Resolution)}
    assert wholes == {depth == FULLY}


def test_the_more_is_collected_the_fewer_messages_are_sent() -> None:
    totals = []
    for depth in (FULLY, 2, 3, NOT_AT_ALL):
        town = Crowd(depth)
        town.ask()
        assert town.got == town.everybody
        totals.append(town.count(Resolution))
    assert totals == sorted(totals)
    assert totals[0] < totals[-1]


@pytest.mark.parametrize("depth", [FULLY, 2, NOT_AT_ALL])
def test_each_link_carries_a_question_and_a_resolution_of_one_collector_once(depth: int) -> None:
    town = Crowd(depth)
    town.ask()
    questions = Counter((p.sender.address, p.receiver) for p in town.sent if isinstance(p.message, Question))
    assert set(questions.values()) == {1}
    assert len(questions) == len(EDGES)
    if depth == FULLY:
        resolutions = Counter((p.sender.address, p.receiver) for p in town.sent if isinstance(p.message, Resolution))
        assert set(resolutions.values()) == {1}
        assert set(resolutions) == {("r000", "r002"), ("r000", "r001"), ("r001", "r004"), ("r004", "r006")}


def test_a_question_that_concerns_one_place_goes_straight_there_and_the_answer_is_whole() -> None:
    town = Crowd(FULLY)
    event = town.event(
        "a = 1 AND S_WITHIN(position, BBOX(0.032, 0.001, 0.038, 0.009))",
        TemporalPredicate("during", town.began - 1, town.now),
    )
    town.publish(5, event)
    town.run(20)
    ways = {(p.sender.address, p.receiver) for p in town.sent if isinstance(p.message, Question)}
    assert ways == {("r005", "r002"), ("r002", "r000"), ("r000", "r001"), ("r001", "r003")}
    wholes = [p.message.whole for p in town.sent if isinstance(p.message, Resolution)]
    assert wholes == [True] * len(wholes)
    assert town.temporal["r003"].lookup.statistics.searched == 1


def test_who_is_gone_is_waited_for_in_vain_and_all_others_get_the_message() -> None:
    town = Crowd(FULLY)
    town.world.hosts["r007"].fail()
    town.ask()
    assert town.everybody == ["p3", "p5", "p6", "p7"]
    assert town.got == ["p3", "p5", "p6"]
    assert town.resolving == ["r000"]
    # The router above it noticed by its silence; nobody's patience had to end.
    assert {temporal.lookup.statistics.given_up for temporal in town.temporal.values()} == {0}


def test_who_waits_too_long_answers_with_what_it_has_and_passes_on_what_comes_late() -> None:
    town = Crowd(FULLY, patience=8.0)
    town.world.hosts["r007"].fail()
    town.ask()
    assert town.got == ["p3", "p5", "p6"]
    statistics = {name: temporal.lookup.statistics for name, temporal in town.temporal.items()}
    assert statistics["r004"].given_up
    assert statistics["r001"].given_up
    assert statistics["r000"].late
    assert not any(parcel.message.whole for parcel in town.sent if isinstance(parcel.message, Resolution))


def test_when_who_collects_fails_those_who_answer_resolve_by_themselves() -> None:
    town = Crowd(FULLY, at=(3, 6, 7))
    event = town.event("a = 1", TemporalPredicate("overlaps", town.began, town.began + 10_000_000))
    town.publish(5, event)  # its own router collects, and fails before anybody could answer
    while not town.count(Question):
        town.run(0.001)
    town.run(0.35)
    town.world.hosts["r005"].fail()
    town.run(60)
    assert town.receivers(event) == ["p3", "p6", "p7"]


def test_a_question_finds_its_way_when_the_tree_changes_under_it() -> None:
    town = Crowd(FULLY, at=(3, 6, 7))
    town.world.hosts["r001"].fail()
    event = town.event("a = 1", TemporalPredicate("overlaps", town.began, town.began + 10_000_000))
    town.publish(0, event)
    town.run(4)
    town.names.remove("r001")
    del town.routers["r001"]
    town.connect([(0, 1), (0, 2), (2, 3), (1, 4), (3, 5), (3, 6)])  # by place in the list of those who are left
    town.run(80)
    assert town.receivers(event) == ["p3", "p6", "p7"]


def test_who_answers_elsewhere_does_not_say_that_there_is_nothing_more_to_come() -> None:
    """Its answer goes to whoever asked first, perhaps later: until then nobody knows the whole."""
    town = Crowd(FULLY)
    event = town.event("a = 1", TemporalPredicate("during", town.began - 1, town.now))
    question = Question(
        message=routed(event, "r000"), depth=FULLY, patience=9_000_000, points=("r001",), branch="r003"
    )  # fmt: skip
    for number in (1, 2):
        town.temporal["r003"]._receive("r001", msgspec.structs.replace(question, number=number))
    answers = [parcel.message for parcel in town.sent if isinstance(parcel.message, Answer)]
    assert [(bool(answer.spans), answer.whole) for answer in answers] == [(True, True), (False, False)]
