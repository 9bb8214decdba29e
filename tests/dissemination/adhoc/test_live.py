"""Mechanisms, unchanged, simulated and over UDP: the same hosts send the same events on, and the same bytes are counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tests.runtime.live.test_parity import PLANE, SEED, SPOTS, IdealNetwork, nothing_lost
from tests.runtime.live.virtual import live, neighbourhood

from nearcast.dissemination.adhoc.carrier import AdHoc, AdHocSettings, AdHocStatistics
from nearcast.dissemination.carrier import CarriedEvents
from nearcast.model.event import Event
from nearcast.model.subscription import Subscription
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.host import Component, Host
from nearcast.runtime.links import SENT, Traffic
from nearcast.runtime.live import FedPosition, LiveRuntime
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.world import World
from nearcast.transition.engine import HostEngine
from nearcast.transition.specification import MechanismSpec

COUNT: Final = 12
NEWS: Final = Subscription("news", id="all", no_local=True)


class Player(Component):
    """Publishes every 60 ms, in turn with the others; has finished when it has heard all of them and had time to send on."""

    def __init__(self, place: int, finished: Callable[[Player], None]) -> None:
        self._place = place
        self._finished = finished
        self.got: list[str] = []
        self.statistics: AdHocStatistics

    def start(self, host: Host) -> None:
        self._host = host
        self._events = host.component(CarriedEvents)
        self._events.subscribe(NEWS, self._heard)
        self._left = COUNT
        self._timer = host.timers.every(0.06, self._publish, first=0.2 + 0.02 * self._place)

    def _publish(self) -> None:
        name = f"{self._host.name}/{COUNT - self._left}"
        self._left -= 1
        event = Event(name, "news", self._host.now(), publisher=self._host.name, payload=bytes(128))
        self._events.publish(event, local=True)
        if not self._left:
            self._timer.cancel()

    def _heard(self, event: Event) -> None:
        self.got.append(event.id)
        if len(self.got) == COUNT * (len(SPOTS) - 1):
            self._host.timers.after(0.5, self._finish)

    def _finish(self) -> None:
        self.statistics = self._host.component(AdHoc).statistics()
        self._finished(self)


Result = tuple[dict[str, tuple[list[str], int]], dict[str, tuple[int, int]]]


def result(players: dict[str, Player], traffic: Sequence[Traffic]) -> Result:
    """What each got and how much of it it sent on; frames and bytes that each sent.

    In the order in which its publisher said it: who of two speaks first is left to the machine, live.
    """
    by_publisher = {
        name: sorted(player.got, key=lambda event: event.partition("/")[0]) for name, player in players.items()
    }
    did = {name: (by_publisher[name], player.statistics.forwarded) for name, player in players.items()}
    return did, {row.host: (row.messages, row.bytes) for row in traffic if row.direction == SENT}


def build(
    name: str, mechanism: MechanismSpec, players: dict[str, Player], all_finished: Callable[[], None]
) -> Callable[[], Sequence[Component]]:
    def finished(player: Player) -> None:
        players[name] = player
        if len(players) == len(SPOTS):
            all_finished()

    def components() -> Sequence[Component]:
        adhoc = AdHoc(AdHocSettings(mechanism))
        return [HostEngine(), CarriedEvents([adhoc]), adhoc, Player(list(SPOTS).index(name), finished)]

    return components


def simulated(mechanism: MechanismSpec) -> Result:
    # At a time of today: a small number would be shorter on the wire.
    simulation = Simulation(SEED, start=1_800_000_000 * MICROSECONDS)
    network = IdealNetwork(simulation, nothing_lost)
    world = World(simulation, PLANE, len(SPOTS))
    players: dict[str, Player] = {}
    for node, (name, spot) in enumerate(SPOTS.items()):
        world.motion.put(node, *spot)
        world.add(name, build(name, mechanism, players, lambda: None), [network]).join()
    simulation.run(simulation.now() + 5 * MICROSECONDS)
    return result(players, list(network.traffic()))


def over_udp(mechanism: MechanismSpec) -> Result:
    players: dict[str, Player] = {}

    async def story() -> LiveRuntime:
        runtime = LiveRuntime(seed=SEED)
        network = neighbourhood()
        for name, spot in SPOTS.items():
            position = FedPosition(runtime.clock)
            point = PLANE.to_point(*spot)
            position.update(point.lat, point.lon, accuracy=0.0)
            runtime.add(name, build(name, mechanism, players, runtime.stop), [network], position=position.fix)
        await runtime.run()
        return runtime

    runtime = live(story)
    return result(players, list(runtime.traffic()))


def test_gossip_does_the_same_on_both_halves() -> None:
    coin = MechanismSpec.of("GOSSIP", p=0.5)
    did, sent = simulated(coin)
    assert all(0 < forwarded < 2 * COUNT for _, forwarded in did.values()), "coins fell on both sides"
    assert over_udp(coin) == (did, sent)


def test_flooding_and_gossip_that_always_sends_on_do_the_same_on_both_halves() -> None:
    """What each got, in what order, how often it sent on, and how many frames; marks in frames name the mechanism, so bytes differ."""
    flooding, always = MechanismSpec.of("FLOODING"), MechanismSpec.of("GOSSIP", p=1.0)
    did, sent = simulated(flooding)
    assert {forwarded for _, forwarded in did.values()} == {2 * COUNT}, "all that others said, once"
    assert over_udp(flooding) == (did, sent)
    certain, certainly_sent = simulated(always)
    assert over_udp(always) == (certain, certainly_sent)
    assert certain == did
    assert {host: frames for host, (frames, _) in certainly_sent.items()} == {
        host: frames for host, (frames, _) in sent.items()
    }
