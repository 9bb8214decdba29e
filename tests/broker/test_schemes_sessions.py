"""Filter schemes live: who connects, reconnects and restarts; what is refused; what operators see."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.broker.scheme_world import EVERY_SCHEME, GRID, PLANE, PRIVATE, RADIAL, TERRITORY, instant

from nearcast.broker.schemes.live import LiveSchemes, SchemePlan
from nearcast.broker.schemes.text import scheme_in
from nearcast.client.schemes import ClientSchemes
from nearcast.dissemination.broker_state import SUBSCRIBERS
from nearcast.dissemination.handed_broker import MOST_SCHEMES
from nearcast.dissemination.scheme_messages import FARTHEST_AHEAD, GREETINGS, MOST_CHANNELS, PORT, Hello
from nearcast.errors import InvalidInput, InvalidPlan, InvalidProperty, InvalidRecord, QuotaExceeded, UnknownName
from nearcast.filtering.messages import AssignmentRequest, ContextUpdate, Joining
from nearcast.filtering.scheme import Territory
from nearcast.model.area import Circle, Rectangle
from nearcast.model.event import Event
from nearcast.model.subscription import Subscription
from nearcast.planning.ruled import SETTLING, SchemeRule
from nearcast.runtime.messages import Message, encoded
from nearcast.runtime.ports import Fix
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.timers import Life, SimulatedTimers
from nearcast.transition.agent import PORT as PLANS
from nearcast.transition.plan import PlanDone, PlanId
from nearcast.transition.rules import Condition, Direction
from nearcast.transition.specification import MechanismSpec

of = MechanismSpec.of
EGRID, RGRID = of("EGRID", factor=10), of("RGRID", factor=10)
NEAR = Subscription("news", area=Circle(125.0), id="near", no_local=True)


class House:
    """A broker and some clients on connections without delay; a client that is cut off hears nothing."""

    def __init__(
        self,
        scheme: MechanismSpec = RADIAL,
        territory: Territory = TERRITORY,
        rules: Sequence[SchemeRule] = (),
        memory: bytes | None = None,
        simulation: Simulation | None = None,
    ) -> None:
        self.simulation = simulation or Simulation(1)
        self.life = Life()
        self.clients: dict[str, ClientSchemes] = {}
        self.cut_off: set[str] = set()
        plan = SchemePlan(scheme, territory, rules)
        timers = SimulatedTimers(self.simulation, self.life)
        self.schemes = LiveSchemes(self.simulation, timers, plan, self._down, memory=memory)

    def restarted(self, *clients: str, **more: Any) -> House:
        """The next life, with what was written down of these clients; they have not connected again."""
        self.life.alive = False
        states = {client: self.schemes.state_of(client) for client in clients}
        house = House(memory=self.schemes.memory_state(), simulation=self.simulation, **more)
        for client, state in states.items():
            house.schemes.restore(client, state)
            house.schemes.subscribe(client, NEAR)
            self.clients[client].disconnected()
            house.clients[client] = self.clients[client]
            house.clients[client]._send = house.up(client)  # type: ignore[misc]
        house.schemes.start()
        return house

    def up(self, client: str) -> Callable[[bytes], None]:
        def send(payload: bytes) -> None:
            if client not in self.cut_off:
                self.simulation.at(self.simulation.now(), lambda _: self.schemes.receive(client, payload))

        return send

    def _down(self, client: str, payload: bytes) -> None:
        if client not in self.cut_off:
            self.simulation.at(self.simulation.now(), lambda _: self.clients[client].receive(payload))

    def client(self, name: str, x: float, y: float, pinned: MechanismSpec | None = None) -> ClientSchemes:
        """There, connected and subscribed."""
        timers = SimulatedTimers(self.simulation, Life())
        client = self.clients[name] = ClientSchemes(name, self.simulation, timers, self.up(name), pinned=pinned)
        client.moved(self.fix(x, y))
        client.interested(NEAR)
        self.schemes.connected(name, session_present=False)
        self.schemes.subscribe(name, NEAR)
        self.run(0.1)
        return client

    def fix(self, x: float, y: float) -> Fix:
        return Fix(self.simulation.now(), PLANE.to_point(x, y), 1.0, 0.0, None)

    def run(self, seconds: float) -> None:
        self.simulation.run(self.simulation.now() + instant(seconds))

    def receivers(self, x: float, y: float, **more: Any) -> list[str]:
        event = Event("e", "news", self.simulation.now(), place=PLANE.to_point(x, y), **more)
        return sorted(self.schemes.receivers(event, None))


# Coming and going


@pytest.mark.parametrize("scheme", [RADIAL, GRID, EGRID, of("MULTI")], ids=str)
def test_a_newcomer_starts_with_the_scheme_that_runs(scheme: MechanismSpec) -> None:
    house = House(scheme)
    early = house.client("ada", 0.0, 0.0)
    assert early.running == scheme
    house.schemes.transition(EGRID)
    house.run(0.1)
    late = house.client("bob", 50.0, 0.0)
    assert (early.running, late.running) == (EGRID, EGRID)
    assert house.receivers(20.0, 0.0) == ["ada", "bob"]
    assert house.receivers(-350.0, 300.0) == []


def test_who_reconnects_with_its_session_keeps_its_scheme_and_is_told_what_it_missed() -> None:
    house = House()
    ada, bob = house.client("ada", 10.0, 10.0), house.client("bob", 50.0, 10.0)
    house.schemes.transition(EGRID, ["ada"])
    house.run(0.1)
    for name, client in house.clients.items():
        house.schemes.disconnected(name)
        client.disconnected()
    house.schemes.connected("ada", session_present=True)
    house.run(0.1)
    assert (ada.running, house.schemes.scheme_of("ada")) == (EGRID, EGRID)
    house.schemes.transition(GRID)
    house.run(120.0)
    assert (ada.running, bob.running) == (GRID, RADIAL)
    house.schemes.connected("bob", session_present=True)
    house.run(0.1)
    assert bob.running == GRID
    assert house.receivers(20.0, 10.0) == ["ada", "bob"]


def test_a_client_that_was_started_again_is_believed_although_its_clock_is_slow() -> None:
    house = House()
    house.run(1000.0)
    house.client("ada", 0.0, 0.0)
    again = ClientSchemes("ada", house.simulation, SimulatedTimers(house.simulation, Life()), house.up("ada"))
    house.clients["ada"] = again
    again.moved(Fix(instant(500.0), PLANE.to_point(300.0, 0.0), 1.0, 0.0, None))
    again.interested(NEAR)
    house.schemes.connected("ada", session_present=True)
    house.run(0.1)
    assert house.receivers(300.0, 0.0) == ["ada"]
    assert house.receivers(0.0, 0.0) == []


def test_whoever_subscribes_to_nothing_around_it_tells_nothing_of_itself() -> None:
    house = House()
    silent = house.clients["eve"] = ClientSchemes(
        "eve", house.simulation, SimulatedTimers(house.simulation, Life()), house.up("eve")
    )
    house.schemes.connected("eve", session_present=False)
    house.run(0.1)
    silent.moved(house.fix(0.0, 0.0))
    house.run(0.1)
    assert silent.statistics().messages_out == 0
    silent.interested(NEAR)
    house.schemes.subscribe("eve", NEAR)
    house.run(0.1)
    assert house.receivers(0.0, 0.0) == ["eve"]
    silent.uninterested("near")
    house.schemes.unsubscribe("eve", "near")
    assert house.receivers(0.0, 0.0) == []


def test_a_session_that_has_ended_is_forgotten() -> None:
    house = House(EGRID)
    house.client("ada", 0.0, 0.0)
    house.schemes.forget("ada")
    assert house.receivers(0.0, 0.0) == []
    assert house.schemes.position("ada") is None
    assert house.schemes.changes().clients == {}


def test_a_broker_on_another_ground_has_its_clients_begin_anew() -> None:
    house = House(EGRID)
    ada = house.client("ada", 0.0, 0.0)
    first = ada.channel_for(PLANE.to_point(0.0, 0.0)).channel
    wider = Territory(type(TERRITORY.box)(49.0, 8.0, 50.0, 9.0), TERRITORY.zones)
    other = house.restarted("ada", territory=wider)
    other.schemes.connected("ada", session_present=True)
    other.run(0.1)
    assert ada.running == EGRID
    assert ada.channel_for(PLANE.to_point(0.0, 0.0)).channel != first
    assert other.receivers(0.0, 0.0) == ["ada"]


# Restarts


@pytest.mark.parametrize("scheme", [*EVERY_SCHEME, PRIVATE], ids=str)
def test_a_restart_restores_what_was_known_of_a_client(scheme: MechanismSpec) -> None:
    house = House(RADIAL if scheme == PRIVATE else scheme)
    house.client("ada", 120.0, 160.0, pinned=PRIVATE if scheme == PRIVATE else None)
    again = house.restarted("ada")
    assert again.schemes.scheme_of("ada") == scheme
    assert again.schemes.state_of("ada") == house.schemes.state_of("ada")
    assert again.receivers(121.0, 161.0) == ["ada"]
    assert again.receivers(-390.0, -390.0) == []


def test_after_a_restart_the_old_scheme_goes_on_for_who_has_not_come_to_the_new_one() -> None:
    house = House(RGRID)  # which forgets positions: RADIAL cannot know where the client is before it has spoken
    ada = house.client("ada", 0.0, 0.0)
    house.cut_off.add("ada")
    house.schemes.transition(RADIAL)
    house.run(0.2)
    assert house.receivers(0.0, 0.0) == ["ada"]
    house = house.restarted("ada")
    assert house.receivers(0.0, 0.0) == ["ada"]
    assert house.schemes.status().overlaps == 1
    house.schemes.connected("ada", session_present=True)
    house.run(5.0)
    assert ada.running == RADIAL
    assert (house.receivers(0.0, 0.0), house.schemes.status().overlaps) == (["ada"], 0)


def test_after_a_restart_a_plan_for_some_is_brought_to_those_who_never_got_it() -> None:
    house = House(RGRID)
    ada = house.client("ada", 0.0, 0.0)
    house.client("bob", 50.0, 0.0)
    house.cut_off.add("ada")
    house.schemes.transition(RADIAL, ["ada"])
    house = house.restarted("ada", "bob")
    assert house.receivers(0.0, 0.0) == ["ada", "bob"]
    for name in ("ada", "bob"):
        house.schemes.connected(name, session_present=True)
    house.run(5.0)
    assert (ada.running, house.clients["bob"].running) == (RADIAL, RGRID)
    assert (house.receivers(0.0, 0.0), house.schemes.status().overlaps) == (["ada", "bob"], 0)


def test_a_state_that_is_older_than_the_last_plan_is_one_of_a_scheme_that_goes_on() -> None:
    house = House(RGRID)
    house.client("ada", 0.0, 0.0)
    old = house.schemes.state_of("ada")
    house.schemes.transition(RADIAL)
    later = House(RGRID, memory=house.schemes.memory_state())
    later.schemes.restore("ada", old)
    later.schemes.subscribe("ada", NEAR)
    later.schemes.start()
    assert later.schemes.status().scheme == RADIAL
    assert later.receivers(0.0, 0.0) == ["ada"]


def test_a_broker_that_has_lost_its_disk_learns_from_its_clients() -> None:
    house = House()
    for scheme in (EGRID, GRID, EGRID):
        house.schemes.transition(scheme)
    ada = house.client("ada", 0.0, 0.0)
    empty = House(simulation=house.simulation)
    empty.schemes.start()
    empty.clients["ada"] = ada
    ada._send = empty.up("ada")  # type: ignore[misc]
    ada.disconnected()
    empty.schemes.connected("ada", session_present=False)
    empty.schemes.subscribe("ada", NEAR)
    empty.run(1.0)
    assert (ada.running, empty.schemes.scheme_of("ada"), empty.schemes.status().scheme) == (EGRID, EGRID, RADIAL)
    assert empty.receivers(0.0, 0.0) == ["ada"]
    empty.schemes.transition(GRID)  # its clock is later than any that the client knows
    empty.run(1.0)
    assert ada.running == GRID


def test_changes_are_told_of_once_and_are_all_that_a_restart_needs() -> None:
    told: list[None] = []
    simulation = Simulation(1)
    schemes = LiveSchemes(
        simulation,
        SimulatedTimers(simulation, Life()),
        SchemePlan(RADIAL, TERRITORY),
        lambda _client, _payload: None,
        changed=lambda: told.append(None),
    )
    schemes.start()
    assert schemes.changes().memory is not None
    assert schemes.changes() == type(schemes.changes())(None, None, {}, {})
    schemes.subscribe("ada", NEAR)
    schemes.subscribe("bob", NEAR)
    assert len(told) == 1
    first = schemes.changes()
    assert (first.memory, set(first.clients)) == (None, {"ada", "bob"})
    schemes.transition(EGRID)
    second = schemes.changes()
    assert (second.memory, set(second.clients)) == (schemes.memory_state(), {"ada", "bob"})
    assert len(told) == 2


@given(st.binary(max_size=60))
def test_states_that_cannot_be_read_are_refused(data: bytes) -> None:
    house = House()
    with pytest.raises(InvalidRecord):
        house.schemes.restore("ada", b"\xc1" + data)


# What may be asked for


def test_who_is_interested_is_found_whomever_the_sender_wants_to_reach() -> None:
    house = House(EGRID)
    house.client("ada", 0.0, 0.0)
    far = Circle(10.0, PLANE.to_point(300.0, 300.0))
    assert house.receivers(0.0, 0.0, reach=far, to="kind = 'car'") == ["ada"]


@pytest.mark.parametrize("scheme", [RADIAL, EGRID], ids=str)
def test_areas_need_not_be_circles(scheme: MechanismSpec) -> None:
    house = House(scheme)
    ada = house.client("ada", 0.0, 0.0)
    wide = Subscription("news", area=Rectangle(600.0, 10.0), id="near")
    ada.interested(wide)
    house.schemes.subscribe("ada", wide)
    house.run(0.1)
    assert house.receivers(290.0, 0.0) == ["ada"]


def test_of_a_client_in_private_nothing_is_published_before_the_ground_is_known() -> None:
    simulation = Simulation(1)
    client = ClientSchemes("ada", simulation, SimulatedTimers(simulation, Life()), lambda _: None, pinned=PRIVATE)
    here = PLANE.to_point(10.0, 20.0)
    with pytest.raises(InvalidInput, match="wait"):
        client.channel_for(here)
    house = House()
    ada = house.client("ada", 10.0, 20.0, pinned=PRIVATE)
    channel, place = ada.channel_for(here)
    assert channel is not None
    assert place != here
    house.schemes.transition(GRID)
    house.run(1.0)
    assert (ada.running, house.schemes.position("ada"), house.receivers(10.0, 20.0)) == (PRIVATE, None, ["ada"])


def test_positions_are_passed_on_as_clients_tell_them_also_by_schemes_that_forget_them() -> None:
    house, told = House(RGRID), list[tuple[str, object]]()
    house.schemes.located = lambda client, position: told.append((client, position))
    ada = house.client("ada", 0.0, 0.0)
    ada.moved(house.fix(300.0, 0.0))
    house.run(0.1)
    assert house.schemes.position("ada") is None
    assert [("ada", PLANE.to_point(0.0, 0.0)), ("ada", PLANE.to_point(300.0, 0.0))] == list(dict.fromkeys(told))
    house.schemes.receive("ada", payload(PORT, Joining(house.simulation.now(), ("10:1,1",), clock=1)))
    assert told[-1] == ("ada", None)


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("RADIAL", RADIAL),
        (" egrid ( factor = 10 , cover=circle, margin=11.5, private=TRUE) ", None),
        (str(of("ATTRACT", extension=125.0, catch_all=False)), of("ATTRACT", extension=125.0, catch_all=False)),
    ],
)
def test_schemes_are_written_as_they_are_shown(text: str, spec: MechanismSpec | None) -> None:
    assert scheme_in(text) == (spec or of("EGRID", factor=10, cover="circle", margin=11.5, private=True))


@pytest.mark.parametrize(
    "text", ["", "NONSENSE", "EGRID(", "EGRID(factor)", "EGRID(factor=x)", "EGRID(factor=1,factor=2)"]
)
def test_a_scheme_that_there_is_not_is_refused_and_nothing_changes(text: str) -> None:
    house = House()
    with pytest.raises((InvalidInput, InvalidPlan)):
        house.schemes.transition(text)
    with pytest.raises(UnknownName):
        house.schemes.transition(EGRID, ["nobody"])
    assert house.schemes.status().transitions == 0


def test_rules_exchange_schemes_and_operators_see_what_happened() -> None:
    crowded = SchemeRule(Condition(SUBSCRIBERS, Direction.ABOVE, 2.0, 1.0), EGRID)
    house = House(rules=[crowded])
    house.schemes.start()
    for number in range(3):
        house.client(f"c{number}", 0.0, 10.0 * number)
    house.run(2.0)
    status = house.schemes.status()
    assert (status.scheme, dict(status.groups), status.transitions) == (EGRID, {EGRID: 3}, 1)
    assert [(done.scheme, done.clients, done.everybody) for done in status.latest] == [(EGRID, 3, True)]
    assert {client.running for client in house.clients.values()} == {EGRID}
    for number in range(2):
        house.schemes.forget(f"c{number}")
    house.run(2.0)
    assert house.schemes.status().scheme == RADIAL
    house.schemes.stop()


def test_rules_that_follow_others_soon_after_a_restart_decide_for_good() -> None:
    never = SchemeRule(Condition(SUBSCRIBERS, Direction.ABOVE, 100.0), RGRID)
    always = SchemeRule(Condition(SUBSCRIBERS, Direction.ABOVE, 0.5), EGRID)
    house = House(rules=[never])
    house.client("ada", 0.0, 0.0)
    house.schemes.transition(RGRID)
    house.run(1.0)
    house = house.restarted("ada", rules=[never])
    house.schemes.change_rules([always])
    house.run(2.0)
    assert house.schemes.status().scheme == EGRID
    house.run(2 * SETTLING)  # what the others would have settled is not their business any more
    assert house.schemes.status().scheme == EGRID
    house.schemes.change_rules([never])
    assert house.schemes.status().scheme == RADIAL
    house.schemes.transition(RGRID)
    house.schemes.change_rules([never, never])  # none of these has ever held
    house.run(2 * SETTLING)
    assert house.schemes.status().scheme == RGRID
    house.schemes.stop()


# Strangers


def payload(port: int, message: Message) -> bytes:
    return bytes((port,)) + encoded(message)


def hello(**more: Any) -> bytes:
    return payload(GREETINGS, Hello(**({"running": RADIAL, "plan": PlanId(0, "")} | more)))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x09hello",
        payload(PORT, ContextUpdate(0, 91.0, 0.0)),
        payload(PORT, ContextUpdate(0, float("nan"), 0.0)),
        payload(PORT, ContextUpdate(0, 0.0, 0.0, speed=float("inf"))),
        payload(PORT, ContextUpdate(0, 0.0, 0.0, heading=float("nan"))),
        payload(PORT, AssignmentRequest(0, 0.0, 181.0)),
        payload(PORT, AssignmentRequest(0, 0.0, 0.0, clock=-1)),
        payload(PORT, Joining(0, ("x",) * (MOST_CHANNELS + 1))),
        payload(PLANS, PlanDone(PlanId(1, "broker"), ok=True, clock=2**62)),
        hello(clock=FARTHEST_AHEAD + 2),
        hello(plan=PlanId(2**62, "x")),
        hello(context=ContextUpdate(0, 0.0, 1e9)),
        payload(GREETINGS, PlanDone(PlanId(1, "broker"), ok=True)),
    ],
)
def test_what_no_client_would_say_is_refused_and_changes_nothing(data: bytes) -> None:
    house = House()
    house.client("ada", 0.0, 0.0)
    before = house.schemes.state_of("ada"), house.schemes.memory_state(), house.schemes.status().clock
    with pytest.raises(InvalidInput):
        house.schemes.receive("ada", data)
    assert (house.schemes.state_of("ada"), house.schemes.memory_state(), house.schemes.status().clock) == before


@given(st.sampled_from([PORT, GREETINGS, PLANS]), st.binary(max_size=200))
def test_noise_is_refused_by_both_sides(port: int, noise: bytes) -> None:
    house = House(simulation=Simulation(1))
    ada = house.client("ada", 0.0, 0.0)
    for receive in (lambda data: house.schemes.receive("ada", data), ada.receive):
        with pytest.raises(InvalidProperty):
            receive(bytes((port,)) + msgspec.msgpack.encode([1]) + noise)


def test_clients_cannot_have_any_number_of_schemes_run() -> None:
    house = House()
    for number in range(1, MOST_SCHEMES):
        house.schemes.receive(f"c{number}", hello(pinned=of("EGRID", factor=number)))
    with pytest.raises(QuotaExceeded):
        house.schemes.receive("one too many", hello(pinned=of("EGRID", factor=MOST_SCHEMES)))
    house.schemes.receive("content", hello(pinned=of("EGRID", factor=1)))
    assert len(house.schemes.status().groups) == MOST_SCHEMES
