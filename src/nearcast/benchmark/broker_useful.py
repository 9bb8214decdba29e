"""Useful location deliveries over MQTT: nearcast with areas, any other broker with topics for the cells of a grid.

Step by step, so that the right answer is known exactly: everybody moves, and all of that has been handled; then
everybody publishes, and all of that has been delivered.  A cell client gets whatever happens in the cells that its
circle touches and keeps what is near; only that counts.  The keeping is not part of the measured time.
"""

from __future__ import annotations

import struct
import time
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from nearcast.benchmark.broker_crowd import Crowd, Link
from nearcast.benchmark.broker_frames import Numbers
from nearcast.benchmark.broker_laps import Lane, Lap, Watch
from nearcast.benchmark.broker_packets import PUBLISH, SUBACK, UNSUBACK, numbered
from nearcast.benchmark.broker_script import SECONDS_BETWEEN_REPORTS, Script
from nearcast.benchmark.peers.server import Server
from nearcast.benchmark.workload import RADIUS
from nearcast.errors import BenchmarkError

PAYLOAD: Final = 128
_UNDER_WAY: Final = 20_000
BETWEEN_POLLS: Final = 8
_PATIENCE: Final = 3.0
_DEGREE: Final = 10_000_000
_POSITION: Final = struct.Struct(">Bii")


class Useful(Lane):
    """Turns take the next ``steps`` steps of the script each, the same for everybody."""

    metric = "useful_deliveries_per_second"

    def __init__(self, server: Server, script: Script, steps: int, parameters: dict[str, Any]) -> None:
        described = {
            "clients": script.clients,
            "radius": RADIUS,
            "seconds_between_reports": SECONDS_BETWEEN_REPORTS,
            "payload_bytes": PAYLOAD,
            "steps": steps,
        }
        super().__init__(server, {**described, **parameters})
        self._script, self._steps = script, steps
        self._step = 1  # everybody is where step 0 has them
        self._delivered = 0
        self._arrivals: list[tuple[int, Numbers]] = []

    def lap(self, seconds: float) -> Lap:  # noqa: ARG002 - exactly the same work for everybody
        if self._step + self._steps > self._script.steps:
            raise BenchmarkError("the script is too short for that many turns")
        steps = range(self._step, self._step + self._steps)
        self._step = steps.stop
        prepared = [(self.prepare_moves(step), self.prepare_publishes(step)) for step in steps]
        self._arrivals.clear()
        before = self._delivered
        watch, moving = Watch(self.server), 0.0
        for moves, publishes in prepared:
            started = time.perf_counter()
            self.move(moves)
            moving += time.perf_counter() - started
            self.publish(publishes)
        lap = watch.lap(0)
        people = len(steps) * self._script.clients
        self.parameters["moves_per_second"] = round(people / moving)
        self.parameters["publishes_per_second"] = round(people / (lap.seconds - moving))
        events = np.concatenate([numbers for _, numbers in self._arrivals] or [np.zeros(0, np.int64)])
        receivers = np.repeat([who for who, _ in self._arrivals], [len(numbers) for _, numbers in self._arrivals])
        kept = self.keep(events, receivers)
        judgement = self._script.judge(events[kept], receivers[kept], steps)
        self.parameters["delivered_per_useful"] = round((self._delivered - before) / max(1, judgement.useful), 2)
        return Lap(judgement.useful, lap.seconds, lap.server_cores, lap.generator_cores, judgement.differing)

    def arrived(self, link: Link, numbers: Numbers, identifiers: Numbers) -> None:  # noqa: ARG002 - all are QoS 0
        self._delivered += len(numbers)
        self._arrivals.append((link.number, numbers.copy()))

    def keep(self, events: Numbers, receivers: Numbers) -> Any:  # noqa: ARG002 - for those that get too much
        """Which deliveries the receivers keep."""
        return slice(None)

    @abstractmethod
    def prepare_moves(self, step: int) -> Any: ...

    @abstractmethod
    def prepare_publishes(self, step: int) -> Any: ...

    @abstractmethod
    def move(self, prepared: Any) -> None:
        """Everybody; returns when the server has handled it."""

    @abstractmethod
    def publish(self, prepared: Any) -> None:
        """Everybody; returns when all is delivered."""


class OverMqtt(Useful):
    """Client ``i`` has link ``i``; one more link belongs to nobody and asks whether all is done."""

    def __init__(self, server: Server, crowd: Crowd, script: Script, steps: int, parameters: dict[str, Any]) -> None:
        super().__init__(server, script, steps, parameters)
        self._crowd = crowd
        crowd.connect([f"walker-{number}" for number in range(script.clients)])
        (self._probe,) = crowd.connect(["probe"])
        crowd.arrived = self.arrived

    def publish(self, prepared: list[tuple[bytes, int]]) -> None:
        crowd, target = self._crowd, self._delivered
        for number, (packet, receivers) in enumerate(prepared):
            crowd.send(crowd.links[number], packet)
            target += receivers
            if number % BETWEEN_POLLS == 0 or target - self._delivered > _UNDER_WAY:
                crowd.poll(0.0 if target - self._delivered <= _UNDER_WAY else 0.05)
        missing = target - self._delivered
        crowd.hope(PUBLISH, int(crowd.tally[PUBLISH]) + missing, _PATIENCE)
        self._delivered = max(self._delivered, target)  # what is lost is lost: the judgement says so


class WithAreas(OverMqtt):
    """nearcast: one subscription for good, and a position that moves."""

    def __init__(self, server: Server, crowd: Crowd, script: Script, steps: int) -> None:
        super().__init__(server, crowd, script, steps, {"subscriptions": "area of 150 m around me"})
        self.move(self.prepare_moves(0))
        wanted = crowd.dialect.subscribe(["city/report"], properties=[("nc-area", f"{RADIUS:g}")])
        crowd.ask([(link, wanted) for link in crowd.links[: script.clients]], SUBACK)

    def prepare_moves(self, step: int) -> list[bytes]:
        places = zip(self._script.lat[step].tolist(), self._script.lon[step].tolist(), strict=True)
        compact = (_POSITION.pack(1, round(lat * _DEGREE), round(lon * _DEGREE)) for lat, lon in places)
        return [self._crowd.dialect.publish("$nearcast/position", payload) for payload in compact]

    def prepare_publishes(self, step: int) -> list[tuple[bytes, int]]:
        script = self._script
        receivers = (script.metres[step] <= RADIUS).sum(axis=1).tolist()
        places = zip(script.lat[step].tolist(), script.lon[step].tolist(), strict=True)
        return [
            (
                self._crowd.dialect.publish(
                    "city/report",
                    numbered(step * script.clients + client, PAYLOAD),
                    properties=[("nc-place", f"{lat:.7f},{lon:.7f}")],
                ),
                receivers[client],
            )
            for client, (lat, lon) in enumerate(places)
        ]

    def move(self, prepared: list[bytes]) -> None:
        for link, packet in zip(self._crowd.links, prepared, strict=False):  # the probe stays where it is
            self._crowd.send(link, packet)
        self._crowd.settle(self._probe)


Cells = frozenset[tuple[int, int]]


class WithCells(OverMqtt):
    """Any broker: a topic for each cell, and other subscriptions whenever the circle touches other cells."""

    def __init__(self, server: Server, crowd: Crowd, script: Script, steps: int, cell: float) -> None:
        super().__init__(server, crowd, script, steps, {"subscriptions": "cells", "cell": cell})
        self._cell = cell
        self._touched = [self._cells(0, client) for client in range(script.clients)]
        crowd.ask(
            [
                (link, crowd.dialect.subscribe(_topics(cells)))
                for link, cells in zip(crowd.links, self._touched, strict=False)  # the probe subscribes to nothing
            ],
            SUBACK,
        )

    def keep(self, events: Numbers, receivers: Numbers) -> Any:
        return self._script.near(events, receivers)

    def prepare_moves(self, step: int) -> tuple[list[tuple[int, bytes]], list[tuple[int, bytes]]]:
        """Who subscribes to what in addition, and who to what no more."""
        dialect, joins, leaves = self._crowd.dialect, [], []
        for client, before in enumerate(self._touched):
            now = self._cells(step, client)
            if now - before:
                joins.append((client, dialect.subscribe(_topics(now - before))))
            if before - now:
                leaves.append((client, dialect.unsubscribe(_topics(before - now))))
            self._touched[client] = now
        return joins, leaves

    def prepare_publishes(self, step: int) -> list[tuple[bytes, int]]:
        script = self._script
        x, y = script.plane
        homes = [self._home(east, north) for east, north in zip(x[step].tolist(), y[step].tolist(), strict=True)]
        subscribers: dict[tuple[int, int], int] = {}
        for client in range(script.clients):
            for cell in self._cells(step, client):
                subscribers[cell] = subscribers.get(cell, 0) + 1
        publish = self._crowd.dialect.publish
        return [
            (publish(_topic(cell), numbered(step * script.clients + client, PAYLOAD)), subscribers[cell])
            for client, cell in enumerate(homes)
        ]

    def move(self, prepared: tuple[list[tuple[int, bytes]], list[tuple[int, bytes]]]) -> None:
        links = self._crowd.links
        for packets, kind in zip(prepared, (SUBACK, UNSUBACK), strict=True):
            self._crowd.ask([(links[client], packet) for client, packet in packets], kind)

    def _home(self, east: float, north: float) -> tuple[int, int]:
        return int(east // self._cell), int(north // self._cell)

    def _cells(self, step: int, client: int) -> Cells:
        x, y = self._script.plane
        return frozenset(touching(float(x[step, client]), float(y[step, client]), self._cell))


def touching(east: float, north: float, cell: float) -> Iterator[tuple[int, int]]:
    """The cells that a circle around the place touches; a millimetre more, because the plane is not the sphere."""
    reach = RADIUS + 0.001
    for column in range(int((east - reach) // cell), int((east + reach) // cell) + 1):
        for row in range(int((north - reach) // cell), int((north + reach) // cell) + 1):
            away_east = max(column * cell - east, 0.0, east - (column + 1) * cell)
            away_north = max(row * cell - north, 0.0, north - (row + 1) * cell)
            if away_east**2 + away_north**2 <= reach**2:
                yield column, row


def _topic(cell: tuple[int, int]) -> str:
    return f"city/{cell[0]}/{cell[1]}"


def _topics(cells: Cells) -> list[str]:
    return [_topic(cell) for cell in sorted(cells)]
