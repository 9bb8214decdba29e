"""What the demo is made of: the city, the broker's settings, the meter, the canvas, and what counts as a failure."""

from pathlib import Path

import numpy as np
import pytest

from nearcast.broker.settings import load
from nearcast.cli.demo.analyst import Analyst
from nearcast.cli.demo.broker import LADDER, BrokerStatus, DemoBroker, settings, territory
from nearcast.cli.demo.canvas import Canvas
from nearcast.cli.demo.city import HALF_HEIGHT, HALF_WIDTH, MARKET, PLACES, City, metres_of, nearest_place, point_at
from nearcast.cli.demo.crowd import CrowdStatistics
from nearcast.cli.demo.meter import Counts, Meter
from nearcast.cli.demo.person import PersonStatistics
from nearcast.cli.demo.play import ACTS, Play
from nearcast.cli.demo.summary import insist, summary
from nearcast.cli.demo.witness import WitnessStatistics
from nearcast.dissemination.broker_state import square_kilometres
from nearcast.errors import NearcastError

PEOPLE = 100


def status(scheme: str, *, regions: int = 0, bytes_in: int = 0, bytes_out: int = 0) -> BrokerStatus:
    return BrokerStatus(
        scheme,
        following=0,
        elsewhere=0,
        regions=regions,
        waiting=0,
        transitions=0,
        bytes_in=bytes_in,
        bytes_out=bytes_out,
    )


def crowd(connected: int = 10, **people: int) -> CrowdStatistics:
    return CrowdStatistics(connected, connected, PersonStatistics(**people))


def seen(published: int = 0) -> WitnessStatistics:
    return WitnessStatistics(published, 0, 0, 0, 0, 0, 0)


def quiet_play(analyst: Analyst | None = None) -> Play:
    """Before anything happens; there is no broker."""
    broker = DemoBroker(PEOPLE)
    broker._ports["mqtt"] = 1
    return Play(broker, PEOPLE, 10.0, analyst)


def test_the_rules_lead_up_and_down_the_ladder(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text(settings(PEOPLE))
    schemes = load(tmp_path / "settings.toml").schemes
    steps = schemes.transition_rules()
    assert (str(schemes.initial()), *(str(step.scheme) for step in steps)) == LADDER
    area = square_kilometres(territory())
    thresholds = [step.condition.threshold * area for step in steps]
    fewest, most = min(act.people for act in ACTS) * PEOPLE, max(act.people for act in ACTS) * PEOPLE
    assert fewest < thresholds[0] < thresholds[1] < most
    back = [step.condition.back_at for step in steps]
    assert all(each is not None and each * area > fewest for each in back)


def test_a_market_day_draws_people_to_the_market_and_nobody_leaves_the_city() -> None:
    city = City(PEOPLE)
    east, north = list(PLACES.values())[MARKET]

    def near_the_market() -> int:
        return int((np.hypot(city.east - east, city.north - north) < 400).sum())

    for person in range(PEOPLE):
        city.enter(person)
    before = near_the_market()
    city.market_day = True
    for _ in range(1_000):
        city.step(1.0)
        assert (np.abs(city.east) <= HALF_WIDTH).all()
        assert (np.abs(city.north) <= HALF_HEIGHT).all()
    assert near_the_market() > PEOPLE / 2 > before


def test_places_are_found_again_by_what_lies_near_them() -> None:
    for name, (east, north) in PLACES.items():
        assert metres_of(point_at(east, north)) == pytest.approx((east, north))
        assert nearest_place(point_at(east + 100.0, north - 50.0)) == name


def test_a_demonstration_in_which_spark_plans_nothing_has_failed() -> None:
    play = quiet_play(Analyst())
    play.witness.confirm(play.witness.reports(1, 0.0, 0.0))
    for scheme in (*LADDER, *reversed(LADDER)):
        play.meter.read(status(scheme), crowd(), seen())
    with pytest.raises(NearcastError, match="no plan of Spark's"):
        insist(play, [])


def test_who_is_away_does_not_move() -> None:
    city = City(2)
    city.enter(0)
    before = city.where(0), city.where(1)
    city.step(1.0)
    assert city.where(0) != before[0]
    assert city.where(1) == before[1]


def test_costs_belong_to_the_scheme_under_which_they_arose() -> None:
    time = 0.0
    meter = Meter(lambda: time)
    assert meter.read(status("A", bytes_in=5, bytes_out=7), crowd(), seen()) is None
    time = 2.0
    change = meter.read(
        status("B", bytes_in=15, bytes_out=107), crowd(delivered=4, unwanted=4, context_messages=6), seen(2)
    )
    assert change is not None
    assert (change.at, change.before, change.after, change.people) == (2.0, "A", "B", 10)
    time = 3.0
    meter.read(status("B", bytes_in=15, bytes_out=207), crowd(delivered=5, unwanted=4, context_messages=6), seen(3))
    assert meter.by_scheme["A"] == Counts(2.0, 2, 4, 4, 100, 10, 6)
    assert meter.by_scheme["B"] == Counts(1.0, 1, 1, 0, 100, 0, 0)
    assert meter.total == meter.by_scheme["A"] + meter.by_scheme["B"]
    assert meter.by_scheme["A"].precision == 0.5
    assert meter.by_scheme["A"].bytes_per_delivery == 110 / 4
    assert meter.lately == meter.total
    for time in (4.0, 5.0, 6.0, 7.0):  # noqa: B007 - the clock reads it
        meter.read(status("B", regions=2), crowd(), seen())
    assert meter.lately.seconds == 3.0
    assert meter.by_scheme["B+regions"].seconds == 3.0


def test_a_demonstration_in_which_nothing_changes_has_failed() -> None:
    with pytest.raises(NearcastError, match="did not go from"):
        insist(quiet_play(), [])


@pytest.mark.parametrize(("what", "said"), [("lost", "1 lost, 0 doubled"), ("doubled", "0 lost, 1 doubled")])
def test_a_demonstration_that_loses_or_doubles_something_has_failed(what: str, said: str) -> None:
    play = quiet_play()
    if what == "doubled":
        play.witness.doubles(1)
    else:
        play.witness.confirm(play.witness.reports(1, 0.0, 0.0))
        play.witness.listens(1)
        play.witness.published(play.witness.publishes("event", 2, 0.0, 0.0))
        play.witness.give_up(0.0)
    assert said in "\n".join(summary(play))
    with pytest.raises(NearcastError, match=said):
        insist(play, [])


def test_a_canvas_draws_what_lies_inside_round_and_to_scale() -> None:
    canvas = Canvas(10, 5, -10, -10, 10, 10)
    canvas.dots([0.0, 100.0], [0.0, 0.0], "red")
    assert sum(line.plain.count("⠀") for line in canvas.lines()) == 49
    large = Canvas(40, 20, -10, -10, 10, 10)
    large.circle(0, 0, 8, "red")
    drawn = np.array([[letter != "⠀" for letter in line.plain] for line in large.lines()])
    columns, rows = drawn.any(axis=0).sum(), drawn.any(axis=1).sum()
    assert abs(columns - 2 * rows) <= 2, "a character is twice as high as it is wide"
    large.text(8, 0, "over the edge", "bold")
    assert large.lines()[10].plain.endswith("over")
