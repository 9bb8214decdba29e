from random import Random

import pytest

from nearcast.errors import UnknownName
from nearcast.runtime.host import Component, Host, Ports
from nearcast.runtime.observers import Observers
from nearcast.runtime.simulation.cellular import CellularNetwork
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.network import SimulatedLink
from nearcast.runtime.simulation.timers import Life, SimulatedTimers


class Counter(Component):
    """An interface of a mechanism, with a way to see in which order things happen."""

    calls: list[str]

    def __init__(self, name: str, calls: list[str]) -> None:
        self.name = name
        self.calls = calls

    def start(self, host: Host) -> None:
        self.calls.append(f"start {self.name} on {host.name}")

    def stop(self) -> None:
        self.calls.append(f"stop {self.name}")


class Fast(Counter):
    pass


class Silent(Component):
    def start(self, host: Host) -> None:
        pass


def ports(**links: SimulatedLink) -> Ports:
    simulation = Simulation(1, start=5)
    return Ports(simulation, SimulatedTimers(simulation, Life()), links, None, Random, simulation.observers)


def test_components_start_in_their_order_and_stop_in_reverse() -> None:
    calls: list[str] = []
    host = Host("ada", ports(), [Counter("one", calls), Silent(), Fast("two", calls)])
    host.start()
    host.stop()
    assert calls == ["start one on ada", "start two on ada", "stop two", "stop one"]


def test_a_component_is_found_by_its_interface() -> None:
    fast, silent = Fast("fast", []), Silent()
    host = Host("ada", ports(), [fast, silent])
    assert host.component(Counter) is fast
    assert host.component(Fast) is fast
    assert host.component(Silent) is silent


def test_an_interface_that_none_or_two_implement_is_an_error_that_names_it() -> None:
    host = Host("ada", ports(), [Fast("one", []), Counter("two", [])])
    with pytest.raises(UnknownName, match="'ada' has 2 components of kind Counter"):
        host.component(Counter)
    with pytest.raises(UnknownName, match="'ada' has 0 components of kind Silent"):
        host.component(Silent)


def test_links_are_found_by_their_interface_and_a_missing_one_is_named_with_those_there_are() -> None:
    link = CellularNetwork(Simulation(1)).attach("ada", 0)
    host = Host("ada", ports(cellular=link))
    assert host.link("cellular") is link
    with pytest.raises(UnknownName, match=r"no link 'wifi' \(it has: cellular\)"):
        host.link("wifi")
    with pytest.raises(UnknownName, match="none at all"):
        Host("bob", ports()).link("wifi")


def test_the_clock_of_the_host_is_that_of_its_runtime() -> None:
    assert Host("ada", ports()).now() == 5


def test_a_host_offers_what_its_runtime_gave() -> None:
    given = ports()
    host = Host("ada", given)
    assert host.timers is given.timers
    assert host.sensor is None
    assert isinstance(host.observers, Observers)
    assert host.random("x").random() == Random("x").random()
