"""Workloads: who publishes what, where and when."""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import pytest
from tests.scenario.worlds import PLANE, START, SmallWorld

from nearcast.dissemination.publisher import LocationRequest
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.geometry import distance
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.ports import Accuracy
from nearcast.runtime.random import RandomStreams
from nearcast.runtime.simulation.plane import Bounds
from nearcast.runtime.simulation.streets.graph import AttractionPoint
from nearcast.scenario.operations import payload
from nearcast.scenario.reading import parse
from nearcast.scenario.workload import Application
from nearcast.scenario.workloads import Workloads

BOUNDS = Bounds.around(1300.0, 1300.0)
POINTS = [AttractionPoint("a", 0.0, 0.0), AttractionPoint("b", 100.0, 0.0, weight=3.0)]


class Game(SmallWorld):
    """The clients of a scenario, with its workloads."""

    def __init__(self, text: str, clients: int, seed: int = 1) -> None:
        scenario = parse(text, changes={"clients.number": clients})
        self.told: list[tuple[Event, str]] = []
        workloads = Workloads(
            scenario,
            clients=scenario.clients.names(),
            random=RandomStreams(seed),
            plane=PLANE,
            bounds=BOUNDS,
            points=POINTS,
            published=lambda event, kind: self.told.append((event, kind)),
        )
        super().__init__(scenario.clients.names(), workloads.applications, seed)

    def go(self, seconds: float) -> "Game":
        self.join()
        self.run(seconds)
        return self


def test_every_client_subscribes_around_itself() -> None:
    game = Game("[clients]\nlocation_interval = '3 s'\naccuracy = 'low'\n[[workload]]\nradius = '150 m'", 2).go(0.001)
    subscriptions = [one for one in game.diary.heard if one.what == "subscribe"]
    assert [one.client for one in subscriptions] == ["client-0", "client-1"]
    for one in subscriptions:
        assert one.subscription is not None
        assert (one.subscription.topic, one.subscription.area) == ("ar", Circle(150.0))
        assert one.subscription.no_local
        assert one.request == LocationRequest(3.0, Accuracy.LOW)


def test_ar_events_happen_where_their_publisher_is() -> None:
    game = Game("", 3).go(10.0)
    assert len(game.diary.published()) == 30
    for one in game.diary.published():
        assert one.local
        assert one.event is not None
        assert one.event.place == PLANE.to_point(10.0 * int(one.client[-1]), 0.0)
        assert (one.event.publisher, one.event.published, one.event.topic) == (one.client, one.time, "ar")


def test_periodic_events_come_at_the_rate_and_at_a_phase_of_their_own() -> None:
    game = Game("[[workload]]\nrate = '4/s'", 200).go(10.0)
    phases = []
    for client in game.hosts:
        seconds = game.diary.seconds(client)
        assert len(seconds) == 40
        assert all(b - a == pytest.approx(0.25, abs=1e-6) for a, b in pairwise(seconds))
        phases.append(seconds[0] / 0.25)
    assert_uniform(phases, 10)


def test_poisson_events_come_at_the_rate_and_without_memory() -> None:
    game = Game("[[workload]]\nrate = '2/s'\ntiming = 'poisson'", 100).go(50.0)
    counts = [len(game.diary.seconds(client)) for client in game.hosts]
    # 10,000 expected, standard deviation 100: five of them.
    assert sum(counts) == pytest.approx(10_000, abs=500)
    # A Poisson count varies as much as its mean, 100; the sample variance of 100 counts has a standard deviation of about 14.
    mean = sum(counts) / len(counts)
    variance = sum((count - mean) ** 2 for count in counts) / (len(counts) - 1)
    assert variance == pytest.approx(100.0, abs=5 * 14.3)
    gaps = [b - a for client in game.hosts for a, b in pairwise(game.diary.seconds(client))]
    # Exponential gaps of mean 1/2 s become uniform by their own distribution function.
    assert_uniform([1.0 - math.exp(-2.0 * gap) for gap in gaps], 20)


def test_lbs_events_happen_at_attraction_points_by_weight() -> None:
    game = Game("[[workload]]\nkind = 'LBS'", 100).go(40.0)
    counts = Counter(event.place for event in game.diary.events())
    places = [PLANE.to_point(point.x, point.y) for point in POINTS]
    assert set(counts) == set(places)
    # 4,000 draws with probability 3/4: standard deviation sqrt(4000 * 3/16) = 27.4; five of them.
    assert counts[places[1]] == pytest.approx(3000, abs=137)
    assert not any(one.local for one in game.diary.published())


def test_rnd_events_happen_anywhere_alike() -> None:
    game = Game("[[workload]]\nkind = 'RND'", 100).go(40.0)
    xys = [PLANE.to_xy(event.place) for event in game.diary.events() if event.place]
    assert len(xys) == 4000
    assert all(BOUNDS.contains(round(x, 3), round(y, 3)) for x, y in xys)
    columns = [math.floor((x - BOUNDS.west) / BOUNDS.width * 5) for x, _ in xys]
    rows = [math.floor((y - BOUNDS.south) / BOUNDS.height * 5) for _, y in xys]
    assert_uniform([(5 * row + column + 0.5) / 25 for row, column in zip(rows, columns, strict=True)], 25)
    assert not any(one.local for one in game.diary.published())


def test_only_a_share_publishes_but_all_listen() -> None:
    game = Game("[[workload]]\npublishers = '30 %'", 50).go(3.0)
    assert len({one.client for one in game.diary.published()}) == 15
    assert len([one for one in game.diary.heard if one.what == "subscribe"]) == 50


def test_publishing_starts_and_ends_when_it_should() -> None:
    for timing in ("periodic", "poisson"):
        game = Game(f"[[workload]]\nstart = '10 s'\nend = '20 s'\nrate = '5/s'\ntiming = '{timing}'", 20).go(40.0)
        seconds = [second for client in game.hosts for second in game.diary.seconds(client)]
        assert 10.0 <= min(seconds) < 10.5
        assert 19.5 < max(seconds) < 20.0


def test_ids_are_unique_even_for_those_who_return() -> None:
    game = Game("[[workload]]\n[[workload]]\nkind = 'RND'", 3).go(5.0)
    game.hosts["client-1"].fail()
    game.run(6.0)
    game.hosts["client-1"].join()
    game.run(10.0)
    ids = [event.id for event in game.diary.events()]
    assert len(ids) == len(set(ids)) > 40
    mine = [one.event.id for one in game.diary.published("client-1") if one.event]
    assert mine == [f"client-1/{number}" for number in range(1, len(mine) + 1)]
    # A new life draws a new phase: the client does not repeat itself.
    assert len({round(second % 1.0, 6) for second in game.diary.seconds("client-1")}) > 2


def test_payloads_have_their_size_and_share_their_bytes() -> None:
    game = Game("[[workload]]\npayload = '1 kB'", 2).go(3.0)
    events = game.diary.events()
    assert {len(event.payload) for event in events} == {1000}
    assert len({id(event.payload) for event in events}) == 1
    assert payload(5) == bytes(5)


def test_every_event_is_told_of_before_it_is_sent() -> None:
    game = Game("[[workload]]\n[[workload]]\nkind = 'LBS'", 3).go(3.0)
    assert [event for event, _ in game.told] == game.diary.events()
    assert Counter(kind for _, kind in game.told) == {"AR": 9, "LBS": 9}
    assert all(event.topic == kind.lower() for event, kind in game.told)


def test_a_seed_decides_everything() -> None:
    text = "[[workload]]\nkind = 'RND'\npublishers = 0.5\ntiming = 'poisson'"
    first, again, other = (Game(text, 10, seed).go(5.0).diary.heard for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_applications_count_what_they_do() -> None:
    game = Game("", 1).go(10.0)
    host = game.hosts["client-0"].host
    assert host is not None
    statistics = host.component(Application).statistics()
    assert (statistics.published, statistics.received, statistics.without_position) == (10, 0, 0)


def test_events_of_two_workloads_have_their_own_topics_and_places() -> None:
    game = Game("[[workload]]\n[[workload]]\nkind = 'LBS'\nrate = '2/s'\ntopic = 'sights'", 5).go(4.0)
    assert Counter(event.topic for event in game.diary.events()) == {"ar": 20, "sights": 40}
    for event in game.diary.events():
        assert event.place is not None
        near = min(distance(event.place, PLANE.to_point(point.x, point.y)) for point in POINTS)
        assert event.topic == "ar" or near == 0.0


def assert_uniform(shares: Sequence[float], cells: int) -> None:
    """Chi-square of numbers from 0 to 1 in so many cells, within five standard deviations of its mean."""
    assert all(0.0 <= share <= 1.0 for share in shares)
    counts = Counter(min(math.floor(share * cells), cells - 1) for share in shares)
    expected = len(shares) / cells
    chi_square = sum((counts[cell] - expected) ** 2 / expected for cell in range(cells))
    # Mean `cells - 1`, variance twice that.
    assert abs(chi_square - (cells - 1)) < 5 * math.sqrt(2 * (cells - 1))


def test_time_counts_from_the_start_of_the_run() -> None:
    game = Game("[[workload]]\nstart = '2 s'", 1).go(5.0)
    assert all(event.published >= START + 2 * MICROSECONDS for event in game.diary.events())
