from collections.abc import Callable, Collection
from typing import Any

import pytest
from tests.transition.mechanisms import (
    BROKEN,
    ENVELOPE,
    GRID,
    HOME,
    RADIAL,
    Engine,
    Grid,
    Located,
    Radial,
    Scheme,
)

from nearcast.errors import InvalidInput, InvalidPlan, ObserverActed, TransitionFailed, UnknownName
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.host import Host, Ports
from nearcast.runtime.observers import Observers
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.timers import Life, SimulatedTimers
from nearcast.transition.custom import Transition
from nearcast.transition.engine import HostEngine, TransitionEngine
from nearcast.transition.null import NullMechanism, is_null
from nearcast.transition.specification import NULL, MechanismSpec


class Renamed(Transition[Located, Grid]):
    """Places become cells: a representation of its own."""

    source = NullMechanism
    target = Grid

    def transfer(self, source: Located, target: Grid, members: Collection[str] | None) -> None:
        for member, place in getattr(source, "places", {}).items():
            target.report(member, place // 10)


class Nosy(Located):
    """Looks around, or acts, while it is being exchanged."""

    def __init__(self, moments: dict[str, Callable[[], Any]]) -> None:
        super().__init__([])
        self.moments = moments

    def start_mechanism(self) -> None:
        self.moments.get("start", lambda: None)()

    def stop_mechanism(self) -> None:
        self.moments.get("stop", lambda: None)()

    def bootstrap(self) -> None:
        self.moments.get("bootstrap", lambda: None)()


def test_an_exchange_carries_the_state_over_starts_switches_stops_and_bootstraps() -> None:
    world = Engine(RADIAL)
    old = world.proxy.active
    old.report("bob", 3)
    world.log.clear()
    assert world.engine.execute("scheme", ENVELOPE)
    assert world.log == ["start Envelope", "stop Radial", "bootstrap Envelope"]
    assert world.proxy.active.known() == ("bob",)
    assert world.proxy.active is not old
    assert world.proxy.spec == ENVELOPE


def test_to_the_mechanism_that_runs_already_nothing_happens() -> None:
    world = Engine(RADIAL)
    old, rows = world.proxy.active, list(world.rows)
    world.log.clear()
    assert not world.engine.execute("scheme", RADIAL)
    assert world.proxy.active is old
    assert (world.log, world.rows) == ([], rows)


def test_other_parameters_make_it_another_mechanism() -> None:
    world = Engine(GRID)
    assert world.engine.execute("scheme", MechanismSpec.of("GRID", factor=10))
    assert isinstance(world.proxy.active, Grid)
    assert world.proxy.active.factor == 10


def test_null_stops_and_starts_and_calls_stay_valid_meanwhile() -> None:
    world = Engine(NULL)
    assert is_null(world.proxy.active)
    world.proxy.active.report("bob", 3)
    assert world.proxy.active.known() == ()
    world.engine.execute("scheme", RADIAL)
    world.proxy.active.report("bob", 3)
    assert world.proxy.active.known() == ("bob",)
    world.engine.execute("scheme", NULL)
    assert world.log == ["start Radial", "bootstrap Radial", "stop Radial"]
    assert world.proxy.active.known() == ()


def test_rows_say_what_was_exchanged_when_where_and_why() -> None:
    world = Engine(NULL)
    world.simulation.run(7 * MICROSECONDS)
    world.engine.execute("scheme", ENVELOPE, plan="1@broker")
    world.engine.execute_self("scheme", "alpha", 2)
    world.engine.execute("scheme", NULL)
    at = (HOME.lat, HOME.lon)
    assert world.rows == [
        (7 * MICROSECONDS, "ada", "scheme", None, "ENVELOPE(alpha=1.5)", *at, "1@broker"),
        (7 * MICROSECONDS, "ada", "scheme", "ENVELOPE(alpha=1.5)", "ENVELOPE(alpha=2)", *at, None),
        (7 * MICROSECONDS, "ada", "scheme", "ENVELOPE(alpha=2)", None, *at, None),
    ]


def test_a_registered_wildcard_beats_the_automatic_transfer() -> None:
    world = Engine(RADIAL)
    world.engine.register("scheme", Renamed())
    world.proxy.active.report("bob", 37)
    world.engine.execute("scheme", GRID)
    assert isinstance(world.proxy.active, Grid)
    assert world.proxy.active.places == {"bob": 3}
    world.engine.execute("scheme", RADIAL)
    assert isinstance(world.proxy.active, Radial)
    assert world.proxy.active.places == {"bob": 3}, "the other way is automatic"


def broken_making(_: MechanismSpec) -> Scheme:
    raise KeyError("no such thing")


def wrong_kind(_: MechanismSpec) -> Any:
    return 3


@pytest.mark.parametrize("how", ["unknown", "start", "transfer", "kind", "make"])
def test_a_failure_leaves_the_old_mechanism_as_it_was_and_is_reported(how: str) -> None:
    class Refused(Transition[Located, Radial]):
        source = Located
        target = Radial

        def transfer(self, source: Located, target: Radial, members: Collection[str] | None) -> None:
            target.report("eve", 1)
            raise ValueError("cannot be converted")

    world = Engine(ENVELOPE)
    proxy, engine, spec = world.proxy, world.engine, RADIAL
    match how:
        case "unknown":
            spec = MechanismSpec("NEW")
        case "start":
            spec = BROKEN
        case "transfer":
            engine.register("scheme", Refused())
        case "kind" | "make":
            make = wrong_kind if how == "kind" else broken_making
            proxy = engine.create_proxy(
                "other", Scheme, lambda spec: proxy.active if spec == GRID else make(spec), GRID
            )
    old, rows, before = proxy.active, list(world.rows), proxy.spec
    old.report("bob", 3)
    world.log.clear()
    with pytest.raises(TransitionFailed, match=f"'{proxy.name}' on 'ada' goes on as before"):
        engine.execute(proxy.name, spec)
    assert proxy.active is old
    assert proxy.spec == before
    assert proxy.active.known() == ("bob",)
    assert world.rows == rows
    assert "stop Envelope" not in world.log
    assert not engine.switching
    assert engine.statistics().failed == 1
    # And the next one works.
    assert engine.execute("scheme", GRID) or how in {"kind", "make"}


def test_a_mechanism_whose_start_failed_is_asked_to_give_everything_back() -> None:
    world = Engine(RADIAL)
    world.log.clear()
    with pytest.raises(TransitionFailed, match="no start"):
        world.engine.execute("scheme", BROKEN)
    assert world.log == ["start Broken", "stop Broken"]


def test_whoever_calls_during_the_exchange_is_served_by_the_old_mechanism() -> None:
    world, seen = Engine(NULL), dict[str, Any]()
    engine = world.engine

    def look(moment: str) -> Callable[[], None]:
        return lambda: seen.update({moment: (engine.proxy("p").spec, engine.switching)})  # type: ignore[union-attr]

    moments = {"start": look("start"), "stop": look("stop"), "bootstrap": look("bootstrap")}
    engine.create_proxy("p", Scheme, lambda spec: Nosy(moments if spec == GRID else {}), RADIAL)
    engine.execute("p", GRID)
    assert seen == {"start": (RADIAL, True), "bootstrap": (GRID, False)}
    engine.execute("p", RADIAL)
    assert seen["stop"] == (RADIAL, True)


@pytest.mark.parametrize("moment", ["start", "stop"])
def test_an_exchange_within_an_exchange_of_the_same_proxy_is_refused(moment: str) -> None:
    world = Engine(NULL)
    engine, refused = world.engine, list[str]()

    def act() -> None:
        with pytest.raises(TransitionFailed, match="'p' on 'ada' is being exchanged just now") as caught:
            engine.execute("p", NULL)
        refused.append(str(caught.value))
        engine.execute("scheme", RADIAL)  # another proxy is another matter

    nosy = GRID if moment == "start" else RADIAL
    engine.create_proxy("p", Scheme, lambda spec: Nosy({moment: act} if spec == nosy else {}), RADIAL)
    engine.execute("p", GRID)
    assert len(refused) == 1
    assert engine.proxy("p").spec == GRID  # type: ignore[union-attr]
    assert world.proxy.spec == RADIAL


def test_when_it_bootstraps_a_mechanism_may_ask_for_the_next() -> None:
    world = Engine(NULL)
    engine = world.engine
    moments = {"bootstrap": lambda: engine.execute("p", RADIAL)}
    engine.create_proxy("p", Scheme, lambda spec: Nosy(moments if spec == GRID else {}))
    engine.execute("p", GRID)
    assert engine.proxy("p").spec == RADIAL  # type: ignore[union-attr]


def test_an_error_of_the_old_one_when_it_stops_comes_through_after_the_new_one_has_bootstrapped() -> None:
    world, log = Engine(NULL), list[str]()

    def fail() -> None:
        raise KeyError("stop")

    moments = {RADIAL: {"stop": fail}, GRID: {"bootstrap": lambda: log.append("bootstrapped")}}
    proxy = world.engine.create_proxy("p", Scheme, lambda spec: Nosy(moments[spec]), RADIAL)
    with pytest.raises(KeyError, match="stop"):
        world.engine.execute("p", GRID)
    assert proxy.spec == GRID
    assert log == ["bootstrapped"]
    assert world.rows[-1][4] == str(GRID)


def test_a_self_transition_keeps_the_instance_and_changes_its_specification() -> None:
    world = Engine(GRID)
    grid = world.proxy.active
    assert world.engine.execute_self("scheme", "factor", 10)
    assert world.proxy.active is grid
    assert world.log[-1] == "cut anew into 10"
    assert world.proxy.spec == MechanismSpec.of("GRID", factor=10)
    assert not world.engine.execute_self("scheme", "factor", 10)
    assert not world.engine.execute("scheme", MechanismSpec.of("GRID", factor=10))
    assert world.engine.statistics().changes == 1


@pytest.mark.parametrize(
    ("state", "value", "message"),
    [("alpha", 2, "declares no parameter 'alpha'"), ("factor", "ten", "cannot be 'ten'"), ("factor", 0, "one cell")],
)
def test_a_self_transition_that_cannot_be_is_refused_and_changes_nothing(state: str, value: Any, message: str) -> None:
    world = Engine(GRID)
    rows = list(world.rows)
    with pytest.raises(TransitionFailed, match=message):
        world.engine.execute_self("scheme", state, value)
    assert isinstance(world.proxy.active, Grid)
    assert (world.proxy.active.factor, world.proxy.spec, world.rows) == (5, GRID, rows)
    assert world.engine.statistics().failed == 1


def test_a_value_that_no_plan_could_carry_is_refused() -> None:
    with pytest.raises(InvalidPlan, match="finite number"):
        Engine(GRID).engine.execute_self("scheme", "factor", float("nan"))


def test_unknown_proxies_second_names_and_bad_defaults_are_errors() -> None:
    world = Engine(RADIAL)
    with pytest.raises(UnknownName, match=r"'ada' has no proxy 'x' \(it has: scheme\)"):
        world.engine.execute("x", GRID)
    with pytest.raises(InvalidInput, match="a proxy 'scheme' already"):
        world.engine.create_proxy("scheme", Scheme, broken_making)
    with pytest.raises(TransitionFailed, match="no such thing"):
        world.engine.create_proxy("y", Scheme, broken_making, GRID)
    with pytest.raises(UnknownName):
        world.engine.proxy("y")
    with pytest.raises(InvalidInput, match="runs one mechanism at a time"):
        world.engine.execute_partial("scheme", GRID, ["bob"])


def test_observers_cannot_exchange_anything() -> None:
    observers = Observers()
    simulation = Simulation(1, observers=observers)

    def act(*_: Any) -> None:
        engine.execute("p", NULL)

    observers.analyze("transitions", act)
    engine = TransitionEngine(simulation, observers, "ada")
    with pytest.raises(ObserverActed, match="exchange a mechanism"):
        engine.create_proxy("p", Scheme, lambda _: Radial([]), RADIAL)


def test_statistics_count_what_was_done() -> None:
    world = Engine(RADIAL)
    world.engine.execute("scheme", ENVELOPE)
    world.engine.execute_self("scheme", "alpha", 0.5)
    statistics = world.engine.statistics()
    assert (statistics.proxies, statistics.exchanges, statistics.changes) == (1, 2, 1)
    assert (statistics.partial, statistics.moved, statistics.failed) == (0, 0, 0)


def test_a_host_offers_its_engine_as_a_component() -> None:
    observers, rows = Observers(), list[Any]()
    observers.record("transitions", lambda *row: rows.append(row))
    simulation = Simulation(1, start=5, observers=observers)
    ports = Ports(simulation, SimulatedTimers(simulation, Life()), {}, None, simulation.random.stream, observers)
    host = Host("ada", ports, [HostEngine()])
    host.start()
    host.component(HostEngine).engine.create_proxy("p", Scheme, lambda _: Radial([]), RADIAL)
    assert rows == [(5, "ada", "p", None, "RADIAL", None, None, None)]
