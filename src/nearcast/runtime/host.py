"""A host is what its components make it: a phone, a car, a broker.

Components are added before the host starts.  Each finds the ports on its host and the others by their interface; which
implementation stands behind it is the runtime's business (BYPASS.KOM 5.1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, TypeVar

from nearcast.errors import UnknownName
from nearcast.model.geometry import Point
from nearcast.model.time import Instant
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Clock, Link, LocationSensor, Timers
from nearcast.runtime.state import Remote, StateInformation

C = TypeVar("C")


def nowhere() -> None:
    """The position of a host without a sensor."""


class Component(ABC):
    """A part of a host: a mechanism, an application, a workload."""

    @abstractmethod
    def start(self, host: Host) -> None:
        """Take what is needed from the host: open endpoints, set timers, find other components."""

    def stop(self) -> None:
        """The host leaves in good order: last words.  Not called when it fails."""


@dataclass(frozen=True)
class Ports:
    """What a runtime hands to a host."""

    clock: Clock
    timers: Timers
    links: Mapping[str, Link]
    sensor: LocationSensor | None
    random: Callable[[str], Random]
    """A stream of its own for each name; streams of two hosts differ."""

    observers: Observers
    remote_state: Remote | None = None


class Host:
    """Ports and components under one name."""

    def __init__(self, name: str, ports: Ports, components: Sequence[Component] = ()) -> None:
        self.name: Final = name
        self.clock: Final = ports.clock
        self.timers: Final = ports.timers
        self.sensor: Final = ports.sensor
        self.position: Final[Callable[[], Point | None]] = ports.sensor.position if ports.sensor else nowhere
        """Where it is, as far as it knows."""

        self.random: Final = ports.random
        self.observers: Final = ports.observers
        self.state: Final = StateInformation(ports.remote_state)
        self.components: Final = tuple(components)
        self._links: Final = ports.links

    def now(self) -> Instant:
        return self.clock.now()

    def link(self, interface: str) -> Link:
        try:
            return self._links[interface]
        except KeyError:
            has = ", ".join(self._links) or "none at all"
            raise UnknownName(f"host {self.name!r} has no link {interface!r} (it has: {has})") from None

    def component(self, interface: type[C]) -> C:
        """The one component that implements the interface."""
        found = [component for component in self.components if isinstance(component, interface)]
        if len(found) != 1:
            raise UnknownName(f"host {self.name!r} has {len(found)} components of kind {interface.__name__}, not one")
        return found[0]

    def start(self) -> None:
        """Start the components in their order: a component may use those before it."""
        for component in self.components:
            component.start(self)

    def stop(self) -> None:
        """Stop the components in reverse order."""
        for component in reversed(self.components):
            component.stop()
