"""A small but real mechanism that runs unchanged on both halves: neighbours find each other, exchange numbered messages that
are acknowledged and sent again when lost, and tell each other where they are.

Its parts know of each other only what the State Information System tells them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nearcast.model.geometry import Point
from nearcast.runtime.host import Component, Host
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, Cancellable, Fix
from nearcast.runtime.state import Information

HELLO_PORT, PING_PORT, PLACE_PORT = 1, 2, 3


class Hello(Message, frozen=True, tag="hello"):
    name: str


class Ping(Message, frozen=True, tag="ping"):
    number: int


class Pong(Message, frozen=True, tag="pong"):
    number: int


class Place(Message, frozen=True, tag="place"):
    lat: float
    lon: float


@dataclass(frozen=True)
class Neighbour:
    address: Address
    name: str


@dataclass(frozen=True)
class Progress:
    """``done`` numbers of so many were acknowledged by (or have come from) a neighbour."""

    way: str
    address: Address
    done: int


NEIGHBOUR: Final = Information("neighbour", Neighbour)
NAMES: Final[Information[dict[Address, str]]] = Information("names", dict)
POSITION: Final = Information("position", Point)
PROGRESS: Final = Information("progress", Progress)
SEQUENCES: Final[Information[dict[str, dict[Address, list[int]]]]] = Information("sequences", dict)
PLACES: Final[Information[dict[Address, tuple[float, float]]]] = Information("places", dict)


class Discovery(Component):
    """Says hello now and then, and announces whom it hears for the first time."""

    def __init__(self, period: float) -> None:
        self._period = period
        self._names: dict[Address, str] = {}

    def start(self, host: Host) -> None:
        self._state = host.state
        endpoint = host.link("wifi").open(HELLO_PORT, self._heard, Hello)
        jitter = host.random("hello").uniform(0.0, self._period)

        def hello() -> None:
            endpoint.broadcast(Hello(host.name))

        host.timers.every(self._period, hello, first=jitter)
        host.state.provide(NAMES, lambda: self._names)

    def _heard(self, sender: Address, hello: Hello) -> None:
        if sender not in self._names:
            self._names[sender] = hello.name
            self._state.announce(NEIGHBOUR, Neighbour(sender, hello.name))


class Numbers(Component):
    """Sends 1, 2, ... to every neighbour; the next when the one before was acknowledged, the same again when it was not."""

    def __init__(self, count: int, patience: float) -> None:
        self._count = count
        self._patience = patience
        self._acknowledged: dict[Address, list[int]] = {}
        self._delivered: dict[Address, list[int]] = {}
        self._waiting: dict[Address, Cancellable] = {}

    def start(self, host: Host) -> None:
        self._host = host
        self._endpoint = host.link("wifi").open(PING_PORT, self._received, Ping, Pong)
        host.state.consume(NEIGHBOUR, lambda neighbour: self._send(neighbour.address, 1))
        host.state.provide(SEQUENCES, lambda: {"acknowledged": self._acknowledged, "delivered": self._delivered})

    def _send(self, to: Address, number: int) -> None:
        self._endpoint.send(to, Ping(number))
        self._waiting[to] = self._host.timers.after(self._patience, lambda: self._send(to, number))

    def _received(self, sender: Address, message: Ping | Pong) -> None:
        numbers = self._delivered if isinstance(message, Ping) else self._acknowledged
        done = numbers.setdefault(sender, [])
        new = message.number == len(done) + 1
        if new:
            done.append(message.number)
        if isinstance(message, Ping):
            self._endpoint.send(sender, Pong(message.number))
        elif new:
            self._waiting.pop(sender).cancel()
            if message.number < self._count:
                self._send(sender, message.number + 1)
        if new:
            way = "delivered" if isinstance(message, Ping) else "acknowledged"
            self._host.state.announce(PROGRESS, Progress(way, sender, len(done)))


class Places(Component):
    """Knows where it is, and tells every new neighbour."""

    def __init__(self) -> None:
        self._position: Point | None = None
        self._places: dict[Address, tuple[float, float]] = {}
        self._untold: list[Address] = []

    def start(self, host: Host) -> None:
        assert host.sensor is not None
        self._state = host.state
        self._endpoint = host.link("wifi").open(PLACE_PORT, self._heard, Place)
        host.state.consume(NEIGHBOUR, self._met)
        host.state.provide(POSITION, lambda: self._position)
        host.state.provide(PLACES, lambda: self._places)
        host.sensor.request(0.02, self._moved)

    def _moved(self, fix: Fix) -> None:
        self._position = fix.position
        self._tell()

    def _met(self, neighbour: Neighbour) -> None:
        self._untold.append(neighbour.address)
        self._tell()

    def _tell(self) -> None:
        if self._position is not None:
            for address in self._untold:
                self._endpoint.send(address, Place(self._position.lat, self._position.lon))
            self._untold.clear()

    def _heard(self, sender: Address, place: Place) -> None:
        self._places[sender] = (place.lat, place.lon)
        self._state.announce(PROGRESS, Progress("placed", sender, 1))


class Summary(Component):
    """Counts what the others announce, and knows when all is done."""

    def __init__(self, others: int, count: int, finished: Callable[[Summary], None]) -> None:
        self._expected = others * (count + count + 1)
        self._counted = 0
        self._finished = finished
        self._farewell = False

    def start(self, host: Host) -> None:
        self._host = host
        host.state.consume(PROGRESS, self._progressed)

    def stop(self) -> None:
        self._farewell = True

    def _progressed(self, progress: Progress) -> None:
        self._counted += 1
        if self._counted == self._expected:
            self._finished(self)

    def did(self) -> dict[str, Any]:
        """What came of it, by the names of the neighbours: on both halves the same."""
        state = self._host.state
        names = state.need(NAMES)
        sequences, places = state.need(SEQUENCES), state.need(PLACES)
        here = state.need(POSITION)
        return {
            "neighbours": sorted(names.values()),
            **{way: {names[at]: numbers for at, numbers in of.items()} for way, of in sequences.items()},
            "places": {names[at]: list(place) for at, place in places.items()},
            "here": [here.lat, here.lon],
            "counted": self._counted,
            "said farewell": self._farewell,
        }


def components(
    others: int, count: int, patience: float, finished: Callable[[Summary], None], beacon: float = 0.05
) -> Sequence[Component]:
    return (Discovery(beacon), Numbers(count, patience), Places(), Summary(others, count, finished))
