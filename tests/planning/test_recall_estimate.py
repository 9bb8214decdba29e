"""Recall as the broker estimates it, against the truth of synthetic walks."""

import math
from random import Random

import pytest

from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.geometry import Point, distance
from nearcast.model.subscription import Subscription
from nearcast.model.time import MICROSECONDS
from nearcast.planning.recall_estimate import REMEMBERED, RecallEstimator

RADIUS, CLIENTS, SECONDS, INTERVAL = 125.0, 40, 120, 5
WANTED = {"s": Subscription("t", area=Circle(RADIUS), id="s")}
DEGREE = 111_195.0


def place(x: float, y: float) -> Point:
    """Metres on a plane that is small enough to be one."""
    return Point(y / DEGREE, x / DEGREE)


class Walks:
    """Clients that walk straight, and events; nobody knows but the test."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.starts = [(random.uniform(0, 600), random.uniform(0, 600)) for _ in range(CLIENTS)]
        self.steps = [(random.uniform(-2, 2), random.uniform(-2, 2)) for _ in range(CLIENTS)]
        self.events = [
            Event(
                f"e{n}",
                "t",
                round(n * 0.25 * MICROSECONDS),
                place=place(random.uniform(0, 600), random.uniform(0, 600)),
            )
            for n in range(4 * SECONDS)
        ]

    def at(self, client: int, time: float) -> Point:
        (x, y), (vx, vy) = self.starts[client], self.steps[client]
        return place(x + vx * time, y + vy * time)

    def due(self, event: Event) -> list[str]:
        assert event.place is not None
        time = event.published / MICROSECONDS
        near = [n for n in range(CLIENTS) if distance(self.at(n, time), event.place) <= RADIUS]
        return [f"c{n}" for n in near]

    def estimate(self, estimator: RecallEstimator, told: list[list[list[str]]]) -> None:
        """Events and reports in the order of time; reports every few seconds, each client at its own time."""
        happenings = [(event.published, -1, number) for number, event in enumerate(self.events)]
        happenings += [
            (round((second + n / CLIENTS * INTERVAL) * MICROSECONDS), n, -1)
            for n in range(CLIENTS)
            for second in range(-INTERVAL, SECONDS + INTERVAL, INTERVAL)
        ]
        for time, client, number in sorted(happenings):
            if client < 0:
                estimator.published(self.events[number], told[number])
            else:
                estimator.reported(f"c{client}", time, self.at(client, time / MICROSECONDS), WANTED)


def test_for_straight_walks_the_estimate_is_the_truth() -> None:
    walks = Walks(1)
    everybody = [f"c{n}" for n in range(CLIENTS)]
    truth = [walks.due(event) for event in walks.events]
    # One candidate tells all, one nobody, one those with even numbers.
    even = everybody[::2]
    estimator = RecallEstimator(3)
    walks.estimate(estimator, [[everybody, [], even]] * len(truth))
    counts = estimator.take()
    total = sum(map(len, truth))
    # A client at the very border may fall to either side by rounding.
    assert counts.due == pytest.approx(total, abs=2)
    assert counts.found[:2] == (counts.due, 0)
    assert counts.found[2] == pytest.approx(sum(name in even for due in truth for name in due), abs=2)
    assert estimator.take().due == 0


@pytest.mark.parametrize("recall", [0.5, 0.9, 0.97])
def test_the_estimate_is_unbiased(recall: float) -> None:
    """Each pair is found with that probability: a binomial count, off by four standard deviations once in 16,000 times."""
    walks = Walks(2)
    told = [[[name for name in walks.due(event) if walks.random.random() < recall]] for event in walks.events]
    estimator = RecallEstimator(1)
    walks.estimate(estimator, told)
    counts = estimator.take()
    assert counts.due > 1000
    deviation = math.sqrt(recall * (1 - recall) / counts.due)
    assert counts.found[0] / counts.due == pytest.approx(recall, abs=4 * deviation)


def event_at(seconds: float, x: float = 0.0, publisher: str | None = None) -> Event:
    return Event("e", "t", round(seconds * MICROSECONDS), place=place(x, 0), publisher=publisher)


def reported(estimator: RecallEstimator, seconds: float, x: float, **more: bool) -> None:
    estimator.reported("c", round(seconds * MICROSECONDS), place(x, 0), WANTED, **more)


def test_nothing_is_learned_between_reports_that_are_far_apart() -> None:
    estimator = RecallEstimator(1, longest=15.0)
    reported(estimator, 0, 0)
    estimator.published(event_at(10), [["c"]])
    reported(estimator, 20, 0)
    assert estimator.take().due == 0


def test_unless_silence_means_that_the_client_stays() -> None:
    estimator = RecallEstimator(1, longest=15.0)
    reported(estimator, 0, 0)
    for seconds, x in ((10, 0.0), (10, 200.0), (59, 200.0)):
        estimator.published(event_at(seconds, x), [["c"]])
    # It has set out 15 s ago at most: at 10 s it was still at 0, at 59 s nearly at 200.
    reported(estimator, 60, 200, stays=True)
    assert estimator.take().due == 2


def test_after_a_restart_earlier_reports_count_no_more() -> None:
    estimator = RecallEstimator(1)
    reported(estimator, 0, 0)
    estimator.restart()
    estimator.published(event_at(2), [["c"]])
    reported(estimator, 5, 0)
    assert estimator.take().due == 0


def test_own_events_and_events_that_are_too_old_do_not_count() -> None:
    estimator = RecallEstimator(1, longest=600.0)
    reported(estimator, 0, 0)
    estimator.published(event_at(1), [["c"]])
    estimator.published(event_at(200, publisher="c"), [["c"]])
    estimator.expire(round(2 * MICROSECONDS) + REMEMBERED)
    reported(estimator, 300, 0)
    assert estimator.take().due == 0
