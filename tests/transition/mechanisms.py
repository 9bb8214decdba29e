"""A small family of mechanisms for the tests: who is where, kept in different ways."""

from abc import abstractmethod
from collections.abc import Callable, Collection
from typing import Annotated, Any

from nearcast.errors import UnknownName
from nearcast.model.geometry import Point
from nearcast.runtime.host import Component, Host
from nearcast.runtime.observers import Observers
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.transition.engine import HostEngine, TransitionEngine
from nearcast.transition.mechanism import Mechanism
from nearcast.transition.null import neutral
from nearcast.transition.specification import NULL, MechanismSpec
from nearcast.transition.state import Parameter, Transferred

RADIAL = MechanismSpec.of("RADIAL")
ENVELOPE = MechanismSpec.of("ENVELOPE", alpha=1.5)
GRID = MechanismSpec.of("GRID", factor=5)
BROKEN = MechanismSpec.of("BROKEN")

HOME = Point(49.87, 8.65)


class Scheme(Mechanism):
    """The API."""

    @abstractmethod
    def report(self, member: str, place: int) -> None: ...

    @abstractmethod
    @neutral(tuple)
    def known(self) -> tuple[str, ...]: ...


class Located(Scheme):
    """Keeps a place for each member; writes down what happens to it."""

    places: Annotated[dict[str, int], Transferred(per_member=True)]
    listeners: Annotated[list[Callable[..., Any]], Transferred()]

    def __init__(self, log: list[str]) -> None:
        self.places = {}
        self.listeners = []
        self.log = log

    def report(self, member: str, place: int) -> None:
        self.places[member] = place

    def known(self) -> tuple[str, ...]:
        return tuple(self.places)

    def start_mechanism(self) -> None:
        self.log.append(f"start {type(self).__name__}")

    def stop_mechanism(self) -> None:
        self.log.append(f"stop {type(self).__name__}")
        self.places.clear()

    def bootstrap(self) -> None:
        self.log.append(f"bootstrap {type(self).__name__}")

    def members_joined(self, members: Collection[str]) -> None:
        self.log.append(f"{type(self).__name__} gets {' '.join(members)}")

    def members_left(self, members: Collection[str]) -> None:
        self.log.append(f"{type(self).__name__} gives {' '.join(members)}")


class Radial(Located):
    pass


class Envelope(Located):
    alpha: Annotated[float, Parameter()]

    def __init__(self, log: list[str], alpha: float = 1.0) -> None:
        super().__init__(log)
        self.alpha = alpha


class Grid(Located):
    factor: Annotated[int, Parameter()]

    def __init__(self, log: list[str], factor: int) -> None:
        super().__init__(log)
        self.factor = factor

    def set_factor(self, factor: int) -> None:
        if factor < 1:
            raise ValueError("a grid has at least one cell")
        self.factor = factor
        self.log.append(f"cut anew into {factor}")


class Broken(Located):
    """Cannot be started."""

    def start_mechanism(self) -> None:
        super().start_mechanism()
        self.places.clear()  # does its worst before it fails
        raise ValueError("no start")


def maker(log: list[str]) -> Callable[[MechanismSpec], Scheme]:
    """Makes mechanisms that write to that log."""

    def make(spec: MechanismSpec) -> Scheme:
        parameters: dict[str, Any] = dict(spec.parameters)
        match spec.name:
            case "RADIAL":
                return Radial(log)
            case "ENVELOPE":
                return Envelope(log, **parameters)
            case "GRID":
                return Grid(log, **parameters)
            case "BROKEN":
                return Broken(log)
        raise UnknownName(f"no mechanism {spec.name!r}")

    return make


class Engine:
    """An engine with all that it needs, and the rows that it writes."""

    def __init__(self, default: MechanismSpec = RADIAL, *, parallel: bool = False) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.log: list[str] = []
        observers = Observers()
        observers.record("transitions", lambda *row: self.rows.append(row))
        self.simulation = Simulation(1, observers=observers)
        self.engine = TransitionEngine(self.simulation, observers, "ada", lambda: HOME)
        if parallel:
            self.parallel = self.engine.create_parallel_proxy("scheme", Scheme, maker(self.log), default)
        else:
            self.proxy = self.engine.create_proxy("scheme", Scheme, maker(self.log), default)


class SchemeHost(Component):
    """A component that has a proxy, after the engine of its host."""

    def __init__(self, default: MechanismSpec = NULL, name: str = "scheme") -> None:
        self.default, self.name = default, name
        self.log: list[str] = []

    def start(self, host: Host) -> None:
        engine = host.component(HostEngine).engine
        self.proxy = engine.create_proxy(self.name, Scheme, maker(self.log), self.default)
