"""One message to several hosts is the same as one message to each of them."""

from __future__ import annotations

from typing import Any

import pytest

from nearcast.errors import ObserverActed
from nearcast.model.geometry import Point
from nearcast.runtime.host import Component, Host
from nearcast.runtime.messages import Message
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Endpoint
from nearcast.runtime.simulation.cellular import CellularNetwork
from nearcast.runtime.simulation.cellular_profile import BearerProfile, CellularProfile
from nearcast.runtime.simulation.distributions import Uniform
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.world import World

RECEIVERS = ["c0", "c1", "nobody", "c2", "other", "c0"]
BEARER = BearerProfile(latency=Uniform(0.01, 0.3), loss=0.2)


class News(Message, frozen=True, tag="news"):
    text: str


class Speaker(Component):
    endpoint: Endpoint

    def start(self, host: Host) -> None:
        self.endpoint = host.link("cellular").open(1, lambda _sender, _message: None, News)


def told(sender: str, *, at_once: bool, up: bool = True) -> tuple[list[tuple[Any, ...]], list[Any]]:
    rows: list[tuple[Any, ...]] = []
    observers = Observers()
    for table in ("messages", "drops"):
        observers.record(table, lambda *row, table=table: rows.append((table, *row)))
    simulation = Simulation(3, observers=observers)
    world = World(simulation, Plane(Point(0, 0)), 5)
    network = CellularNetwork(
        simulation, CellularProfile(uplink=BEARER, downlink=BEARER), infrastructure=["broker", "other"]
    )
    speakers = {name: Speaker() for name in ("broker", "other", "c0", "c1", "c2")}
    for name, speaker in speakers.items():
        world.add(name, lambda speaker=speaker: [speaker], [network])  # type: ignore[misc]
        world.hosts[name].join()
    endpoint = speakers[sender].endpoint
    if not up:
        world.hosts[sender].fail()
    for number in range(20):
        message = News(f"number {number}")
        if at_once:
            endpoint.send_all(RECEIVERS, message)
        else:
            for receiver in RECEIVERS:
                endpoint.send(receiver, message)
        simulation.run(simulation.now() + 50_000)
    simulation.run(simulation.now() + 5_000_000)
    return rows, list(network.traffic())


@pytest.mark.parametrize("sender", ["broker", "c1"])
@pytest.mark.parametrize("up", [True, False])
def test_all_at_once_is_one_by_one(sender: str, up: bool) -> None:
    assert told(sender, at_once=True, up=up) == told(sender, at_once=False, up=up)


def test_an_observer_may_not_do_that_either() -> None:
    observers = Observers()
    simulation = Simulation(1, observers=observers)
    world = World(simulation, Plane(Point(0, 0)), 1)
    network = CellularNetwork(simulation, infrastructure=["broker"])
    speaker = Speaker()
    world.add("broker", lambda: [speaker], [network]).join()
    observers.watching = True
    with pytest.raises(ObserverActed, match="send a message"):
        speaker.endpoint.send_all(["x"], News("x"))
