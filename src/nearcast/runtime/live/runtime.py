"""Hosts on an asyncio event loop: the live counterpart of a simulated world.

Callbacks come from the loop, one at a time.  What one of them raises is never lost: its host fails at that instant, the others
leave in good order, and ``LiveRuntime.run`` raises it with a note that says where it came from.
"""

from __future__ import annotations

import asyncio
import secrets
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from nearcast.errors import InvalidInput, UnknownName
from nearcast.model.time import to_text
from nearcast.runtime.host import Component, Host, Ports
from nearcast.runtime.links import Traffic
from nearcast.runtime.live.clock import LiveClock
from nearcast.runtime.live.sensor import LiveSensor, NewestFix
from nearcast.runtime.live.timers import LiveTimers
from nearcast.runtime.live.udp import Station, UdpLink, UdpNetwork
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Address, Clock
from nearcast.runtime.random import RandomStreams
from nearcast.runtime.state import Remote

Build = Callable[[], Sequence[Component]]
"""Makes the components of a host, anew whenever it joins: who failed remembers nothing."""


class LiveHost:
    """A place for a host on this machine: it joins, leaves, fails and returns."""

    def __init__(
        self, runtime: LiveRuntime, name: str, build: Build, networks: Sequence[UdpNetwork], position: NewestFix | None
    ) -> None:
        self.name: Final = name
        self.host: Host | None = None
        """None while it is away."""

        self._runtime: Final = runtime
        self._build: Final = build
        station = Station(name, runtime.clock, self._guard, runtime.observers, runtime.names)
        self.links: Final[dict[str, UdpLink]] = {network.interface: network.attach(station) for network in networks}
        self._position: Final = position
        self._timers: LiveTimers | None = None
        self._lives = 0

    @property
    def up(self) -> bool:
        return self.host is not None

    def join(self) -> None:
        """Come up, with new components and nothing remembered; nothing happens to a host that is up."""
        self._may_act("let a host join")
        if self.host is not None:
            return
        if not self._runtime.running:
            raise InvalidInput(f"host {self.name!r} can join only while its runtime runs: await LiveRuntime.run()")
        try:
            for link in self.links.values():
                link.switch(on=True)
            self._lives += 1
            self.host = Host(self.name, self._ports(), self._build())
            self._runtime.note(self.name, "joined" if self._lives == 1 else "returned")
            self.host.start()
        except BaseException:
            self.end("failed")
            raise

    def leave(self) -> None:
        """Go in good order: the components have the last word."""
        self._may_act("let a host leave")
        if self.host is not None:
            try:
                self.host.stop()
            finally:
                self.end("left")

    def fail(self) -> None:
        """Stop dead: nobody is told."""
        self._may_act("let a host fail")
        self.end("failed")

    def end(self, how: str) -> None:
        """Take everything down: the runtime's way to end a host, whatever state it is in."""
        host, self.host = self.host, None
        with ExitStack() as steps:  # last in, first out; each is done, even if another raises
            if host is not None:
                steps.callback(self._runtime.note, self.name, how)
            for link in self.links.values():
                steps.callback(link.switch, on=False)
            if self._timers is not None:
                steps.callback(self._timers.end)

    def _may_act(self, what: str) -> None:
        if self._runtime.observers.watching:
            self._runtime.observers.refuse(what)

    def _guard(self, callback: Callable[..., None], *arguments: Any) -> None:
        try:
            callback(*arguments)
        except Exception as error:  # noqa: BLE001 - whatever it is, `run` raises it
            self._runtime.report(self, error)

    def _ports(self) -> Ports:
        runtime, life = self._runtime, str(self._lives)
        timers = self._timers = LiveTimers(runtime.clock, self._guard, runtime.observers)

        def random(name: str) -> Random:
            # The streams of the simulated half: the same seed makes the same choices.
            return runtime.random.stream("host", self.name, life, name)

        sensor = None if self._position is None else LiveSensor(self._position, timers)
        return Ports(
            runtime.clock, timers, self.links, sensor, random, runtime.observers, remote_state=runtime.remote_state
        )


@dataclass(frozen=True, slots=True)
class RuntimeStatistics:
    hosts: int
    up: int
    failures: int
    """Callbacks that raised."""


class LiveRuntime:
    """Everything of one run in this process.  Observers must be complete before hosts are added."""

    def __init__(
        self,
        *,
        seed: int | None = None,
        observers: Observers | None = None,
        clock: Clock | None = None,
        remote_state: Remote | None = None,
    ) -> None:
        self.clock: Final = clock or LiveClock()
        self.observers: Final = observers or Observers()
        self.random: Final = RandomStreams(secrets.randbits(64) if seed is None else seed)
        self.remote_state: Final = remote_state
        self.hosts: Final[dict[str, LiveHost]] = {}
        self.names: Final[dict[Address, str]] = {}
        """The hosts of this process, by address."""

        self.running = False
        self._clients: Final = self.observers.emitter("clients")
        self._stopping: Final = asyncio.Event()
        self._failure: Exception | None = None
        self._failures = 0

    def add(
        self, name: str, build: Build, networks: Sequence[UdpNetwork] = (), *, position: NewestFix | None = None
    ) -> LiveHost:
        """A host with links to these networks; it joins when the runtime runs."""
        if name in self.hosts:
            raise UnknownName(f"there is a host {name!r} already; give each its own name")
        host = self.hosts[name] = LiveHost(self, name, build, networks, position)
        return host

    async def run(self) -> None:
        """Let all hosts join, and leave when ``stop`` is called; raises what a callback raised, if one did."""
        if self.running:
            raise InvalidInput("this runtime runs already")
        self.running = True
        self._failure = None
        try:
            for host in list(self.hosts.values()):
                host.join()
            await self._stopping.wait()
        except Exception as error:  # noqa: BLE001 - a host could not join; first the others leave
            self._failure = self._failure or error
        finally:
            for host in reversed(list(self.hosts.values())):
                self._leave(host)
            self.running = False
            self._stopping.clear()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """End ``run``, soon."""
        self._stopping.set()

    def report(self, host: LiveHost, error: Exception) -> None:
        """A callback of that host raised: it fails, and everything stops."""
        self._failures += 1
        if self._failure is None:
            self._failure = error
            error.add_note(f"in a callback of host {host.name!r} at {to_text(self.clock.now())}; the runtime stops")
        else:
            self._failure.add_note(f"afterwards, in host {host.name!r}: {error!r}")
        self.stop()
        try:
            host.end("failed")
        except Exception as another:  # noqa: BLE001 - an observer that raises at every row, say
            self._failure.add_note(f"and while host {host.name!r} failed: {another!r}")

    def note(self, host: str, what: str) -> None:
        self._clients(self.clock.now(), host, what)

    def traffic(self) -> Iterator[Traffic]:
        """The books of all links."""
        for host in self.hosts.values():
            for link in host.links.values():
                yield from link.traffic()

    def statistics(self) -> RuntimeStatistics:
        return RuntimeStatistics(len(self.hosts), sum(host.up for host in self.hosts.values()), self._failures)

    def _leave(self, host: LiveHost) -> None:
        try:
            host.leave()
        except Exception as error:  # noqa: BLE001 - the others must leave too; then `run` raises it
            self.report(host, error)


def run_until_stopped(runtime: LiveRuntime) -> None:
    """Run in this process until it is told to stop (SIGINT, SIGTERM); the second time, it stops without farewell."""
    asyncio.run(_until_signalled(runtime))


async def _until_signalled(runtime: LiveRuntime) -> None:
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)

    def stop() -> None:
        runtime.stop()
        for number in signals:
            loop.remove_signal_handler(number)

    for number in signals:
        loop.add_signal_handler(number, stop)
    await runtime.run()
