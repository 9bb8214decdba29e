"""GRID and EGRID: who asks for which cells when, and what a broker need not know."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.filtering.clients import Walker
from tests.filtering.halves import TERRITORY, Ears, of, place

from nearcast.filtering.channels import ChannelBroker
from nearcast.filtering.context import ClientContext
from nearcast.filtering.messages import Assignment, AssignmentRequest, ContextUpdate, FromClient, Joining
from nearcast.filtering.parameters import Egrid
from nearcast.filtering.registry import scheme_of
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.geometry import distance
from nearcast.model.subscription import Subscription
from nearcast.transition.specification import MechanismSpec

# Cells of the grid of factor 5 are 260 m wide; the middle one reaches from -130 to 130.
GRID, EGRID, RGRID = of("GRID"), of("EGRID"), of("RGRID")
tessellations = st.sampled_from(
    [of("EGRID", cells=c, cover=v, factor=8) for c in ("square", "hexagon") for v in ("circle", "box")]
)
metres = st.floats(-640, 640)


class Pair:
    """A client and a broker that talk without delay; whatever the client says may get lost."""

    def __init__(self, spec: MechanismSpec, radius: float = 125.0) -> None:
        self.ears = Ears()
        half = self.ears.make(spec)
        assert isinstance(half, ChannelBroker)
        self.broker = half
        self.walker = Walker(spec, radius)
        self.broker.adopt("ada", ClientContext())
        self.broker.subscribe("ada", Subscription("news", area=Circle(radius)))

    def walk(self, x: float, y: float, *, lost: bool = False, answer_lost: bool = False) -> list[FromClient]:
        said = list(self.walker.walk(x, y))
        for message in [] if lost else said:
            self.ears.said.clear()
            self.broker.hear("ada", message)
            for _, answer in [] if answer_lost else self.ears.said:
                self.walker.half.receive(answer)
        return said


def test_a_client_of_grid_asks_when_it_leaves_its_cell_and_is_in_no_other() -> None:
    pair = Pair(GRID)
    assert [type(message) for message in pair.walk(0, 0)] == [AssignmentRequest]
    assert pair.walker.half.assigned == ("5:2,2",)
    assert pair.walk(125, 0) == []
    assert [type(message) for message in pair.walk(135, 0)] == [AssignmentRequest]
    assert (pair.walker.half.assigned, pair.walker.half.channel()) == (("5:3,2",), "5:3,2")


def test_a_client_of_egrid_asks_when_its_area_of_interest_leaves_its_cells() -> None:
    pair = Pair(of("EGRID", margin=10.0), 50.0)
    pair.walk(0, 0)
    assert pair.walker.half.assigned == ("5:2,2",)
    assert pair.walk(69, 0) == []
    assert len(pair.walk(71, 0)) == 1  # 60 m from the border
    assert pair.walker.half.assigned == ("5:2,2", "5:3,2")
    assert pair.walk(69, 0) == []  # more cells than it needs are no reason to ask
    assert len(pair.walk(131, 0)) == 1  # it publishes in another cell now, though its cells would do
    assert pair.walker.half.channel() == "5:3,2"


def test_who_is_not_answered_asks_again_and_again() -> None:
    pair = Pair(GRID)
    for how in ({"lost": True}, {"answer_lost": True}, {}):
        assert len(pair.walk(0, 0, **how)) == 1
    assert pair.walk(0, 0) == []


def test_circles_take_fewer_cells_than_boxes() -> None:
    box, circle = Pair(EGRID), Pair(of("EGRID", cover="circle"))
    for pair in (box, circle):
        pair.walk(40, 40)  # the corner of the cell is 127 m away
    assert len(box.walker.half.assigned) == 4
    assert len(circle.walker.half.assigned) == 3


@given(spec=tessellations, x=metres, y=metres, dx=st.floats(-1, 1), dy=st.floats(-1, 1), radius=st.floats(0, 300))
def test_with_a_fresh_position_egrid_misses_nothing_in_the_area_of_interest(
    spec: MechanismSpec, x: float, y: float, dx: float, dy: float, radius: float
) -> None:
    pair = Pair(spec, radius)
    pair.walk(0, 0)
    pair.walk(x, y)
    event = Event("e", "news", 0, place=place(x + dx * radius, y + dy * radius))
    assert event.place is not None
    found = pair.broker.receivers(event, None)
    if distance(place(x, y), event.place) <= radius:
        assert found == ["ada"]
    # The broker's cells may be more than are needed now: the client asks only when they do not suffice.
    suffice = scheme_of(spec)
    assert isinstance(suffice, Egrid)
    cells = suffice.tessellation(TERRITORY)
    assert (found == ["ada"]) is (cells.cell_of(event.place) in pair.broker.contexts["ada"].channels)


@given(spec=tessellations, x=metres, y=metres, dx=st.floats(-1, 1), dy=st.floats(-1, 1))
def test_the_margin_makes_up_for_the_way_since_the_last_fix(
    spec: MechanismSpec, x: float, y: float, dx: float, dy: float
) -> None:
    walked = 40.0
    pair = Pair(spec.changed("margin", walked))
    pair.walk(x, y)
    now = place(x + dx * walked / 1.5, y + dy * walked / 1.5)
    for bearing in ((1, 0), (0, 1), (-1, 0), (0, -1), (0.7, 0.7), (-0.7, 0.7)):
        event = Event(
            "e",
            "news",
            0,
            place=place(x + dx * walked / 1.5 + 124 * bearing[0], y + dy * walked / 1.5 + 124 * bearing[1]),
        )
        assert event.place is not None
        if distance(now, event.place) <= 125.0:
            assert pair.broker.receivers(event, None) == ["ada"]


# Remembering


@pytest.mark.parametrize("remember", [True, False])
def test_a_broker_may_forget_the_position_by_which_it_assigned_cells(remember: bool) -> None:
    pair = Pair(of("EGRID", remember_location=remember))
    pair.walk(0, 0)
    context = pair.broker.contexts["ada"]
    assert (context.position is None) is (not remember)
    assert context.channels == pair.walker.half.assigned
    assert pair.broker.knows_place("ada")
    assert pair.broker.receivers(Event("e", "news", 0, place=place(100, 0)), None) == ["ada"]


def test_who_needs_more_cells_for_a_new_subscription_asks_if_the_broker_cannot_know() -> None:
    pair = Pair(RGRID, 10.0)
    pair.walk(0, 0)
    pair.broker.subscribe("ada", Subscription("news", area=Circle(180.0), id="far"))
    pair.walker.radius = 180.0
    assert pair.broker.contexts["ada"].channels == ("5:2,2",)
    assert len(pair.walk(0, 0)) == 1
    assert len(pair.broker.contexts["ada"].channels) == 5  # a circle: the corners are 184 m away
    assert pair.walk(0, 0) == []


def test_a_request_that_overtakes_the_subscription_is_not_forgotten_before_that_comes() -> None:
    here = place(0, 0)
    half = Ears().make(RGRID)
    half.adopt("ada", ClientContext())
    half.hear("ada", AssignmentRequest(1, here.lat, here.lon))
    half.subscribe("ada", Subscription("news", area=Circle(180.0)))
    assert len(half.contexts["ada"].channels) == 5
    assert half.contexts["ada"].position is None


def test_who_lost_cells_is_told() -> None:
    pair = Pair(EGRID, 200.0)
    pair.walk(0, 0)
    pair.ears.said.clear()
    pair.broker.subscribe("ada", Subscription("news", area=Circle(20.0)))
    assert pair.ears.said == [("ada", Assignment(1, "5:2,2", ("5:2,2",)))]
    pair.broker.subscribe("ada", Subscription("news", area=Circle(300.0)))
    assert len(pair.ears.said) == 1  # who needs more knows it, and asks


# Transitions: a client that has come from another scheme


def test_a_broker_that_knows_the_position_says_where_the_client_belongs() -> None:
    ears = Ears()
    radial, grid = ears.make(of("RADIAL")), ears.make(GRID)
    here = place(0, 0)
    radial.adopt("ada", ClientContext())
    radial.hear("ada", ContextUpdate(1, here.lat, here.lon))
    grid.contexts = dict(radial.contexts)
    grid.start_mechanism()
    assert ears.said == []  # not while it is being exchanged
    grid.bootstrap()
    assert ears.said == [("ada", Assignment(1, "5:2,2", ("5:2,2",)))]


def test_a_client_notices_that_the_broker_knows_too_little_and_asks_once_for_each_fix() -> None:
    walker = Walker(EGRID, 125.0, confirms=False)
    walker.walk(100, 0)
    walker.become(EGRID)
    assert len(walker.said) == 1
    for _ in range(3):
        walker.half.receive(Assignment(walker.time, None, ("5:2,2",)))
    assert [type(message) for message in walker.said[1:]] == [AssignmentRequest]
    walker.half.receive(Assignment(walker.time, None, ("5:2,2", "5:3,2")))
    assert len(walker.said) == 2


@pytest.mark.parametrize("confirms", [True, False])
def test_a_client_confirms_that_it_has_come_if_it_is_to(confirms: bool) -> None:
    walker = Walker(of("RADIAL"), confirms=confirms)
    walker.walk(0, 0)
    walker.become(GRID)
    assert len(walker.said) == 1 + confirms


# Privacy


def test_a_private_client_says_its_cells_and_nothing_else() -> None:
    pair = Pair(of("EGRID", private=True), 50.0)
    around = tuple(f"5:{column},{row}" for column in (1, 2, 3) for row in (1, 2, 3))
    assert pair.walk(0, 0) == [Joining(1, around)]
    assert pair.walk(90, 0) == []  # its area of interest has come to another cell, which is nobody's business
    assert pair.broker.contexts["ada"].position is None
    farther = tuple(f"5:{column},{row}" for column in (2, 3, 4) for row in (1, 2, 3))
    assert pair.walk(140, 0) == [Joining(3, farther)]
    assert pair.walker.half.channel() == "5:3,2"
    assert pair.walker.half.place(place(140, 0)) == scheme_of(GRID).tessellation(TERRITORY).center("5:3,2")  # type: ignore[attr-defined]
    assert pair.walker.half.piggyback() == Joining(3, farther)


@given(tessellations, st.floats(1.0, 300.0), metres, metres, st.floats(-150, 150), st.floats(-150, 150))
def test_what_a_private_client_says_depends_on_its_cell_alone_and_is_enough(
    spec: MechanismSpec, radius: float, x: float, y: float, east: float, north: float
) -> None:
    """The broker knows the radius: cells chosen by position would tell how far the client is from each border of its cell."""
    scheme = scheme_of(spec)
    assert isinstance(scheme, Egrid)
    cell_of = scheme.tessellation(TERRITORY).cell_of
    private = of(spec.name, **dict(spec.parameters), private=True)
    here, there = place(x, y), place(x + east, y + north)
    [said] = Pair(private, radius).walk(x, y)
    assert isinstance(said, Joining)
    if cell_of(here) == cell_of(there):
        assert Pair(private, radius).walk(x + east, y + north) == [said]
    if distance(here, there) <= radius:
        assert cell_of(there) in said.channels


def test_a_private_client_repeats_what_was_lost() -> None:
    pair = Pair(of("GRID", private=True))
    assert len(pair.walk(0, 0, lost=True)) == 1
    assert len(pair.walk(0, 0, answer_lost=True)) == 1
    assert len(pair.walk(0, 0)) == 1
    assert pair.walk(0, 0) == []


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["5:0,0", "5:2,2", "5:3,2", "x"])), max_size=8))
def test_nothing_that_a_broker_says_makes_a_private_client_tell_its_position(answers: list[tuple[int, str]]) -> None:
    walker = Walker(of("EGRID", private=True), confirms=True)
    for step, (measured, channel) in enumerate(answers):
        walker.walk(100.0 * step - 300.0, 50.0)
        walker.half.receive(Assignment(measured, channel, (channel,)))
        walker.half.receive(Assignment(measured, None, ()))
    walker.become(of("GRID", private=True))
    assert all(isinstance(message, Joining) for message in walker.said)


def test_a_grid_that_never_knew_positions_keeps_the_cell_that_a_client_is_in_and_no_other() -> None:
    here, make = place(200, 0), Ears().make
    source, target = make(RGRID), make(of("GRID", remember_location=False))
    source.adopt("ada", ClientContext())
    source.subscribe("ada", Subscription("news", area=Circle(125.0)))
    source.hear("ada", AssignmentRequest(1, here.lat, here.lon))
    assert source.contexts["ada"].position is None
    assert len(source.contexts["ada"].channels) > 1
    target.adopt("ada", source.contexts["ada"].copy())
    assert target.contexts["ada"].channels == ("5:3,2",)
