"""The courses of ``nearcast bench broker``: which servers do what, and how much of it.

Every course starts servers of its own and ends them, whatever happens; within a course the servers take turns.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Final

from nearcast.benchmark.broker_crowd import Crowd
from nearcast.benchmark.broker_durable import DurableMqtt, DurableNats
from nearcast.benchmark.broker_fences import Fences, FencesOverMqtt, FencesOverTile38, NearcastWithFences, Tile38
from nearcast.benchmark.broker_frames import nats_frames, redis_frames
from nearcast.benchmark.broker_idle import idle
from nearcast.benchmark.broker_laps import Findings, Lane, Progress, race
from nearcast.benchmark.broker_ours import Nearcast
from nearcast.benchmark.broker_redis import WithScript, WithService
from nearcast.benchmark.broker_script import script
from nearcast.benchmark.broker_streams import FAN_OUT, FAN_OUT_SHALLOW, PAIRS, PAIRS_ACKNOWLEDGED, Latencies, Streams
from nearcast.benchmark.broker_useful import WithAreas, WithCells
from nearcast.benchmark.fences_script import fence_script
from nearcast.benchmark.peers.amqtt import Amqtt
from nearcast.benchmark.peers.mosquitto import Mosquitto
from nearcast.benchmark.peers.nats import Nats
from nearcast.benchmark.peers.redis_pubsub import RedisPubSub
from nearcast.benchmark.peers.server import Server
from nearcast.benchmark.report import Measurement

PAYLOAD: Final = 128
CELL: Final = 300.0
SERVERS: Final = (Nearcast, Mosquitto, Amqtt, Nats, RedisPubSub, Tile38)


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything."""

    rounds: int
    seconds: float
    walkers: int
    steps: int
    cells: tuple[float, ...]
    in_flight: tuple[tuple[int, int], ...]
    """Publishers, and messages in flight of each; the first is what the ratio without an addition is about."""
    connections: int
    fences: tuple[int, ...] = (10_000,)
    drivers: int = 200
    fence_steps: int = 5


FULL: Final = Size(
    rounds=5,
    seconds=2.0,
    walkers=500,
    steps=4,
    cells=(75.0, 150.0, CELL, 600.0, 1200.0),
    in_flight=((10, 10), (1, 10), (1, 50), (1, 200), (10, 100)),
    connections=10_000,
    fences=(10_000, 50_000),
    drivers=1_000,
    fence_steps=10,
)
QUICK: Final = Size(
    rounds=2,
    seconds=0.5,
    walkers=200,
    steps=2,
    cells=(75.0, 150.0, CELL, 600.0, 1200.0),
    in_flight=((10, 10), (1, 10)),
    connections=1_000,
)


@dataclass(frozen=True, slots=True)
class Course:
    """``present`` are the kinds of servers that can run here; what others would have done is left out."""

    present: frozenset[type[Server]]
    size: Size
    found: Findings
    progress: Progress

    def start(self, stack: ExitStack, what: str, *kinds: type[Server]) -> list[Server]:
        """Those that are present and do start."""
        started: list[Server] = []
        for kind in kinds:
            if kind in self.present:
                self.progress(f"{what}: starting {kind.name}")
                with self.found.surviving(kind.name, what):
                    started.append(stack.enter_context(kind()))
        return started

    def race(self, lanes: list[Lane]) -> None:
        race(lanes, self.size.rounds, self.size.seconds, self.found, self.progress)


def streams(course: Course) -> None:
    """Fan-out and pairs, and the latency of both at half of what each server can do."""
    with ExitStack() as stack:
        servers = course.start(stack, "streams", Nearcast, Mosquitto, Amqtt)
        for shape in (FAN_OUT, FAN_OUT_SHALLOW, PAIRS, PAIRS_ACKNOWLEDGED):
            with ExitStack() as crowds:
                lanes: list[Streams] = []
                for server in servers:
                    with course.found.surviving(server.name, "streams"):
                        crowd = crowds.enter_context(Crowd(server.port, PAYLOAD, dialect=server.dialect))
                        lanes.append(Streams(server, crowd, shape))
                course.race([*lanes])
                if shape in {FAN_OUT, PAIRS}:
                    _latencies(course, [lane for lane in lanes if lane.laps])


def useful(course: Course) -> None:
    """Location deliveries: nearcast's areas, cells of several sizes, Redis in both forms."""
    size = course.size
    walk = script(size.walkers, 1 + size.steps * (size.rounds + 1))
    with ExitStack() as stack:
        lanes: list[Lane] = []
        for server in course.start(stack, "useful", Nearcast):
            crowd = stack.enter_context(Crowd(server.port, PAYLOAD))
            with course.found.surviving(server.name, "useful"):
                lanes.append(WithAreas(server, crowd, walk, size.steps))
        for cell in size.cells:
            for server in course.start(stack, "useful", Mosquitto):
                crowd = stack.enter_context(Crowd(server.port, PAYLOAD))
                with course.found.surviving(server.name, "useful"):
                    lanes.append(WithCells(server, crowd, walk, size.steps, cell))
        for form in (WithService, WithScript):
            for server in course.start(stack, "useful", RedisPubSub):
                crowd = stack.enter_context(Crowd(server.port, PAYLOAD, redis_frames))
                with course.found.surviving(server.name, "useful"):
                    lanes.append(stack.enter_context(closing(form(server, crowd, walk, size.steps))))
        course.race(lanes)


def durable(course: Course) -> None:
    """Publishes that are on disk when they are acknowledged."""
    with ExitStack() as stack:
        ours = course.start(stack, "durable", Nearcast)
        theirs = course.start(stack, "durable", Nats)
        for publishers, in_flight in course.size.in_flight:
            with ExitStack() as crowds:
                lanes: list[Lane] = []
                for server in ours:
                    crowd = crowds.enter_context(Crowd(server.port, PAYLOAD))
                    with course.found.surviving(server.name, "durable"):
                        lanes.append(DurableMqtt(server, crowd, publishers, in_flight))
                for server in theirs:
                    crowd = crowds.enter_context(Crowd(server.port, PAYLOAD, nats_frames))
                    with course.found.surviving(server.name, "durable"):
                        lanes.append(DurableNats(server, crowd, publishers, in_flight))
                course.race(lanes)


def idle_connections(course: Course) -> None:
    for kind in (Nearcast, Mosquitto):
        if kind in course.present:
            course.progress(f"idle connections: {kind.name}")
            with course.found.surviving(kind.name, "idle connections"), kind() as server:
                course.found.results.append(idle(server, course.size.connections))


def fences(course: Course) -> None:
    """Everybody reports, and one listener hears of who passes which of many fences."""
    size = course.size
    for many in size.fences:
        walk = fence_script(many, size.drivers, 1 + size.fence_steps * (size.rounds + 1))
        lanes: list[Fences] = []
        with ExitStack() as stack:
            for kind, lane in ((NearcastWithFences, FencesOverMqtt), (Tile38, FencesOverTile38)):
                if (Nearcast if kind is NearcastWithFences else kind) not in course.present:
                    continue
                course.progress(f"{many:,} fences: starting {kind.name}")
                with course.found.surviving(kind.name, f"{many:,} fences"):
                    server = stack.enter_context(kind())
                    crowd, listener = (stack.enter_context(Crowd(server.port, 8)) for _ in range(2))
                    lanes.append(lane(server, crowd, listener, walk, size.fence_steps))
            course.race([*lanes])
        course.found.results += [lane.notifications() for lane in lanes if lane.laps]


COURSES: Final[Mapping[str, Callable[[Course], None]]] = {
    "streams": streams,
    "useful": useful,
    "durable": durable,
    "idle": idle_connections,
    "fences": fences,
}


def _latencies(course: Course, lanes: list[Streams]) -> None:
    rates = {lane: lane.measurement().value / lane.shape.subscribers / 2 for lane in lanes}
    taken: dict[Streams, list[Latencies]] = {lane: [] for lane in lanes}
    for _ in range(course.size.rounds):
        for lane in lanes:
            course.progress(f"latency at half load: {lane.server.name}, {rates[lane]:,.0f} messages/s")
            with course.found.surviving(lane.server.name, "latency"):
                taken[lane].append(lane.paced(rates[lane], course.size.seconds))
    course.found.results += [_latency(lane, found) for lane, found in taken.items() if found]


def _latency(lane: Streams, found: list[Latencies]) -> Measurement:
    parameters = {
        "course": "fan-out" if lane.shape.subscribers > 1 else "one-to-one",
        "messages_per_second": round(found[0].rate),
        "p50_milliseconds": round(statistics.median(each.median for each in found), 3),
        "runs": len(found),
        "differing_answers": sum(each.differing for each in found),
    }
    p99 = statistics.median(each.p99 for each in found)
    return Measurement(lane.server.name, "p99_milliseconds", "ms", p99, parameters)
