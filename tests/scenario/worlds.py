"""A small world with a mechanism that carries nothing and remembers everything."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from nearcast.dissemination.publisher import EventService, LocationRequest, Notify
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.model.time import MICROSECONDS, Instant, instant
from nearcast.runtime.host import Component, Host
from nearcast.runtime.ports import Cancellable
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.world import SimulatedHost, World
from nearcast.scenario.operations import Operation
from nearcast.scenario.replay import LoggedService

START = instant("2026-01-01T00:00:00Z")
PLANE = Plane(Point(49.8728, 8.6512))


@dataclass(frozen=True)
class Heard:
    """What a mechanism was asked to do."""

    time: Instant
    client: str
    what: str
    event: Event | None = None
    local: bool = False
    subscription: Subscription | None = None
    request: LocationRequest | None = None


@dataclass
class Diary:
    """Everything that was asked of all mechanisms, in order."""

    heard: list[Heard] = field(default_factory=list)

    def published(self, client: str | None = None) -> list[Heard]:
        return [one for one in self.heard if one.what == "publish" and client in (None, one.client)]

    def events(self) -> list[Event]:
        return [one.event for one in self.heard if one.event is not None]

    def seconds(self, client: str) -> list[float]:
        """When that client published."""
        return [(one.time - START) / MICROSECONDS for one in self.published(client)]


class Mechanism(EventService):
    def __init__(self, diary: Diary) -> None:
        self._diary = diary
        self.notify: list[Notify] = []

    def start(self, host: Host) -> None:
        self._host = host

    def publish(self, event: Event, *, local: bool = False) -> None:
        self.note("publish", event=event, local=local)

    def subscribe(
        self, subscription: Subscription, notify: Notify, request: LocationRequest | None = None
    ) -> Cancellable:
        self.note("subscribe", subscription=subscription, request=request)
        self.notify.append(notify)
        return _Held(lambda: self.note("unsubscribe", subscription=subscription))

    def note(
        self,
        what: str,
        event: Event | None = None,
        local: bool = False,
        subscription: Subscription | None = None,
        request: LocationRequest | None = None,
    ) -> None:
        heard = Heard(self._host.now(), self._host.name, what, event, local, subscription, request)
        self._diary.heard.append(heard)


@dataclass(eq=False)
class _Held(Cancellable):
    cancelled: Callable[[], None]

    def cancel(self) -> None:
        self.cancelled()


class SmallWorld:
    """Clients that stand in a row, 10 m apart, from the origin to the east."""

    def __init__(self, names: Sequence[str], applications: Callable[[str], Sequence[Component]], seed: int = 1) -> None:
        self.diary = Diary()
        self.simulation = Simulation(seed, start=START)
        self.world = World(self.simulation, PLANE, len(names))
        self._applications = applications
        self.hosts = {name: self._add(name) for name in names}
        for node in range(len(names)):
            self.world.motion.put(node, 10.0 * node, 0.0)

    def _add(self, name: str) -> SimulatedHost:
        return self.world.add(name, lambda: [self.mechanism(), *self._applications(name)], [])

    def mechanism(self) -> EventService:
        return Mechanism(self.diary)

    def join(self) -> None:
        for host in self.hosts.values():
            host.join()

    def run(self, seconds: float) -> None:
        """Until that many seconds after the start."""
        self.simulation.run(START + round(seconds * MICROSECONDS))


class Recorded(SmallWorld):
    """The same, with a log of what applications ask of their mechanism."""

    def __init__(
        self, names: Sequence[str], applications: Callable[[str], Sequence[Component]], log: list[Operation]
    ) -> None:
        self._log = log
        super().__init__(names, applications)

    def mechanism(self) -> EventService:
        return LoggedService(super().mechanism(), START, self._log.append)
