"""Transports on radios on which messages collide, and copies that the radio only counts."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from tests.dissemination.transport.quarter import BLUETOOTH, HOME, WIFI, Listener, of

from nearcast.dissemination.adhoc.carrier import AdHoc, AdHocSettings
from nearcast.dissemination.carrier import CarriedEvents
from nearcast.dissemination.transport.local_link import LocalTransport
from nearcast.model.event import Event
from nearcast.runtime.host import Component, Host
from nearcast.runtime.observers import Observers
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.radio.network import RadioNetwork
from nearcast.runtime.simulation.radio.profile import bluetooth_le, wifi_g
from nearcast.runtime.simulation.world import World
from nearcast.transition.engine import HostEngine
from nearcast.transition.specification import MechanismSpec

COUNT = 12


def afternoon(mechanism: MechanismSpec) -> dict[str, Any]:
    """People on a square of 40 m talk for twenty seconds; one of them changes to Bluetooth, later one back."""
    rows: list[tuple[Any, ...]] = []
    observers = Observers()
    observers.record("notifications", lambda *row: rows.append(row))
    simulation = Simulation(3, observers=observers)
    world = World(simulation, Plane(HOME), COUNT)
    radios = [
        RadioNetwork(simulation, profile, world.motion, interface=name)
        for name, profile in (("wifi", wifi_g()), ("bluetooth", bluetooth_le()))
    ]

    def build() -> list[Component]:
        adhoc = AdHoc(AdHocSettings(mechanism))
        return [HostEngine(), LocalTransport(WIFI), CarriedEvents([adhoc]), adhoc, Listener()]

    random = Random(5)
    for node in range(COUNT):
        world.motion.put(node, random.uniform(0, 40), random.uniform(0, 40))
        world.add(f"h{node}", build, radios).join()

    def host(node: int) -> Host:
        found = world.hosts[f"h{node}"].host
        assert found is not None
        return found

    published: list[str] = []
    for number in range(200):
        simulation.run(simulation.now() + 100_000)
        if number in (50, 140):
            host(number % COUNT).component(LocalTransport).initiate(BLUETOOTH if number == 50 else WIFI)
        node = random.randrange(COUNT)
        event = Event(f"{node}/{number}", "news", simulation.now(), publisher=f"h{node}")
        published.append(event.id)
        host(node).component(CarriedEvents).publish(event)
    simulation.run(simulation.now() + 6_000_000)
    return {
        "notifications": rows,
        "published": published,
        "got": [host(node).component(Listener).got for node in range(COUNT)],
        "using": [str(host(node).component(LocalTransport).running) for node in range(COUNT)],
        "events sent": [
            (row.host, row.messages, row.bytes)
            for radio in radios
            for row in radio.traffic()
            if row.direction == "sent" and row.kind == "ad hoc event"
        ],
        "ways": {row[3] for row in rows},
    }


@pytest.mark.parametrize("mechanism", [of("FLOODING"), of("GOSSIP", p=0.7), of("HYPERG")], ids=str)
def test_counted_or_handed_over_it_is_the_same_and_nothing_comes_twice(
    mechanism: MechanismSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = afternoon(mechanism)
    assert found["using"] == ["WIFI"] * COUNT
    assert found["ways"] == {"wifi", "bluetooth"}
    due = len(found["published"]) * (COUNT - 1)
    assert all(len(set(got)) == len(got) for got in found["got"])
    assert sum(map(len, found["got"])) >= 0.97 * due
    monkeypatch.setattr(RadioNetwork, "repeater", lambda *_: None)
    assert afternoon(mechanism) == found
