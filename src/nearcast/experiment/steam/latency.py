"""ST3: how long producers and consumers are at work with one event, whatever the size of the system (STEAM 5.3).

Absolute times are those of the paper's machines.  What can be compared is whether they depend on the number of types, subscribers
and subscriptions: by the clock, and by the number of calls, which is the same on every machine.
"""

from __future__ import annotations

import sys
import timeit
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from nearcast.experiment.checks import Check, Outcome, Part, at_most, between, near
from nearcast.experiment.experiment import Drawing, Experiment
from nearcast.experiment.figures.lines import lines
from nearcast.experiment.runs import Computed
from nearcast.experiment.values import Value
from nearcast.model.area import Circle
from nearcast.model.content_filter import ContentFilter
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.proximity.announcement import announcement_of, identifier
from nearcast.proximity.event_type import EventType
from nearcast.proximity.messages import Beacon, message_of
from nearcast.proximity.service import ProximityService
from nearcast.proximity.settings import ProximitySettings
from nearcast.runtime.host import Component
from nearcast.runtime.ports import Sending
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.network import Network, Parcel, SimulatedLink
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.world import World
from nearcast.transition.engine import HostEngine

HERE: Final = Point(53.3545, -6.2846)
SETTINGS: Final = ProximitySettings(beacon_period=3_600.0)
AREA: Final = Circle(200)
SIZES: Final = (1, 10, 20, 40)
"""Announced types, subscribers, subscriptions."""

RUNS: Final = {True: 100, False: 1_000}
ROUNDS: Final = 15
"""The fastest of so many counts: whatever else the machine does only makes it slower."""

CONTENT: Final = {"count": "integer", "when": "instant", "where": "point", "name": "string", "level": "float"}
_NOON: Final = datetime(2002, 12, 3, 18, 0, tzinfo=UTC)
PARAMETERS: Final = {"count": 3, "when": _NOON, "where": HERE, "name": "north", "level": 0.5}
FILTER: Final = ContentFilter(
    [("count", "range", (1, 5)), ("when", "<=", _NOON), ("where", "=", HERE), ("name", "=", "north"), ("level", ">", 0.1)]
)  # fmt: skip
TYPES: Final = tuple(
    EventType.of(f"traffic/{'status' if number % 2 else 'lamp'}{'x' * (number % 3)}{number:02}", CONTENT)
    for number in range(max(SIZES))
)
"""Names of 14 to 18 characters (5.3.1)."""


class Unheard(Network):
    """A network in which nothing takes time: what the medium costs is not measured (5.3)."""

    in_flight = 0

    def transmit(self, parcel: Parcel) -> Sending:  # noqa: ARG002 - nobody will get it
        return Sending.ACCEPTED


def _device(service: ProximityService) -> Sequence[Component]:
    return [HostEngine(), service]


class Bench:
    """One device, and as many others as are wanted."""

    def __init__(self, others: int = 0) -> None:
        simulation = Simulation(1)
        self.network: Final = Unheard(simulation, "wifi", local=True, overhead=0, check_wire=False)
        self.world: Final = World(simulation, Plane(HERE), others + 1)
        self.services: Final = [ProximityService(SETTINGS) for _ in range(others + 1)]
        for number, service in enumerate(self.services):
            self.world.add(str(number), partial(_device, service), [self.network]).join()

    def raising(self, types: int) -> Callable[[], object]:
        for event_type in TYPES[:types]:
            self.services[0].announce(event_type, AREA, HERE)
        for service in self.services[1:]:
            service.subscribe(TYPES[0].subject, _nothing, FILTER)
        service, subject = self.services[0], TYPES[0].subject
        return lambda: service.raise_event(subject, PARAMETERS)

    def delivering(self, subscriptions: int, runs: int) -> Callable[[], object]:
        service, link = self.services[0], self.network.links["0"]
        for event_type in TYPES[:subscriptions]:
            service.subscribe(event_type.subject, _nothing, FILTER)
        receive = _receiver(link)
        messages = iter(_events(runs))
        receive("them", Beacon("them", 0, _ANNOUNCED, (HERE.lat, HERE.lon), 0, 3_600.0, relay=False))
        return lambda: receive("them", next(messages))


_ANNOUNCED: Final = announcement_of(TYPES[0], AREA, HERE, HERE)


def _receiver(link: SimulatedLink) -> Callable[[str, Any], None]:
    return link.open_ports[SETTINGS.port].receive


def _events(count: int) -> list[Any]:
    group = identifier(_ANNOUNCED.description)
    made = []
    for number in range(1, count + 1):
        event = Event(
            f"them/{number}",
            TYPES[0].subject,
            0,
            PARAMETERS,
            publisher="them",
            place=HERE,
            reach=_ANNOUNCED.reach(None),
        )
        made.append(message_of(event, number, _ANNOUNCED, group, relay=False))
    return made


def _nothing(_event: Event) -> None:
    """Whatever an application does is not measured."""


def latency(_seed: int, *, runs: int) -> dict[str, float]:
    """Microseconds and calls of one event, by size; and how many identifiers of forty types collide."""
    found: dict[str, float] = {}
    work: dict[str, Callable[[int, int], Callable[[], object]]] = {
        "raise, types": lambda size, _: Bench().raising(size),
        "raise, subscribers": lambda size, _: Bench(size).raising(1),
        "deliver, subscriptions": lambda size, count: Bench().delivering(size, count),
    }
    for name, prepare in work.items():
        for size in SIZES:
            found[f"{name} {size}: calls"] = _calls(prepare(size, 2))
        best = dict.fromkeys(SIZES, float("inf"))
        for _ in range(ROUNDS):
            for size in SIZES:  # in turns, so that what disturbs one disturbs the others
                best[size] = min(best[size], _microseconds(prepare(size, runs), runs))
        found |= {f"{name} {size}: microseconds": value for size, value in best.items()}
    identifiers = {identifier(announcement_of(each, AREA, HERE, HERE).description) for each in TYPES}
    found["collisions"] = len(TYPES) - len(identifiers)
    return found


def _microseconds(act: Callable[[], object], runs: int) -> float:
    # As timeit does it, without the collector of garbage: a run has more to look through the more devices there are beside it.
    return timeit.timeit(act, number=runs) / runs * 1e6


def _calls(act: Callable[[], object]) -> int:
    """Of functions, in the second time: the first one fills caches."""
    act()
    count = 0

    def called(_frame: Any, what: str, _argument: Any) -> None:
        nonlocal count
        count += what in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        act()
    finally:
        sys.setprofile(before)
    return count


def _growth(name: str, unit: str) -> Value:
    def value(outcome: Outcome) -> float:
        numbers = outcome["latency"].numbers
        least, most = (numbers[f"{name} {size}: {unit}"] for size in (SIZES[0], SIZES[-1]))
        return most / least

    return value


def _part(name: str) -> tuple[Part, ...]:
    return (
        Part(f"{name}: calls, 40 against 1", near(1.0, 0.02), _growth(name, "calls"), " times"),
        Part(f"{name}: time, 40 against 1", between(0.67, 1.5), _growth(name, "microseconds"), " times"),
    )


def _drawn(outcomes: Sequence[Outcome]) -> Any:
    numbers = outcomes[0]["latency"].numbers
    series = {
        name: [(size, numbers[f"{name} {size}: microseconds"]) for size in SIZES]
        for name in ("raise, types", "raise, subscribers", "deliver, subscriptions")
    }
    return lines(series, x="announced types, subscribers, subscriptions", y="µs", title="Processing of one event")


ST3: Final = Experiment(
    name="steam-st3",
    document="STEAM 5.3",
    title="Processing time of events, by the size of the system",
    runs=lambda _quick: (),
    computed=lambda quick: (Computed("latency", latency, (("runs", RUNS[quick]),), seconds=5.0),),
    seeds=1,
    checks=(
        Check("ST3.1", "raising an event takes as long whatever the number of announced types", "text", _part("raise, types")),
        Check("ST3.2", "and whatever the number of subscribers", "text", _part("raise, subscribers")),
        Check("ST3.3", "delivering one takes as long whatever the number of subscriptions", "text", _part("deliver, subscriptions")),
        Check(
            "ST3.4",
            "forty types of 14 to 18 characters with the same proximity have different identifiers",
            "text",
            (Part("collisions", at_most(0.0), lambda outcome: outcome["latency"].numbers["collisions"]),),
        ),
    ),
    drawings=(Drawing("processing", "Processing of one event", ("latency",), _drawn),),
)  # fmt: skip
