"""What the demo is made of: the city, the broker's settings, the meter, the canvas, and what counts as a failure."""

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import pytest
from tests.waiting import PATIENCE

from nearcast.broker.settings import load
from nearcast.cli.demo.analyst import Analyst
from nearcast.cli.demo.broker import LADDER, BrokerStatus, DemoBroker, settings, territory
from nearcast.cli.demo.browser import has_display
from nearcast.cli.demo.canvas import Canvas
from nearcast.cli.demo.city import City, Trip
from nearcast.cli.demo.cost import usage
from nearcast.cli.demo.crowd import CrowdStatistics
from nearcast.cli.demo.ground import HELSINKI, MADE_UP, scenario
from nearcast.cli.demo.meter import Counts, Meter
from nearcast.cli.demo.person import PersonStatistics
from nearcast.cli.demo.places import BRIDGE, HALF, MARKET, PLACES, metres_of, nearest_place, point_at
from nearcast.cli.demo.play import ACTS, Play
from nearcast.cli.demo.streets import Streets, read_streets
from nearcast.cli.demo.summary import insist, summary
from nearcast.cli.demo.visits import addressed_to_the_bridge
from nearcast.cli.demo.witness import WitnessStatistics
from nearcast.dissemination.broker_state import square_kilometres
from nearcast.errors import NearcastError
from nearcast.model.delivery import receivers
from nearcast.model.event import Event
from nearcast.model.history import History
from nearcast.model.subscription import Subscription
from nearcast.model.values import Path as TypedPath
from nearcast.scenario.ground import ground_of
from nearcast.scenario.reading import read as read_scenario

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


@pytest.fixture
def quiet_play(streets: Streets) -> Callable[..., Play]:
    """Before anything happens; there is no broker."""

    def made(analyst: Analyst | None = None) -> Play:
        broker = DemoBroker(PEOPLE)
        broker._ports["mqtt"] = 1
        return Play(broker, streets, PEOPLE, 10.0, analyst)

    return made


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


def test_a_market_day_draws_people_to_the_market_and_nobody_leaves_the_city(streets: Streets) -> None:
    city = City(PEOPLE, streets)

    def near_the_market() -> int:
        return int((np.hypot(city.east - MARKET.east, city.north - MARKET.north) < 200).sum())

    for person in range(PEOPLE):
        city.enter(person)
    before = near_the_market()
    city.market_day = True
    for _ in range(300):
        city.step(1.0)
        assert (np.abs(city.east) <= HALF).all()
        assert (np.abs(city.north) <= HALF).all()
    assert near_the_market() > PEOPLE / 2 > before


def test_places_are_found_again_by_what_lies_near_them() -> None:
    for place in PLACES:
        assert metres_of(place.point) == pytest.approx(place.metres)
        assert nearest_place(point_at(place.east + 20.0, place.north - 20.0)) == place.name


def test_a_demonstration_in_which_spark_plans_nothing_has_failed(quiet_play: Callable[..., Play]) -> None:
    play = quiet_play(Analyst())
    play.witness.confirm(play.witness.reports(1, 0.0, 0.0))
    for scheme in (*LADDER, *reversed(LADDER)):
        play.meter.read(status(scheme), crowd(), seen())
    with pytest.raises(NearcastError, match="no plan of Spark's"):
        insist(play, [])


def test_who_is_away_does_not_move(streets: Streets) -> None:
    city = City(2, streets)
    city.enter(0)
    before = city.where(0), city.where(1)
    city.step(1.0)
    assert city.where(0) != before[0]
    assert city.where(1) == before[1]


def test_a_trip_takes_as_long_as_its_way_and_turns_at_its_corners() -> None:
    trip = Trip(0.0, 0.0)
    trip.go([(0.0, 0.0), (30.0, 0.0), (30.0, 40.0)])
    assert not trip.advance(50.0)
    assert (trip.east, trip.north) == (30.0, 20.0)
    assert trip.advance(20.0)
    assert (trip.east, trip.north) == (30.0, 40.0)
    assert trip.advance(5.0), "there is nowhere to go"


@pytest.mark.parametrize("kind", [HELSINKI, MADE_UP])
def test_everybody_is_on_a_street_and_so_is_the_dashboards_picture_of_it(kind: str, tmp_path: Path) -> None:
    streets = read_streets(kind)
    city = City(PEOPLE, streets)
    for person in range(PEOPLE):
        city.enter(person)
    for _ in range(20):
        city.step(2.0)
    for person in range(PEOPLE):
        graph = streets.on_wheels if city.kind_of(person).wheels else streets.on_foot
        assert graph.nearest(*city.where(person)).off < 0.01
    (tmp_path / "city.toml").write_text(scenario(kind))
    ground = ground_of(read_scenario(tmp_path / "city.toml"))
    assert ground.streets is not None
    assert ground.streets.attribution == streets.attribution
    assert ground.streets.statistics().edges == streets.on_foot.statistics().edges
    assert [(point.name, point.x, point.y) for point in ground.points] == [
        (place.name, place.east, place.north) for place in PLACES
    ]


def test_a_jam_concerns_those_who_drive_to_the_bridge(streets: Streets) -> None:
    city, history = City(PEOPLE, streets), History()
    for person in range(PEOPLE):
        city.enter(person)
        context = {"transport": TypedPath.parse(city.transport_of(person)), "destination": city.destination_of(person)}
        history.registered(str(person), 1, "default", context)
        history.subscribed(str(person), 1, Subscription("traffic/#"))
    event = Event("jam", "traffic/jam", 2, to=addressed_to_the_bridge())
    there = {person for person in range(PEOPLE) if city.drives(person) and city.heading_for(person) == BRIDGE.name}
    assert receivers(history, event, 2) == set(map(str, there))
    assert 0 < len(there) < sum(map(city.drives, range(PEOPLE)))
    for person in there:
        city.turn_back(person)
        assert city.heading_for(person) != BRIDGE.name


@pytest.mark.parametrize(
    ("environment", "platform", "shown"),
    [
        ({}, "linux", False),
        ({"DISPLAY": ""}, "linux", False),
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({}, "darwin", True),
    ],
)
def test_a_browser_opens_only_where_there_is_a_display(
    environment: Mapping[str, str], platform: str, shown: bool
) -> None:
    assert has_display(environment, platform) == shown


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


def test_a_demonstration_in_which_nothing_changes_has_failed(quiet_play: Callable[..., Play]) -> None:
    with pytest.raises(NearcastError, match="did not go from"):
        insist(quiet_play(), [])


@pytest.mark.parametrize(("what", "said"), [("lost", "1 lost, 0 doubled"), ("doubled", "0 lost, 1 doubled")])
def test_a_demonstration_that_loses_or_doubles_something_has_failed(
    what: str, said: str, quiet_play: Callable[..., Play]
) -> None:
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


def test_what_a_process_and_its_children_use_is_counted_and_nothing_else() -> None:
    work = "import os; os.fork(); sum(range(10**7)); print(flush=True); os.read(0, 1)"
    with subprocess.Popen(
        [sys.executable, "-c", work], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline(), process.stdout.readline()
        both = usage(process.pid)
        process.communicate(b"..")
    assert both.seconds > 0.1
    assert both.bytes > 2 * 5_000_000
    assert usage(process.pid).bytes == 0, "it has ended"
    assert usage(2**30) == (0.0, 0), "there is no such session"


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


class _Forgetful:
    """Answers each question well, and then closes the connection without a word, as a server does when nobody has asked for a while."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.closed = threading.Semaphore(0)

    def serve(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return  # the test is over
            with connection, connection.makefile("rb") as said:
                line = said.readline()
                lengths = [
                    int(each[15:]) for each in iter(said.readline, b"\r\n") if each.startswith(b"Content-Length:")
                ]
                said.read(sum(lengths))
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            self.asked.append(line.rstrip())
            self.closed.release()


@contextmanager
def _forgetful() -> Iterator[tuple[_Forgetful, int]]:
    server = _Forgetful()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.serve, args=(listener,))
        thread.start()
        try:
            yield server, listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_a_broker_that_has_closed_the_idle_connection_is_asked_again() -> None:
    with _forgetful() as (server, port):
        broker = DemoBroker(PEOPLE)
        broker._http = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        for _ in range(3):
            asyncio.run(broker.transition("RADIAL"))
            assert server.closed.acquire(timeout=PATIENCE)
        broker._http.close()
    assert server.asked == [b"POST /transitions HTTP/1.1"] * 3
