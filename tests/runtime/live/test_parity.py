"""One mechanism, unchanged, on both halves of the runtime: it does the same, and the same bytes are counted."""

import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from tests.runtime.live.mechanism import PING_PORT, Ping, Pong, Summary, components
from tests.runtime.live.virtual import live, neighbourhood
from tests.waiting import PATIENCE

from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.host import Component
from nearcast.runtime.links import RECEIVED, SENT, Traffic
from nearcast.runtime.live import FedPosition, LiveRuntime
from nearcast.runtime.live.udp import HEADERS, UdpLink
from nearcast.runtime.messages import Codec, Message
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Sending
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.network import Network, Parcel, SimulatedLink
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.world import World

PLANE: Final = Plane(Point(49.8728, 8.6512))
SPOTS: Final = {"ada": (0.0, 0.0), "bob": (30.0, -40.0), "eve": (-12.5, 7.25)}
COUNT: Final = 8
SEED: Final = 7

Lost = Callable[[str, str, Message], bool]
Did = dict[str, dict[str, Any]]


class IdealNetwork(Network):
    """Everybody hears everybody, a millisecond later; what is to be lost, the test says."""

    def __init__(self, simulation: Simulation, lost: Lost) -> None:
        super().__init__(simulation, "wifi", local=True, overhead=HEADERS, check_wire=True)
        self._lost = lost

    @property
    def in_flight(self) -> int:
        return 0

    def transmit(self, parcel: Parcel) -> Sending:
        parcel.sender.count(SENT, parcel.kind, parcel.size)
        self.simulation.at(self.simulation.now() + 1_000, self._arrived, parcel)
        return Sending.ACCEPTED

    def _arrived(self, parcel: Parcel) -> None:
        if parcel.receiver is None:
            heard = sum(self.hand_over(parcel, link) for link in self._others(parcel.sender))
            self.note(parcel, SENT, heard)
        elif self._lost(parcel.sender.address, parcel.receiver, parcel.message):
            self.lose(parcel, "filtered")
        else:
            self.arrive(parcel, self.links[parcel.receiver])

    def _others(self, sender: SimulatedLink) -> Iterable[SimulatedLink]:
        return [link for link in self.links.values() if link is not sender]


class FirstTries:
    """Of some numbers, what is sent first is lost: the ping of every third, the pong of every fourth."""

    def __init__(self) -> None:
        self._tries: Counter[tuple[str, str, Message]] = Counter()

    def __call__(self, sender: str, receiver: str, message: Message) -> bool:
        if not isinstance(message, Ping | Pong):
            return False
        self._tries[sender, receiver, message] += 1
        chosen = message.number % 3 == 0 if isinstance(message, Ping) else message.number % 4 == 0
        return chosen and self._tries[sender, receiver, message] == 1


def nothing_lost(_sender: str, _receiver: str, _message: Message) -> bool:
    return False


def simulated(
    patience: float, lost: Lost = nothing_lost, observers: Observers | None = None
) -> tuple[Did, list[Traffic]]:
    simulation = Simulation(SEED, observers=observers)
    network = IdealNetwork(simulation, lost)
    world = World(simulation, PLANE, len(SPOTS))
    summaries: dict[str, Summary] = {}
    for node, (name, spot) in enumerate(SPOTS.items()):
        world.add(name, _build(name, patience, summaries, lambda: None), [network]).join()
        world.motion.put(node, *spot)
    simulation.run(5 * MICROSECONDS)
    for host in world.hosts.values():
        host.leave()
    return {name: summary.did() for name, summary in summaries.items()}, list(network.traffic())


def in_one_process(
    patience: float, lost: Lost = nothing_lost, observers: Observers | None = None
) -> tuple[Did, list[Traffic]]:
    summaries: dict[str, Summary] = {}

    async def story() -> LiveRuntime:
        runtime = LiveRuntime(seed=SEED, observers=observers)
        network = neighbourhood()
        for name, spot in SPOTS.items():
            position = FedPosition(runtime.clock)
            point = PLANE.to_point(*spot)
            position.update(point.lat, point.lon, accuracy=0.0)
            build = _build(name, patience, summaries, runtime.stop)
            added = runtime.add(name, build, [network], position=position.fix)
            lose_on_the_way(added.links["wifi"], lost)
        await runtime.run()
        return runtime

    runtime = live(story)
    return {name: summary.did() for name, summary in summaries.items()}, list(runtime.traffic())


def lose_on_the_way(link: UdpLink, lost: Lost) -> None:
    codec: Codec[Message] = Codec(Ping, Pong)
    arrive = link._arrive

    def filtered(data: bytes, source: tuple[str, int]) -> None:
        if data[0] != PING_PORT or not lost(f"{source[0]}:{source[1]}", link.address, codec.decoded(data[1:])):
            arrive(data, source)

    setattr(link, "_arrive", filtered)  # noqa: B010 - a method is no attribute to set, says mypy


def in_many_processes(patience: float) -> tuple[Did, list[Traffic]]:
    network = neighbourhood()
    processes = {}
    for name, spot in SPOTS.items():
        point = PLANE.to_point(*spot)
        numbers = (point.lat, point.lon, len(SPOTS) - 1, COUNT, patience)
        arguments = [name, *map(str, numbers), network.group, str(network.group_port)]
        processes[name] = subprocess.Popen(
            [sys.executable, "-m", "tests.runtime.live.one_host", *arguments],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[3],
        )
    with ExitStack() as cleanup:
        for process in processes.values():
            cleanup.enter_context(process)
            cleanup.callback(process.kill)
            watchdog = threading.Timer(PATIENCE, process.kill)
            cleanup.callback(watchdog.cancel)
            watchdog.start()
        for process in processes.values():
            assert process.stdout is not None
            assert process.stdout.readline() == "finished\n"
        # Both ways to ask for an end.
        for number, process in enumerate(processes.values()):
            process.send_signal(signal.SIGINT if number else signal.SIGTERM)
        results = {name: json.loads(process.communicate()[0]) for name, process in processes.items()}
    assert {name: process.returncode for name, process in processes.items()} == dict.fromkeys(SPOTS, 0)
    rows = [
        Traffic("wifi", way, kind, host, *rest)
        for result in results.values()
        for host, way, kind, *rest in result["traffic"]
    ]
    return {name: result["did"] for name, result in results.items()}, rows


def _build(
    name: str, patience: float, summaries: dict[str, Summary], all_finished: Callable[[], None]
) -> Callable[[], Sequence[Component]]:
    def finished(summary: Summary) -> None:
        summaries[name] = summary
        if len(summaries) == len(SPOTS):
            all_finished()

    return lambda: components(len(SPOTS) - 1, COUNT, patience, finished)


def totals(rows: Iterable[Traffic]) -> dict[tuple[str, str, str], tuple[int, int]]:
    """What does not depend on when the run ended: all but the beacons."""
    return {(row.host, row.direction, row.kind): (row.messages, row.bytes) for row in rows if row.kind != "hello"}


def beacon_sizes(rows: Iterable[Traffic]) -> set[tuple[str, float]]:
    """Bytes of one beacon of each host."""
    return {(row.host, row.bytes / row.messages) for row in rows if row.kind == "hello" and row.direction == SENT}


def test_the_mechanism_does_what_it_is_for() -> None:
    did, _ = simulated(1.0)
    numbers = list(range(1, COUNT + 1))
    for name, result in did.items():
        others = sorted(set(SPOTS) - {name})
        here = PLANE.to_point(*SPOTS[name])
        assert result["neighbours"] == others
        assert result["acknowledged"] == result["delivered"] == dict.fromkeys(others, numbers)
        assert result["here"] == [here.lat, here.lon]
        assert result["said farewell"]


@pytest.mark.parametrize("live_run", [in_one_process, in_many_processes])
def test_both_halves_do_the_same_and_count_the_same(live_run: Callable[[float], tuple[Did, list[Traffic]]]) -> None:
    # An hour's patience: nothing is sent twice, however slow the machine is just now.
    simulated_did, simulated_traffic = simulated(3_600.0)
    did, traffic = live_run(3_600.0)
    assert did == simulated_did
    assert totals(traffic) == totals(simulated_traffic)
    assert beacon_sizes(traffic) == beacon_sizes(simulated_traffic)


def test_both_halves_mend_the_same_losses() -> None:
    simulated_did, simulated_traffic = simulated(0.1, FirstTries())
    did, traffic = in_one_process(0.1, FirstTries())
    assert did == simulated_did
    ours, theirs = totals(traffic), totals(simulated_traffic)
    assert ours.keys() == theirs.keys()
    lost = sum(number % 3 == 0 or number % 4 == 0 for number in range(1, COUNT + 1))
    for name in SPOTS:
        # In virtual time, each loss costs one more ping; a busy machine may send some more.
        assert theirs[name, SENT, "ping"][0] == (len(SPOTS) - 1) * (COUNT + lost)
        assert ours[name, SENT, "ping"][0] >= theirs[name, SENT, "ping"][0]
        for direction, kind in ((SENT, "ping"), (RECEIVED, "pong")):
            messages, size = ours[name, direction, kind]
            assert size / messages == theirs[name, direction, kind][1] / theirs[name, direction, kind][0]


def test_both_halves_tell_their_observers_the_same() -> None:
    rows = [_observed(lambda observers: simulated(3_600.0, observers=observers))]
    rows.append(_observed(lambda observers: in_one_process(3_600.0, observers=observers)))
    assert rows[0] == rows[1]


def _observed(run: Callable[[Observers], object]) -> dict[str, list[tuple[Any, ...]]]:
    """The rows that do not depend on when the run ended, without the times; and one fate for all that did not get lost."""
    observers = Observers()
    messages: list[tuple[Any, ...]] = []
    drops: list[tuple[Any, ...]] = []
    clients: list[tuple[Any, ...]] = []
    observers.analyze("messages", lambda *row: messages.append((*row[2:7], row[7] in {SENT, RECEIVED})))
    observers.analyze("drops", lambda *row: drops.append(row[1:]))
    observers.analyze("clients", lambda *row: clients.append(row[1:]))
    run(observers)
    return {
        "messages": sorted(row for row in messages if row[1] != "hello"),
        "drops": drops,
        "clients": sorted(clients),
    }
