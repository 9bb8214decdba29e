"""The demo's check is right: what it calls due, too far or lost is so whenever each report began to count."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.cli.demo.witness import BORDER, PATIENCE, RADIUS, Flight, Report, Witness

ADA, BOB, EVE = 1, 2, 3


class Scene:
    """A witness, its clock, and short words for what people do."""

    def __init__(self) -> None:
        self._now = 0.0
        self.witness = Witness(lambda: self._now)

    def at(self, time: float) -> Witness:
        self._now = time
        return self.witness

    def stands(self, person: int, east: float, *, said: float, heard: float) -> None:
        report = self.at(said).reports(person, east, 0.0)
        self.at(heard).confirm(report)

    def listening(self, person: int, east: float) -> None:
        self.stands(person, east, said=0.0, heard=1.0)
        self.witness.listens(person)

    def said(self, began: float, ended: float) -> Flight:
        flight = self.at(began).publishes(f"said at {began}", EVE, 0.0, 0.0)
        self.at(ended).published(flight)
        return flight


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_who_is_near_all_the_time_must_get_it_and_who_is_far_must_not(scene: Scene) -> None:
    scene.listening(ADA, RADIUS - 2 * BORDER)
    scene.listening(BOB, RADIUS + 2 * BORDER)
    flight = scene.said(10, 11)
    assert (flight.due, flight.possible) == ({ADA}, {ADA})
    scene.witness.gets(ADA, flight.id)
    scene.witness.gets(BOB, flight.id)
    seen = scene.witness.statistics()
    assert (seen.certain, seen.awaited, seen.deliveries, seen.strays) == (1, 0, 2, 1)


def test_who_comes_too_early_is_judged_when_the_broker_has_confirmed(scene: Scene) -> None:
    scene.listening(ADA, 0)
    scene.listening(BOB, 10 * RADIUS)
    flight = scene.at(10).publishes("early", EVE, 0.0, 0.0)
    scene.witness.gets(ADA, flight.id)
    scene.witness.gets(BOB, flight.id)
    scene.at(11).published(flight)
    seen = scene.witness.statistics()
    assert (seen.certain, seen.awaited, seen.strays) == (1, 0, 1)


@pytest.mark.parametrize(("said", "heard"), [(9.0, 10.5), (10.5, 10.6), (9.0, 12.0)])
def test_of_whoever_moves_away_meanwhile_nothing_is_certain(said: float, heard: float, scene: Scene) -> None:
    scene.listening(ADA, 0)
    report = scene.at(said).reports(ADA, 10 * RADIUS, 0.0)
    flight = scene.at(10).publishes("moving", EVE, 0.0, 0.0)
    if heard < 11:
        scene.at(heard).confirm(report)
    scene.at(11).published(flight)
    assert (flight.due, flight.possible) == (set(), {ADA})


def test_what_was_due_and_does_not_come_is_lost(scene: Scene) -> None:
    scene.listening(ADA, 0)
    flight = scene.said(10, 11)
    scene.at(11 + PATIENCE - 0.1).give_up()
    assert scene.witness.owes(ADA)
    assert scene.witness.statistics().lost == 0
    scene.at(11 + PATIENCE).give_up()
    assert not scene.witness.owes(ADA)
    assert scene.witness.statistics().lost == 1
    assert flight.due == set()


def test_what_comes_twice_is_doubled_for_the_application_and_on_the_wire(scene: Scene) -> None:
    scene.listening(ADA, 0)
    flight = scene.said(10, 11)
    scene.witness.gets(ADA, flight.id)
    scene.witness.gets(ADA, flight.id)
    scene.witness.doubles(3)
    assert scene.witness.statistics().doubled == 4


def test_nothing_is_due_to_publishers_newcomers_and_leavers(scene: Scene) -> None:
    for person in (ADA, BOB, EVE):
        scene.stands(person, 0, said=0, heard=1)
    scene.at(10.5).listens(ADA)
    scene.at(2).listens(BOB)
    scene.at(2).listens(EVE)
    flight = scene.at(10).publishes("said", EVE, 0.0, 0.0)
    scene.at(10.7).goes(BOB)
    scene.at(11).published(flight)
    assert flight.due == set()


def test_what_was_due_before_somebody_left_stays_due(scene: Scene) -> None:
    scene.listening(ADA, 0)
    flight = scene.said(10, 11)
    scene.at(12).goes(ADA)
    assert flight.due == {ADA}


def test_events_of_nobody_in_the_city_are_only_noted(scene: Scene) -> None:
    scene.listening(ADA, 0)
    scene.witness.gets(ADA, "siren")
    assert scene.witness.others == {"siren": {ADA}}
    assert scene.witness.statistics().deliveries == 0


SAYS, IS_HEARD, LISTENS, PUBLISHES, IS_PUBLISHED = range(5)
"""In this order, should they happen at the same time."""


def played(scene: Scene, happenings: list[tuple[float, int, int]], places: list[float]) -> Flight:
    """Time, what, and the number of the report."""
    given_reports: dict[int, Report] = {}
    flight = Flight("", EVE, 0, 0, 0)
    for at, what, number in happenings:
        witness = scene.at(at)
        if what == SAYS:
            given_reports[number] = witness.reports(ADA, places[number], 0.0)
        elif what == IS_HEARD:
            witness.confirm(given_reports[number])
        elif what == LISTENS:
            witness.listens(ADA)
        elif what == PUBLISHES:
            flight = witness.publishes("event", EVE, 0.0, 0.0)
        else:
            witness.published(flight)
    return flight


moments = st.floats(0, 1)


@given(
    reports=st.lists(st.tuples(st.floats(-2 * RADIUS, 2 * RADIUS), moments, moments, moments), min_size=1, max_size=8),
    event=st.tuples(st.floats(0, 30), st.floats(0, 5), moments),
)
def test_whenever_each_report_began_to_count_the_true_receiver_lies_between_due_and_possible(
    reports: list[tuple[float, float, float, float]], event: tuple[float, float, float]
) -> None:
    """Of each report: where, how long after the last one, how long until it was heard, and when between the two it counted."""
    scene, time = Scene(), 0.0
    happenings: list[tuple[float, int, int]] = []
    counted: list[tuple[float, float]] = []
    for number, (east, pause, wait, share) in enumerate(reports):
        said = time + 4 * pause
        time = said + wait
        counted.append((said + wait * share, east))
        happenings += [(said, SAYS, number), (time, IS_HEARD, number)]
    ready = happenings[1][0]
    began, length = ready + event[0], event[1]
    happenings += [(ready, LISTENS, 0), (began, PUBLISHES, 0), (began + length, IS_PUBLISHED, 0)]
    flight = played(scene, sorted(happenings), [east for east, *_ in reports])
    moment = began + length * event[2]
    position = [east for at, east in counted if at <= moment][-1]
    truly = {ADA} if math.fabs(position) <= RADIUS else set()
    assert flight.due <= truly <= flight.possible
