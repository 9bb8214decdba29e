"""The same component on an 802.11 radio, where messages collide, and live over UDP."""

from __future__ import annotations

import asyncio

from tests.proximity.town import WARNING, Town
from tests.runtime.live.virtual import live, neighbourhood, started
from tests.waiting import until

from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.proximity.event_type import EventType
from nearcast.proximity.service import ProximityService
from nearcast.proximity.settings import ProximitySettings
from nearcast.runtime.host import Component
from nearcast.runtime.live import FedPosition, LiveRuntime
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.radio.network import RadioNetwork
from nearcast.runtime.simulation.radio.profile import Ranges, wifi_b
from nearcast.runtime.simulation.world import World
from nearcast.transition.engine import HostEngine

HERE = Point(53.3545, -6.2846)
NORTH = {"ada": 0.0, "bob": 0.0005, "eve": 0.0010, "ian": 0.0050}
"""Degrees; a thousandth is 111 m."""


def wifi(simulation: Simulation, world: World) -> RadioNetwork:
    return RadioNetwork(simulation, wifi_b(Ranges(reception=200.0, interference=400.0)), world.motion, check_wire=True)


def test_on_a_radio_with_collisions_a_crowd_that_takes_its_time_reaches_nearly_everybody() -> None:
    """Sixty vehicles pass an event on over 1,400 m; what is lost, persistence brings back."""
    kept = EventType.of(WARNING.subject, {"severity": "integer"}, persistence=30.0)
    names = {"car": (0.0, 0.0), **{f"n{number}": (-690.0 + 23.0 * number, 3.5 * (number % 2)) for number in range(60)}}
    town = Town(names, ProximitySettings(jitter=0.1), radio=wifi)
    for name in list(names)[1:]:
        town.listen(name)
    town["car"].announce(kept, Circle(700))
    town.run(2.5)
    for number in range(5):
        town.raise_at(2.5 + number, "car", WARNING.subject, {"severity": number})
    town.run(8.0)
    wanted = [event.id for event in town.raised]
    got = [sorted(town.ids(name)) for name in list(names)[1:]]
    assert all(len(each) == len(set(each)) for each in got)
    assert sum(map(len, got)) >= 0.99 * 60 * len(wanted)


def test_live_who_is_near_hears_it_and_who_is_far_does_not() -> None:
    async def story() -> None:
        runtime, network = LiveRuntime(), neighbourhood()
        services = {name: ProximityService(ProximitySettings(beacon_period=0.05)) for name in NORTH}
        got: dict[str, list[Event]] = {name: [] for name in NORTH}
        positions = {}
        for name, north in NORTH.items():
            positions[name] = FedPosition(runtime.clock)
            positions[name].update(HERE.lat + north, HERE.lon, accuracy=1.0)
            runtime.add(name, lambda name=name: _device(services[name]), [network], position=positions[name].fix)  # type: ignore[misc]
        running = await started(runtime)
        for name in ("bob", "eve", "ian"):
            services[name].subscribe(WARNING.subject, got[name].append, "severity > 1")
        services["ada"].announce(WARNING, Circle(120))
        await until(lambda: all(_relevant(services[name]) for name in ("bob", "eve")))
        services["ada"].raise_event(WARNING.subject, {"severity": 1})
        event = services["ada"].raise_event(WARNING.subject, {"severity": 2})
        await until(lambda: bool(got["bob"] and got["eve"]))
        assert got["bob"] == got["eve"] == [event]
        # Eve drives away, ian comes: nobody subscribes anew.
        positions["eve"].update(HERE.lat + 0.0050, HERE.lon, accuracy=1.0)
        positions["ian"].update(HERE.lat + 0.0010, HERE.lon, accuracy=1.0)
        await until(lambda: _relevant(services["ian"]) and not _relevant(services["eve"]))
        other = services["ada"].raise_event(WARNING.subject, {"severity": 3})
        await until(lambda: bool(got["ian"]) and len(got["bob"]) == 2)
        assert got["ian"] == [other]
        assert got["eve"] == [event]
        runtime.stop()
        await asyncio.wait_for(running, 5)

    live(story)


def _device(service: ProximityService) -> list[Component]:
    return [HostEngine(), service]


def _relevant(service: ProximityService) -> bool:
    air = service.statistics().air
    return air is not None and air.relevant > 0
