"""A simulated world: one run's clock, networks, people who move, and the hosts they carry.

Nodes move whether their hosts are up or not (BYPASS.KOM 6.4.3: inactive clients still move).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Final

from nearcast.errors import UnknownName
from nearcast.runtime.host import Component, Host, Ports
from nearcast.runtime.ports import Accuracy, Address
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.motion import Motion
from nearcast.runtime.simulation.network import Network, SimulatedLink
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.sensor import EXACT, SimulatedSensor
from nearcast.runtime.simulation.timers import Life, SimulatedTimers
from nearcast.runtime.state import Information

Build = Callable[[], Sequence[Component]]
"""Makes the components of a host, anew whenever it joins: who failed remembers nothing."""


class SimulatedHost:
    """A place for a host in the world: it joins, leaves, fails and returns."""

    def __init__(self, world: World, name: str, node: int, build: Build, links: Mapping[str, SimulatedLink]) -> None:
        self.name: Final = name
        self.node: Final = node
        self.host: Host | None = None
        """None while it is away."""

        self._world: Final = world
        self._build: Final = build
        self._links: Final = links
        self._life = Life(name)
        self._lives = 0

    @property
    def up(self) -> bool:
        return self.host is not None

    def join(self) -> None:
        """Come up, with new components and nothing remembered; nothing happens to a host that is up."""
        self._may_act("let a host join")
        if self.host is not None:
            return
        self._lives += 1
        self._life = Life(self.name)
        for link in self._links.values():
            link.switch(on=True)
        self._world.note(self, "joined" if self._lives == 1 else "returned")
        self.host = Host(self.name, self._ports(), self._build())
        self.host.start()

    def leave(self) -> None:
        """Go in good order: the components have the last word."""
        self._may_act("let a host leave")
        if self.host is not None:
            self.host.stop()
            self._end("left")

    def fail(self) -> None:
        """Stop dead: nobody is told."""
        self._may_act("let a host fail")
        if self.host is not None:
            self._end("failed")

    def _may_act(self, what: str) -> None:
        simulation = self._world.simulation
        if simulation.observers.watching:
            simulation.observers.refuse(what)
        simulation.backlog.catch_up()

    def _end(self, how: str) -> None:
        self._life.alive = False
        self.host = None
        for link in self._links.values():
            link.switch(on=False)
        self._world.note(self, how)

    def _ports(self) -> Ports:
        world, simulation = self._world, self._world.simulation
        timers = SimulatedTimers(simulation, self._life)
        life = str(self._lives)

        def random(name: str) -> Random:
            # A new life draws new numbers, or a client that returns would repeat itself.
            return simulation.random.stream("host", self.name, life, name)

        sensor = SimulatedSensor(
            simulation, world.motion, self.node, world.plane, timers, random("sensor"), world.sensor_errors
        )
        return Ports(
            simulation, timers, self._links, sensor, random, simulation.observers, remote_state=world.ask_others
        )


class World:
    """Everything in one run.  Observers must be added to the simulation before the networks are made."""

    def __init__(
        self,
        simulation: Simulation,
        plane: Plane,
        nodes: int,
        *,
        sensor_errors: Mapping[Accuracy, float] = EXACT,
    ) -> None:
        self.simulation: Final = simulation
        self.plane: Final = plane
        self.motion: Final = Motion(simulation, nodes)
        self.sensor_errors: Final = sensor_errors
        self.hosts: Final[dict[str, SimulatedHost]] = {}
        self._nodes: Final = nodes
        self._clients: Final = simulation.observers.emitter("clients")

    def add(self, name: str, build: Build, networks: Sequence[Network]) -> SimulatedHost:
        """A host with links to these networks; it is away until it joins."""
        node = len(self.hosts)
        if node >= self._nodes:
            raise UnknownName(f"this world has room for {self._nodes} hosts; {name!r} is one too many")
        if name in self.hosts:
            raise UnknownName(f"there is a host {name!r} already; give each its own name")
        links = {network.interface: network.attach(name, node) for network in networks}
        host = self.hosts[name] = SimulatedHost(self, name, node, build, links)
        return host

    def note(self, host: SimulatedHost, what: str) -> None:
        self._clients(self.simulation.now(), host.name, what)

    def ask_others(
        self, information: Information[object], about: Address | None, answer: Callable[[object], None]
    ) -> None:
        """The State Information System's way to other hosts, backed by global knowledge (BYPASS.KOM 5.2.4)."""
        self.simulation.backlog.catch_up()
        asked = self.hosts.values() if about is None else filter(None, [self.hosts.get(about)])
        for other in asked:
            value = other.host.state.get(information) if other.host else None
            if value is not None:
                # Not at once: a callback never comes from inside the call that asked for it.
                self.simulation.at(self.simulation.now(), answer, value)
                return
