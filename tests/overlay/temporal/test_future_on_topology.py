"""Messages for the future over routers that find out themselves who is linked with whom, on wires that lose some."""

from __future__ import annotations

from tests.overlay.temporal.test_on_topology import Land

from nearcast.model.event import Event
from nearcast.model.temporal import TemporalPredicate
from nearcast.model.time import MICROSECONDS
from nearcast.overlay.temporal.future import Future
from nearcast.runtime.host import Component


class WaitingLand(Land):
    def _parts(self, name: str) -> list[Component]:
        return [*super()._parts(name), Future()]

    def holding(self) -> list[str]:
        routers = ((name, self.world.hosts[name].host) for name in self.places)
        return [name for name, host in routers if host is not None and "e" in host.component(Future)]


def test_a_message_waits_through_failures_and_finds_whoever_comes_and_who_was_there() -> None:
    land = WaitingLand()
    land.run(40)
    land.person("ada", "r2")
    land.run(60)
    now = land.simulation.time
    when = TemporalPredicate("overlaps", now - 30 * MICROSECONDS, now + 1_000 * MICROSECONDS)
    land.publish("r9", Event("e", "news", now, to="role = 'guest'", when=when))
    land.run(60)
    assert land.got == ["ada e"]
    assert "r9" in land.holding()
    # Half of the routers fail, one after the other, and come back with nothing that they knew.
    for name in ("r3", "r4", "r5", "r6", "r7"):
        land.world.hosts[name].fail()
        land.run(60)
        land.world.hosts[name].join()
        land.run(60)
    land.person("bob", "r5")
    land.run(60)
    assert sorted(land.got) == ["ada e", "bob e"]
    land.world.hosts["r9"].fail()
    land.run(60)
    land.person("cyd", "r6")
    land.run(60)
    assert sorted(land.got) == ["ada e", "bob e", "cyd e"]
    land.run(1_000)
    assert land.holding() == []
