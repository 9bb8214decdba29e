"""Hosts that live on an event loop: they join, leave, fail and return; and no error is lost."""

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.child import loaded_by
from tests.clocks import START
from tests.runtime.live.street import Street, Text
from tests.runtime.live.virtual import VirtualLoop, in_virtual_time, live, neighbourhood, started
from tests.waiting import PATIENCE, until

from nearcast.errors import InvalidInput, ObserverActed, UnknownName
from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS, to_text
from nearcast.runtime.host import Component, Host
from nearcast.runtime.live import FedPosition, LiveHost, LiveRuntime
from nearcast.runtime.live.runtime import RuntimeStatistics
from nearcast.runtime.observers import Observers
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.world import World
from nearcast.runtime.state import Information

Diary = list[str]


class Part(Component):
    """Writes a diary, and does at the start what the test wants."""

    def __init__(self, name: str, diary: Diary, begin: Callable[[Host], object] | None = None) -> None:
        self._name = name
        self._diary = diary
        self._begin = begin

    def start(self, host: Host) -> None:
        self._diary.append(f"{self._name} starts")
        if self._begin is not None:
            self._begin(host)

    def stop(self) -> None:
        self._diary.append(f"{self._name} stops")


class Stubborn(Component):
    """Fails to say farewell."""

    def start(self, host: Host) -> None: ...

    def stop(self) -> None:
        raise ZeroDivisionError("never")


class Town:
    """A runtime in virtual time, with the rows of its clients."""

    def __init__(self, loop: VirtualLoop, **options: Any) -> None:
        self.diary: Diary = []
        self.clients: list[tuple[int, str, str]] = []
        observers = Observers()
        observers.analyze("clients", lambda time, *row: self.clients.append((time - START, *row)))
        self.runtime = LiveRuntime(clock=loop.clock(), observers=observers, seed=5, **options)

    def add(self, name: str, begin: Callable[[Host], object] | None = None, parts: str = "x") -> LiveHost:
        return self.runtime.add(name, lambda: [Part(f"{name}.{part}", self.diary, begin) for part in parts])


def failing(error: Exception) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise error

    return fail


def test_hosts_join_and_leave_with_the_runtime_components_in_reverse() -> None:
    async def story(loop: VirtualLoop) -> None:
        town = Town(loop)
        town.add("ada", parts="12")
        town.add("bob")
        running = await started(town.runtime)
        assert town.runtime.statistics() == RuntimeStatistics(hosts=2, up=2, failures=0)
        await asyncio.sleep(3)
        town.runtime.stop()
        await running
        assert town.diary[:3] == ["ada.1 starts", "ada.2 starts", "bob.x starts"]
        assert town.diary[3:] == ["bob.x stops", "ada.2 stops", "ada.1 stops"]
        seconds = 3 * MICROSECONDS
        assert town.clients == [
            (0, "ada", "joined"),
            (0, "bob", "joined"),
            (seconds, "bob", "left"),
            (seconds, "ada", "left"),
        ]
        assert town.runtime.statistics() == RuntimeStatistics(hosts=2, up=0, failures=0)

    in_virtual_time(story)


def test_who_fails_says_nothing_and_returns_without_memory() -> None:
    async def story(loop: VirtualLoop) -> None:
        town = Town(loop)
        ticks: list[int] = []
        ada = town.add("ada", lambda host: host.timers.every(1, lambda: ticks.append(host.now() - START)))
        running = await started(town.runtime)
        await asyncio.sleep(2.5)
        ada.fail()
        ada.fail()
        ada.leave()
        assert not ada.up
        await asyncio.sleep(2)
        ada.join()
        ada.join()
        await asyncio.sleep(1.2)
        town.runtime.stop()
        await running
        assert town.diary == ["ada.x starts", "ada.x starts", "ada.x stops"]
        assert [what for _, _, what in town.clients] == ["joined", "failed", "returned", "left"]
        assert ticks == [1_000_000, 2_000_000, 5_500_000]

    in_virtual_time(story)


def test_the_same_seed_makes_the_same_choices_as_in_the_simulated_half() -> None:
    drawn: dict[str, list[float]] = {"live": [], "simulated": []}

    def draw(where: str) -> Callable[[Host], None]:
        return lambda host: drawn[where].append(host.random("dice").random())

    async def story(loop: VirtualLoop) -> None:
        town = Town(loop)
        ada = town.add("ada", draw("live"))
        running = await started(town.runtime)
        ada.fail()
        ada.join()
        town.runtime.stop()
        await running

    in_virtual_time(story)
    world = World(Simulation(5), Plane(Point(0, 0)), 1)
    simulated = world.add("ada", lambda: [Part("x", [], draw("simulated"))], [])
    simulated.join()
    simulated.fail()
    simulated.join()
    assert drawn["live"] == drawn["simulated"]
    assert len(set(drawn["live"])) == 2


def test_what_a_timer_raises_stops_the_runtime_and_names_the_host() -> None:
    async def story(loop: VirtualLoop) -> None:
        town = Town(loop)
        error = ZeroDivisionError("oops")
        town.add("ada", lambda host: host.timers.after(1.5, failing(error)))
        town.add("bob", lambda host: host.timers.every(1, lambda: town.diary.append("tick")))
        with pytest.raises(ZeroDivisionError, match="oops") as raised:
            await town.runtime.run()
        assert raised.value is error
        [note] = raised.value.__notes__
        assert f"host 'ada' at {to_text(START + 1_500_000)}" in note
        # The one that is broken says no more, the other leaves in good order.
        assert town.diary == ["ada.x starts", "bob.x starts", "tick", "bob.x stops"]
        assert [row[1:] for row in town.clients[2:]] == [("ada", "failed"), ("bob", "left")]
        assert town.runtime.statistics() == RuntimeStatistics(hosts=2, up=0, failures=1)

    in_virtual_time(story)


def test_what_a_receiver_raises_stops_the_runtime() -> None:
    street = Street("ab")
    error = ZeroDivisionError("oops")

    async def story() -> None:
        running = await started(street.runtime)
        street.listeners["b"].endpoint.close()
        street.link("b").open(9, failing(error), Text)
        for _ in range(3):  # what comes after the first finds nobody
            street.endpoint("a").send(street.link("b").address, Text("x"))
        with pytest.raises(ZeroDivisionError) as raised:
            await running
        assert raised.value is error

    live(story)
    assert street.runtime.statistics().failures == 1
    assert [row[1:] for row in street.rows["clients"][2:]] == [("b", "failed"), ("a", "left")]


def test_what_a_listener_for_fixes_raises_stops_the_runtime() -> None:
    async def story(loop: VirtualLoop) -> None:
        runtime = LiveRuntime(clock=loop.clock())
        position = FedPosition(runtime.clock)
        position.update(49.0, 8.0, accuracy=1.0)

        def begin(host: Host) -> None:
            assert host.sensor is not None
            host.sensor.request(1.0, failing(ZeroDivisionError("oops")), first=0.5)

        runtime.add("ada", lambda: [Part("x", [], begin)], position=position.fix)
        with pytest.raises(ZeroDivisionError):
            await runtime.run()

    in_virtual_time(story)


def test_what_an_observer_raises_stops_the_runtime() -> None:
    async def story(loop: VirtualLoop) -> None:
        observers = Observers()
        observers.analyze("custom", failing(ZeroDivisionError("oops")))
        runtime = LiveRuntime(clock=loop.clock(), observers=observers)

        def begin(host: Host) -> None:
            emit = host.observers.emitter("custom")
            host.timers.after(1, lambda: emit(1, 2))

        runtime.add("ada", lambda: [Part("x", [], begin)])
        with pytest.raises(ZeroDivisionError):
            await runtime.run()

    in_virtual_time(story)


@pytest.mark.parametrize("table", ["messages", "drops", "clients"])
def test_an_observer_that_raises_at_every_row_stops_the_runtime_and_leaves_nothing_open(table: str) -> None:
    text = Text("x" * 5_000 if table == "drops" else "x")
    network = neighbourhood()

    def begin(host: Host) -> None:
        endpoint = host.link("wifi").open(9, lambda *_: None, Text)

        def say() -> None:
            endpoint.broadcast(text)

        host.timers.every(0.001, say)

    async def story() -> None:
        observers = Observers()
        observers.analyze(table, failing(ZeroDivisionError("oops")))
        runtime = LiveRuntime(observers=observers)
        hosts = [runtime.add(name, lambda: [Part("x", [], begin)], [network]) for name in ("ada", "bob")]
        with pytest.raises(ZeroDivisionError):
            await runtime.run()
        assert not any(host.up or host.links["wifi"].up or host.links["wifi"]._sockets for host in hosts)

    live(story)


def test_a_host_that_cannot_start_takes_the_others_home() -> None:
    async def story(loop: VirtualLoop) -> None:
        town = Town(loop)
        town.add("ada")
        town.add("bob", failing(ZeroDivisionError("oops")))
        town.add("eve")
        with pytest.raises(ZeroDivisionError):
            await town.runtime.run()
        assert town.diary == ["ada.x starts", "bob.x starts", "ada.x stops"]
        assert [row[1:] for row in town.clients] == [
            ("ada", "joined"),
            ("bob", "joined"),
            ("bob", "failed"),
            ("ada", "left"),
        ]

    in_virtual_time(story)


def test_an_error_in_the_farewell_of_one_does_not_keep_the_others() -> None:
    async def story(loop: VirtualLoop) -> None:
        town = Town(loop)
        town.add("ada")
        for name in ("bob", "eve"):
            town.runtime.add(name, lambda: [Stubborn()])
        running = await started(town.runtime)
        town.runtime.stop()
        with pytest.raises(ZeroDivisionError, match="never") as raised:
            await running
        # The first error is raised, and tells of the second.
        assert "host 'eve'" in raised.value.__notes__[0]
        assert raised.value.__notes__[1] == "afterwards, in host 'bob': ZeroDivisionError('never')"
        assert town.diary == ["ada.x starts", "ada.x stops"]
        assert town.runtime.statistics().up == 0

    in_virtual_time(story)


def test_the_first_error_is_the_one_that_is_raised() -> None:
    async def story(loop: VirtualLoop) -> None:
        town = Town(loop)
        town.runtime.add("ada", lambda: [Stubborn()])
        town.add("bob", failing(KeyError("first")))
        with pytest.raises(KeyError, match="first") as raised:
            await town.runtime.run()
        assert raised.value.__notes__ == ["afterwards, in host 'ada': ZeroDivisionError('never')"]

    in_virtual_time(story)


def test_a_cancelled_run_leaves_in_good_order() -> None:
    async def story(loop: VirtualLoop) -> None:
        town = Town(loop)
        town.add("ada")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(town.runtime.run(), 3)
        assert town.diary == ["ada.x starts", "ada.x stops"]

    in_virtual_time(story)


def test_a_runtime_can_run_again() -> None:
    async def story(loop: VirtualLoop) -> None:
        town = Town(loop)
        town.add("ada")
        for _ in range(2):
            town.runtime.stop()  # also before it begins
            await town.runtime.run()
        assert [what for _, _, what in town.clients] == ["joined", "left", "returned", "left"]

    in_virtual_time(story)


def test_observers_may_not_let_hosts_come_and_go() -> None:
    async def story(loop: VirtualLoop) -> None:
        town = Town(loop)
        ada = town.add("ada")
        running = await started(town.runtime)
        for act in (ada.join, ada.leave, ada.fail):
            town.runtime.observers.watching = True
            with pytest.raises(ObserverActed, match="let a host"):
                act()
            town.runtime.observers.watching = False
        assert ada.up
        town.runtime.stop()
        await running

    in_virtual_time(story)


def test_nobody_joins_a_runtime_that_does_not_run() -> None:
    async def story(loop: VirtualLoop) -> None:
        town = Town(loop)
        ada = town.add("ada")
        with pytest.raises(InvalidInput, match="while its runtime runs"):
            ada.join()
        running = await started(town.runtime)
        with pytest.raises(InvalidInput, match="runs already"):
            await town.runtime.run()
        with pytest.raises(UnknownName, match="give each its own name"):
            town.add("ada")
        late = town.add("bob")
        assert not late.up
        late.join()
        assert late.up
        town.runtime.stop()
        await running
        assert not late.up

    in_virtual_time(story)


def test_a_question_to_other_hosts_goes_the_way_that_was_given() -> None:
    async def story(loop: VirtualLoop) -> None:
        asked: list[tuple[str, str | None]] = []
        town = Town(loop, remote_state=lambda information, about, _: asked.append((information.name, about)))
        battery = Information("battery", float)
        town.add("ada", lambda host: host.state.request(battery, failing(AssertionError()), about="bob", remote=True))
        town.runtime.stop()
        await town.runtime.run()
        assert asked == [("battery", "bob")]

    in_virtual_time(story)


def test_who_returns_is_found_at_the_same_address() -> None:
    street = Street("ab")

    async def story() -> None:
        running = await started(street.runtime)
        bob = street.runtime.hosts["b"]
        address = street.link("b").address
        bob.fail()
        street.endpoint("a").send(address, Text("lost"))
        bob.join()
        assert street.link("b").address == address
        street.endpoint("a").send(address, Text("found"))
        await until(lambda: bool(street.heard("b")), running)
        street.runtime.stop()
        await running

    live(story)
    assert [message for _, message in street.heard("b")] == [Text("found")]


def test_a_host_may_fail_and_return_while_it_reads() -> None:
    street = Street("ab")
    received: list[str] = []

    async def story() -> None:
        running = await started(street.runtime)
        bob = street.runtime.hosts["b"]
        street.endpoint("b").close()

        def receive(_sender: str, text: Text) -> None:
            received.append(text.text)
            bob.fail()
            bob.join()

        street.link("b").open(9, receive, Text)
        for text in "xyz":
            street.endpoint("a").send(street.link("b").address, Text(text))
        await until(lambda: bool(received), running)
        street.endpoint("a").send(street.link("b").address, Text("new life"))
        await until(lambda: bool(street.heard("b")), running)
        street.runtime.stop()
        await running

    live(story)
    # What waited in the kernel went with the old life.
    assert received == ["x"]
    assert [message for _, message in street.heard("b")] == [Text("new life")]


def test_a_live_host_starts_without_the_heavy_libraries() -> None:
    heavy = {"numba", "numpy", "pyarrow", "pyspark", "shapely"}
    loaded = loaded_by("import nearcast.runtime.live")
    assert "nearcast.runtime.live.udp" in loaded
    assert not heavy.intersection(loaded)


_PROGRAM = """
import signal, sys
from nearcast.runtime.host import Component
from nearcast.runtime.live import LiveRuntime, run_until_stopped

class Part(Component):
    def start(self, host):
        host.timers.after(0, lambda: print("up", flush=True))
        if "raise" in sys.argv:
            host.timers.after(0, lambda: 1 / 0)

    def stop(self):
        print("farewell", flush=True)
        if "hang" in sys.argv:
            while True:
                signal.pause()

runtime = LiveRuntime()
runtime.add("ada", lambda: [Part()])
run_until_stopped(runtime)
print("over")
"""


@contextmanager
def process_of(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", _PROGRAM, *arguments]
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        watchdog = threading.Timer(PATIENCE, process.kill)
        watchdog.start()
        try:
            yield process
        finally:
            watchdog.cancel()
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_a_process_that_hangs_in_its_farewell(number: signal.Signals) -> None:
    with process_of("hang") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(number)
        assert process.stdout.readline() == "farewell\n"
        process.send_signal(number)
        output, _ = process.communicate()
    assert "over" not in output
    assert process.returncode == -number


def test_a_process_whose_callback_raised_ends_with_the_whole_story() -> None:
    with process_of("raise") as process:
        output, errors = process.communicate()
    assert output == "up\n"
    assert "ZeroDivisionError" in errors
    assert "in a callback of host 'ada' at 2" in errors
    assert process.returncode == 1
