"""The cellular network against closed forms.

Statistical bounds are 4.5 standard errors of the named distribution (a chance of 7 in a million), with fixed seeds.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from random import Random
from statistics import fmean, stdev
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.errors import InvalidInput, UnknownName
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.messages import Message, encoded
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Sending
from nearcast.runtime.simulation.cellular import CellularNetwork
from nearcast.runtime.simulation.cellular_profile import (
    BYPASS,
    LCN2016,
    BearerProfile,
    CellularProfile,
    Intermittence,
    Outage,
)
from nearcast.runtime.simulation.cellular_queue import TransmitQueue
from nearcast.runtime.simulation.distributions import Constant, Distribution, Exponential, LogNormal, Normal, Uniform
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.network import SimulatedLink

ERRORS = 4.5
PORT = 7
BROKER = "broker"


class Note(Message, tag="note", frozen=True, array_like=True):
    number: int
    payload: bytes = b""


class Stranger(Message, tag="stranger", frozen=True, array_like=True):
    """Nobody listens to these."""


def size_of(message: Message) -> int:
    return len(encoded(message)) + 1 + BYPASS.overhead


def both(**changes: Any) -> CellularProfile:
    """A network whose two directions are the same."""
    bearer = BearerProfile(**changes)
    return CellularProfile(uplink=bearer, downlink=bearer)


INSTANT = both(latency=Constant(0.0), bandwidth=None)


@dataclass
class Rig:
    """A network and what happened in it."""

    profile: CellularProfile = BYPASS
    clients: Sequence[str] = ("ada", "bob")
    seed: int = 1
    start: Instant = 0
    received: list[tuple[Instant, str, str, int]] = field(default_factory=list)
    """When, by whom, from whom, which number."""

    messages: list[tuple[Any, ...]] = field(default_factory=list)
    drops: list[tuple[Any, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        observers = Observers()
        observers.record("messages", lambda *row: self.messages.append(row))
        observers.record("drops", lambda *row: self.drops.append(row))
        self.simulation = Simulation(self.seed, start=self.start, observers=observers)
        self.network = CellularNetwork(self.simulation, self.profile, infrastructure={BROKER, "backup"})
        self.ports: dict[str, Any] = {}
        for node, name in enumerate((BROKER, "backup", *self.clients)):
            self.network.attach(name, node)
            self.up(name)

    def link(self, name: str) -> SimulatedLink:
        return self.network.links[name]

    def up(self, name: str) -> None:
        def receive(sender: str, message: Note) -> None:
            self.received.append((self.simulation.now(), name, sender, message.number))

        if not self.link(name).up:
            self.link(name).switch(on=True)
            self.ports[name] = self.link(name).open(PORT, receive, Note)

    def down(self, name: str) -> None:
        self.link(name).switch(on=False)

    def send(self, sender: str, receiver: str, number: int = 0, payload: bytes = b"") -> Sending:
        sending: Sending = self.ports[sender].send(receiver, Note(number, payload))
        return sending

    def at(self, seconds: float, act: Callable[[], object]) -> None:
        def due(_: None) -> None:
            act()

        self.simulation.at(self.start + round(seconds * MICROSECONDS), due)

    def send_at(self, seconds: float, sender: str, receiver: str, number: int = 0, payload: bytes = b"") -> None:
        self.at(seconds, lambda: self.send(sender, receiver, number, payload))

    def run(self, seconds: float) -> None:
        self.simulation.run(self.start + round(seconds * MICROSECONDS))

    def delays(self, receiver: str | None = None) -> list[float]:
        """Seconds from sending to arrival."""
        return [(row[1] - row[0]) / MICROSECONDS for row in self.messages if receiver is None or row[5] == receiver]

    def numbers(self, receiver: str) -> list[int]:
        return [number for _, name, _, number in self.received if name == receiver]

    def reasons(self) -> Counter[str]:
        return Counter(row[4] for row in self.drops)


# Latency


@pytest.mark.parametrize(
    ("latency", "deviation"),
    [
        (Constant(0.1), 0.0),
        (Uniform(0.075, 0.125), 0.05 / math.sqrt(12)),
        (Normal(0.2, 0.03, low=0.0), 0.03),  # cut 6.7 standard deviations away: as good as whole
        (LogNormal(0.1, 0.4), 0.1 * math.exp(0.08) * math.sqrt(math.exp(0.16) - 1)),
        (Exponential(0.05, offset=0.05), 0.05),
    ],
)
@pytest.mark.parametrize(
    ("sender", "receiver", "bearers"), [("ada", BROKER, 1), (BROKER, "ada", 1), ("ada", "bob", 2), ("ada", "ada", 2)]
)
def test_each_bearer_adds_a_latency_of_its_own(
    latency: Distribution, deviation: float, sender: str, receiver: str, bearers: int
) -> None:
    rig, count = Rig(both(latency=latency, bandwidth=None)), 3_000
    for number in range(count):
        rig.send_at(number, sender, receiver, number)
    rig.run(count + 60)
    delays = rig.delays()
    assert len(delays) == count
    total = deviation * math.sqrt(bearers)
    # Whole microseconds are cut off on each bearer.
    assert abs(fmean(delays) - bearers * latency.mean) <= ERRORS * total / math.sqrt(count) + 1e-6 * bearers
    squares = [(delay - fmean(delays)) ** 2 for delay in delays]
    assert abs(stdev(delays) ** 2 - total**2) <= ERRORS * stdev(squares) / math.sqrt(count) + 1e-9


def test_the_cloud_of_bypass_delivers_after_200_ms() -> None:
    """From client to client over two bearers, each 100 ms on average (BYPASS.KOM 6.1.3)."""
    rig, count = Rig(BYPASS), 2_000
    for number in range(count):
        rig.send_at(number, "ada", "bob", 0)
    rig.run(count + 1)
    transmission = 2 * size_of(Note(0)) * 8 / 1e6
    error = 0.05 / math.sqrt(12) * math.sqrt(2 / count)
    assert abs(fmean(rig.delays()) - 0.2 - transmission) < ERRORS * error + 2e-6


def test_what_the_broker_of_bypass_sends_to_all_reaches_all_within_50_ms() -> None:
    """All clients execute a plan within 50 ms (BYPASS.KOM 6.3.3)."""
    clients = [f"client-{number}" for number in range(297)]
    rig = Rig(BYPASS, clients)
    for client in clients:
        rig.send(BROKER, client)
    rig.run(1)
    delays = rig.delays()
    assert len(delays) == 297
    # The range of 297 uniform numbers is at least 95 % of the whole with probability 1 - 4e-6.
    assert 0.95 * 0.05 < max(delays) - min(delays) <= 0.05


def test_a_round_trip_to_the_broker_of_lcn_takes_400_ms() -> None:
    rig, count = Rig(LCN2016), 2_000
    for number in range(count):
        rig.send_at(number, BROKER, "ada", 0)
        rig.send_at(number + 0.5, "ada", BROKER, 0)
    rig.run(count + 1)
    down, up = rig.delays("ada"), rig.delays(BROKER)
    error = 0.2 / math.sqrt(12) * math.sqrt(2 / count)
    transmission = 2 * size_of(Note(0)) * 8 / 1e6
    assert abs(fmean(down) + fmean(up) - 0.4 - transmission) < ERRORS * error + 2e-6
    assert min(down + up) >= 0.1


def test_infrastructure_is_in_the_core_and_is_told_after_the_call_that_sent() -> None:
    rig = Rig()
    rig.run(1)
    rig.send(BROKER, "backup")
    assert not rig.received
    rig.run(2)
    assert rig.received == [(MICROSECONDS, "backup", BROKER, 0)]


def test_a_network_without_any_delay_still_does_not_answer_from_inside_the_call() -> None:
    for sender, receiver in [("ada", "bob"), ("ada", BROKER), (BROKER, "ada")]:
        rig = Rig(INSTANT)
        rig.send(sender, receiver, 1)
        assert not rig.received
        rig.run(1)
        assert rig.received == [(0, receiver, sender, 1)]


# Bandwidth and queues


def test_a_message_takes_its_bits_over_the_bandwidth() -> None:
    rig = Rig(both(latency=Constant(0.1), bandwidth=1e6))
    rig.send("ada", BROKER, 1, b"x" * 1_000)
    rig.run(1)
    bits = 8 * size_of(Note(1, b"x" * 1_000))
    assert rig.delays() == [pytest.approx(0.1 + bits / 1e6, abs=1e-6)]


@pytest.mark.parametrize(("sender", "receiver"), [("ada", BROKER), (BROKER, "ada"), ("ada", "bob")])
@pytest.mark.parametrize("bandwidth", [1e6, 3e5])
def test_throughput_saturates_at_the_bandwidth(sender: str, receiver: str, bandwidth: float) -> None:
    rig, payload = Rig(both(latency=Constant(0.1), bandwidth=bandwidth)), b"x" * 500
    size = size_of(Note(0, payload))
    seconds, offered = 20, 3 * bandwidth
    count = int(seconds * offered / 8 / size)
    for number in range(count):
        rig.send_at(number * size * 8 / offered, sender, receiver, 0, payload)
    rig.run(seconds)
    window = [row for row in rig.messages if row[7] == "received" and row[1] >= 10 * MICROSECONDS]
    throughput = sum(row[6] for row in window) * 8 / 10
    # At most one parcel is cut off at each end of the window.
    assert throughput == pytest.approx(bandwidth, abs=2 * size * 8 / 10)


@pytest.mark.parametrize(("sender", "receiver"), [("ada", BROKER), (BROKER, "ada")])
@pytest.mark.parametrize("load", [0.3, 0.7])
def test_waiting_follows_the_formula_for_poisson_arrivals_of_one_size(sender: str, receiver: str, load: float) -> None:
    """M/D/1: the mean waiting time is load * service / (2 * (1 - load)) (Pollaczek-Khinchine).

    Waiting times of one run depend on each other, so the standard error is that of independent runs.  They begin with
    an empty queue; after 100 messages that is forgotten.
    """
    service = size_of(Note(0)) * 8 / 1e6
    waits = []
    for seed in range(30):
        rig, random, time = Rig(both(latency=Constant(0.1), bandwidth=1e6), seed=seed), Random(seed), 0.0
        for _ in range(1_100):
            time += random.expovariate(load / service)
            rig.send_at(time, sender, receiver)
        rig.run(time + 1)
        waits.append(fmean(rig.delays()[100:]) - 0.1 - service)
    expected = load * service / (2 * (1 - load))
    error = stdev(waits) / math.sqrt(len(waits))
    assert error < 0.06 * expected  # else the next line would say little
    assert abs(fmean(waits) - expected) < ERRORS * error + 1e-6


def test_the_sender_sees_the_queue_fill_up_and_overflow() -> None:
    size = size_of(Note(0))
    rig = Rig(both(bandwidth=1e6, queue_bytes=5 * size + 1))
    assert [rig.send("ada", BROKER) for _ in range(8)] == [
        Sending.ACCEPTED,
        *[Sending.QUEUED] * 4,
        *[Sending.DROPPED] * 3,
    ]
    assert rig.reasons() == {"queue full": 3}
    assert {row[2] for row in rig.drops} == {"ada"}
    # One transmission later there is room for one more; when all are over, the queue is as new.
    rig.run(size * 8 / 1e6)
    assert [rig.send("ada", BROKER) for _ in range(2)] == [Sending.QUEUED, Sending.DROPPED]
    rig.run(1)
    assert rig.send("ada", BROKER) is Sending.ACCEPTED
    rig.run(2)
    assert len(rig.received) == 7


def test_the_queue_before_a_client_overflows_where_the_client_is() -> None:
    size = size_of(Note(0))
    rig = Rig(both(latency=Constant(0.1), bandwidth=1e6, queue_bytes=5 * size))
    assert {rig.send(BROKER, "ada", number) for number in range(8)} == {Sending.ACCEPTED}
    rig.run(1)
    assert rig.numbers("ada") == [0, 1, 2, 3, 4]
    assert rig.reasons() == {"queue full": 3}
    assert {row[2] for row in rig.drops} == {"ada"}
    assert rig.network.statistics().lost == {"queue full": 3}


def test_a_client_is_served_in_the_order_of_arrival_at_its_queue_not_of_sending() -> None:
    rig = Rig(both(latency=Uniform(0.0, 0.2), bandwidth=1e5))
    for number in range(200):
        rig.send_at(number / 1_000, BROKER, "ada", 0)
    rig.run(10)
    times = [time for time, *_ in rig.received]
    service = math.ceil(size_of(Note(0)) * 8 / 1e5 * MICROSECONDS)
    assert len(times) == 200
    assert min(later - earlier for earlier, later in pairwise(times)) >= service - 1
    # It was busy nearly all the time: 200 transmissions one after the other.
    assert times[-1] <= 0.2 * MICROSECONDS + 200 * service


def test_queues_of_two_clients_and_of_two_directions_do_not_touch() -> None:
    rig = Rig(both(latency=Constant(0.1), bandwidth=1e5))
    for _ in range(50):
        rig.send("ada", BROKER)
    assert rig.send("bob", BROKER) is Sending.ACCEPTED
    rig.send(BROKER, "ada")
    rig.run(10)
    alone = pytest.approx(0.1 + size_of(Note(0)) * 8 / 1e5, abs=2e-6)
    assert rig.delays("ada") == [alone]
    assert [(row[1] - row[0]) / MICROSECONDS for row in rig.messages if row[4] == "bob"] == [alone]


@given(
    st.floats(1e4, 1e10),
    st.integers(100, 10_000),
    st.lists(st.tuples(st.integers(0, 3_000_000), st.integers(1, 3_000)), max_size=60),
)
def test_the_queue_is_that_of_the_recursion_by_which_it_is_defined(
    bandwidth: float, limit: int, arrivals: list[tuple[int, int]]
) -> None:
    """First come, first served: a departure is a service time after the arrival, or after the departure before."""
    queue, now, departure = TransmitQueue(bandwidth, limit), 0, 0.0
    for gap, size in arrivals:
        now += gap
        service = size * 8e9 / bandwidth
        backlog = max(0.0, departure - now) * bandwidth / 8e9
        answer = queue.admit(now, size)
        # Nanoseconds are cut off; where that could decide, either answer is right.
        slack = 1e-6 + len(arrivals) * bandwidth / 8e9
        if answer < 0:
            assert backlog + size > limit - slack
        else:
            assert backlog + size < limit + slack
            departure = max(float(now), departure) + service
            assert answer == pytest.approx(departure, abs=len(arrivals) + 1)
            departure = answer


# Order


def orders(rig: Rig, sender: str, receiver: str) -> list[int]:
    for number in range(300):
        rig.send_at(number / 1_000, sender, receiver, number)
    rig.run(5)
    return rig.numbers(receiver)


@pytest.mark.parametrize(("sender", "receiver"), [("ada", BROKER), (BROKER, "ada"), ("ada", "bob")])
def test_messages_overtake_unless_the_network_keeps_their_order(sender: str, receiver: str) -> None:
    numbers = orders(Rig(BYPASS), sender, receiver)
    assert sorted(numbers) == list(range(300))
    assert numbers != list(range(300))
    assert orders(Rig(replace(BYPASS, ordered=True)), sender, receiver) == list(range(300))


# What goes wrong


@pytest.mark.parametrize(("sender", "receiver", "bearers"), [("ada", BROKER, 1), (BROKER, "ada", 1), ("ada", "bob", 2)])
def test_each_bearer_loses_its_share(sender: str, receiver: str, bearers: int) -> None:
    loss, count = 0.1, 5_000
    rig = Rig(both(loss=loss))
    for number in range(count):
        rig.at(number / 10, lambda: rig.send(sender, receiver))
    rig.run(count / 10 + 5)
    arrives = (1 - loss) ** bearers  # binomial
    error = math.sqrt(arrives * (1 - arrives) / count)
    assert abs(len(rig.received) / count - arrives) < ERRORS * error
    assert rig.reasons() == {"transmission lost": count - len(rig.received)}
    assert {row[2] for row in rig.drops} == {sender, receiver} - {BROKER}


def test_a_lost_message_occupies_its_bearer_and_the_sender_does_not_know() -> None:
    rig = Rig(both(loss=1.0, bandwidth=1e5))
    assert rig.send("ada", BROKER) is Sending.ACCEPTED
    assert rig.send("ada", BROKER) is Sending.QUEUED
    rig.run(1)
    service = size_of(Note(0)) * 8 / 1e5
    assert [row[0] / MICROSECONDS for row in rig.drops] == [
        pytest.approx(service, abs=1e-6),
        pytest.approx(2 * service, abs=1e-6),
    ]


def test_without_coverage_nothing_is_sent_and_nothing_received() -> None:
    profile = replace(both(latency=Constant(0.1)), outages=(Outage(10, 20), Outage(15, 30)))
    rig = Rig(profile, start=1_700_000_000_000_000)
    told: dict[float, Sending] = {}
    for second in (9.0, 10.0, 15.0, 25.0, 29.999, 30.0):
        rig.at(second, lambda second=second: told.update({second: rig.send("ada", BROKER, int(second))}))  # type: ignore[misc]
        rig.send_at(second, BROKER, "bob", int(second))
    rig.send_at(9.95, BROKER, "bob", 99)  # sent before, at the base station within
    rig.send_at(29.95, BROKER, "bob", 100)  # and the other way round
    rig.run(40)
    assert [second for second, sending in told.items() if sending is Sending.DROPPED] == [10, 15, 25, 29.999]
    assert rig.numbers(BROKER) == [9, 30]
    assert rig.numbers("bob") == [9, 100, 29, 30]
    assert rig.reasons() == {"no coverage": 4 + 4}
    assert rig.network.statistics().refused == {"no coverage": 4}


def test_an_outage_may_concern_some_clients_only() -> None:
    rig = Rig(replace(BYPASS, outages=(Outage(1, 2, frozenset({"ada"})),)))
    rig.send_at(1.5, "ada", BROKER, 1)
    rig.send_at(1.5, "bob", BROKER, 2)
    rig.send_at(1.5, "bob", "ada", 3)
    rig.run(3)
    assert rig.numbers(BROKER) == [2]
    assert rig.numbers("ada") == []


def test_what_is_on_air_when_coverage_ends_is_lost_and_what_waits_longer_than_the_outage_is_not() -> None:
    service = size_of(Note(0)) * 8 / 1e4  # about 30 ms
    profile = replace(both(latency=Constant(0.0), bandwidth=1e4), outages=(Outage(1.5 * service, 2.5 * service),))
    rig = Rig(profile)
    for number in range(5):
        assert rig.send("ada", BROKER, number) is not Sending.DROPPED
    rig.run(1)
    assert rig.numbers(BROKER) == [0, 3, 4]


def test_clients_lose_the_network_for_their_share_of_time() -> None:
    """Exponential times on and off are a Markov chain of two states, with relaxation time 1 / (1/on + 1/off).

    The share of time spent off has the variance 2 * share * (1 - share) * relaxation / duration.
    """
    on, off, duration = 30.0, 10.0, 20_000
    rig = Rig(replace(BYPASS, intermittence=Intermittence(on, off)))
    for second in range(duration):
        rig.send_at(second, "ada", BROKER)
    rig.run(duration + 1)
    share, relaxation = off / (on + off), 1 / (1 / on + 1 / off)
    refused = rig.network.statistics().refused["no coverage"] / duration
    assert abs(refused - share) < ERRORS * math.sqrt(2 * share * (1 - share) * relaxation / duration)


def test_each_client_has_outages_of_its_own() -> None:
    def refused(client: str) -> list[int]:
        rig = Rig(replace(BYPASS, intermittence=Intermittence(5, 5)))
        for second in range(100):
            rig.send_at(second, client, BROKER)
        rig.run(101)
        return [row[0] for row in rig.drops]

    assert refused("ada") != refused("bob")
    assert refused("ada") == refused("ada")


@pytest.mark.parametrize("up", [True, False])
def test_a_cell_that_is_overloaded_gives_no_more_than_it_has(up: bool) -> None:
    clients = [f"client-{number}" for number in range(10)]
    bearer = BearerProfile(latency=Constant(0.05), cell_bandwidth=2e6, cell_queue_bytes=100_000)
    rig, payload = Rig(CellularProfile(uplink=bearer, downlink=bearer), clients), b"x" * 500
    size = size_of(Note(0, payload))
    gap = size * 8 / 4e6  # 4 Mbit/s in all, from clients that have 1 Mbit/s each
    for number in range(int(10 / gap)):
        client = clients[number % 10]
        rig.send_at(number * gap, *((client, BROKER) if up else (BROKER, client)), 0, payload)
    rig.run(10)
    window = [row for row in rig.messages if row[7] == "received" and row[1] >= 5 * MICROSECONDS]
    assert sum(row[6] for row in window) * 8 / 5 == pytest.approx(2e6, abs=2 * size * 8 / 5)
    # The shared queue is full: whoever gets through has waited for the 100,000 bytes before it.
    waited = max(row[1] - row[0] for row in window) / MICROSECONDS
    assert waited == pytest.approx(0.05 + 100_000 * 8 / 2e6 + size * 8 / 1e6, abs=2 * size * 8 / 2e6)
    assert set(rig.reasons()) == {"cell overloaded"}
    assert {row[2] for row in rig.drops} <= set(clients)


def test_a_cell_with_enough_for_all_drops_nothing() -> None:
    clients = [f"client-{number}" for number in range(10)]
    rig = Rig(both(cell_bandwidth=2e6, cell_queue_bytes=100_000), clients)
    payload = b"x" * 500
    gap = size_of(Note(0, payload)) * 8 / 1.9e6
    for number in range(2_000):
        rig.send_at(number * gap, clients[number % 10], BROKER, 0, payload)
    rig.run(2_000 * gap + 2)
    assert len(rig.received) == 2_000


# Hosts that come and go


def test_a_message_to_a_host_that_failed_meanwhile_is_lost() -> None:
    rig = Rig()
    rig.send(BROKER, "ada")
    rig.at(0.01, lambda: rig.down("ada"))
    rig.at(1.0, lambda: rig.up("ada"))
    rig.run(2)
    assert not rig.received
    assert rig.reasons() == {"receiver down": 1}


def test_a_message_is_for_the_address_and_reaches_a_host_that_failed_and_is_back() -> None:
    rig = Rig()
    rig.send(BROKER, "ada", 5)
    rig.at(0.01, lambda: rig.down("ada"))
    rig.at(0.02, lambda: rig.up("ada"))
    rig.run(2)
    assert rig.numbers("ada") == [5]


def test_what_the_network_has_taken_arrives_though_its_sender_is_gone() -> None:
    """So the last words of a host that leaves are heard."""
    rig = Rig()
    rig.send("ada", BROKER, 5)
    rig.down("ada")
    assert rig.send("ada", BROKER, 6) is Sending.DROPPED
    rig.run(2)
    assert rig.numbers(BROKER) == [5]
    assert rig.network.statistics().refused == {"link down": 1}


def test_an_unknown_receiver_is_refused() -> None:
    rig = Rig()
    assert rig.send("ada", "nobody") is Sending.DROPPED
    assert rig.reasons() == {"unknown receiver": 1}
    assert rig.network.statistics().sent == 0


def test_what_nobody_listens_to_is_lost_where_it_arrived() -> None:
    rig = Rig()
    rig.ports["ada"].send("bob", Stranger())
    rig.run(1)
    assert rig.drops == [(rig.drops[0][0], "cellular", "bob", "stranger", "nobody listens", 1, size_of(Stranger()))]
    assert rig.network.statistics().lost == {"nobody listens": 1}


def test_whoever_listens_when_a_message_arrives_gets_it_not_who_got_the_last_one() -> None:
    rig, later = Rig(), list[int]()
    rig.send(BROKER, "ada", 1)
    rig.run(1)
    rig.ports["ada"].close()
    rig.send(BROKER, "ada", 2)
    rig.run(2)
    rig.link("ada").open(PORT, lambda _sender, note: later.append(note.number), Note)
    rig.send(BROKER, "ada", 3)
    rig.run(3)
    assert (rig.numbers("ada"), later) == ([1], [3])
    assert rig.network.statistics().lost == {"nobody listens": 1}


def test_there_is_no_broadcast() -> None:
    with pytest.raises(InvalidInput, match="no broadcast"):
        Rig().ports["ada"].broadcast(Note(1))


def test_two_hosts_of_one_name_are_refused() -> None:
    with pytest.raises(UnknownName, match="already"):
        Rig().network.attach("ada", 9)


# Nothing gets lost in the books

NAMES = (BROKER, "ada", "bob", "cleo")
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.sampled_from(NAMES), st.sampled_from((*NAMES, "nobody")), st.integers(0, 4_000)),
        st.tuples(st.just("fail"), st.sampled_from(NAMES), st.just(""), st.just(0)),
        st.tuples(st.just("join"), st.sampled_from(NAMES), st.just(""), st.just(0)),
        st.tuples(st.just("stranger"), st.sampled_from(NAMES), st.sampled_from(NAMES), st.just(0)),
    ),
    max_size=80,
)
BEARERS = st.builds(
    BearerProfile,
    latency=st.sampled_from([Constant(0.0), Constant(0.1), Uniform(0.0, 0.2), Exponential(0.1)]),
    bandwidth=st.sampled_from([None, 1e5, 1e6]),
    queue_bytes=st.sampled_from([100, 5_000, 100_000]),
    loss=st.sampled_from([0.0, 0.3, 1.0]),
    cell_bandwidth=st.sampled_from([None, 5e4, 1e6]),
    cell_queue_bytes=st.sampled_from([3_000, 100_000]),
)
PROFILES = st.builds(
    CellularProfile,
    uplink=BEARERS,
    downlink=BEARERS,
    ordered=st.booleans(),
    outages=st.lists(
        st.builds(
            lambda start, length, who: Outage(start, start + length, who),
            st.floats(0, 3),
            st.floats(0.01, 2),
            st.sampled_from([None, frozenset({"ada"})]),
        ),
        max_size=3,
    ).map(tuple),
    intermittence=st.sampled_from([None, Intermittence(0.5, 0.3)]),
)


@given(PROFILES, ACTIONS, st.floats(0, 5), st.integers(0, 100))
def test_whatever_was_sent_was_received_or_lost_for_a_reason_or_is_in_flight(
    profile: CellularProfile, actions: list[tuple[str, str, str, int]], seconds: float, seed: int
) -> None:
    rig, told = Rig(profile, NAMES[1:], seed=seed), Counter[Sending]()

    def act(what: str, host: str, other: str, length: int) -> None:
        if what == "fail":
            rig.down(host)
        elif what == "join":
            rig.up(host)
        else:
            message = Note(0, b"x" * length) if what == "send" else Stranger()
            told[rig.ports[host].send(other, message)] += 1

    for number, action in enumerate(actions):
        rig.at(number * 0.02, lambda action=action: act(*action))  # type: ignore[misc]
    rig.run(seconds)
    done = rig.network.statistics()
    assert done.sent == told[Sending.ACCEPTED] + told[Sending.QUEUED]
    assert sum(done.refused.values()) == told[Sending.DROPPED]
    assert done.received == len(rig.received)
    # The rows tell the same story: one per message that is over, and the drops by reason.
    outcomes = Counter(row[7] for row in rig.messages)
    assert outcomes.pop("received", 0) == done.received
    assert outcomes == rig.reasons() == Counter(done.lost) + Counter(done.refused)
    assert done.in_flight == done.sent - done.received - sum(done.lost.values()) >= 0
    rig.run(3_600)
    assert rig.network.statistics().in_flight == 0
    books = dict.fromkeys(("sent", "received"), 0)
    for traffic in rig.network.traffic():
        books[traffic.direction] += traffic.messages
    assert (books["sent"], books["received"]) == (rig.network.statistics().sent, len(rig.received))


def test_statistics_name_who_is_there() -> None:
    statistics = Rig().network.statistics()
    assert (statistics.clients, statistics.infrastructure) == (2, 2)
    assert (statistics.sent, statistics.in_flight, statistics.lost, statistics.refused) == (0, 0, {}, {})


# Determinism


def test_the_same_seed_is_the_same_run_and_another_is_another() -> None:
    def rows(seed: int) -> list[tuple[Any, ...]]:
        rig = Rig(replace(both(loss=0.1), intermittence=Intermittence(1, 1)), seed=seed)
        for number in range(200):
            rig.send_at(number / 50, "ada", "bob", number)
            rig.send_at(number / 50, BROKER, "ada", number)
        rig.run(10)
        return rig.messages

    assert rows(1) == rows(1)
    assert rows(1) != rows(2)


@pytest.mark.parametrize("direction", ["up", "down"])
def test_others_do_not_change_the_latency_of_a_client(direction: str) -> None:
    def delays(*, crowd: bool) -> list[float]:
        rig = Rig(both(loss=0.1))
        for number in range(100):
            if crowd:
                rig.send_at(number, "bob", BROKER)
                rig.send_at(number + 0.1, BROKER, "bob")
                # Not even what the client does in the other direction.
                rig.send_at(number + 0.2, *(("ada", BROKER) if direction == "down" else (BROKER, "ada")), 7)
            rig.send_at(number + 0.5, *(("ada", BROKER) if direction == "up" else (BROKER, "ada")))
        rig.run(101)
        asked = ("ada", BROKER) if direction == "up" else (BROKER, "ada")
        return [row[1] - row[0] for row in rig.messages if (row[4], row[5]) == asked]

    assert delays(crowd=True) == delays(crowd=False)


# Profiles


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: BearerProfile(latency=Normal(0.1, 0.1)), "truncate"),
        (lambda: BearerProfile(bandwidth=0), "bandwidth must be"),
        (lambda: BearerProfile(bandwidth=math.nan), "bandwidth must be"),
        (lambda: BearerProfile(cell_bandwidth=-1), "cell_bandwidth must be"),
        (lambda: BearerProfile(queue_bytes=0), "queue_bytes must be"),
        (lambda: BearerProfile(cell_queue_bytes=-5), "cell_queue_bytes must be"),
        (lambda: BearerProfile(loss=1.1), "probability"),
        (lambda: BearerProfile(loss=math.nan), "probability"),
        (lambda: CellularProfile(overhead=-1), "overhead"),
        (lambda: Outage(2, 1), "no stretch"),
        (lambda: Outage(-1, 1), "no stretch"),
        (lambda: Outage(1, math.inf), "no stretch"),
        (lambda: Intermittence(0, 1), "positive"),
        (lambda: Intermittence(1, math.inf), "positive"),
    ],
)
def test_a_profile_that_cannot_be_is_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        make()
