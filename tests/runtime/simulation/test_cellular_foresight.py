"""Downlinks that are worked out ahead are the same as those where one thing happens after the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.runtime.messages import Message
from nearcast.runtime.observers import Observers
from nearcast.runtime.simulation import cellular
from nearcast.runtime.simulation.cellular import CellularNetwork
from nearcast.runtime.simulation.cellular_copies import DRAWN_AHEAD
from nearcast.runtime.simulation.cellular_downlinks import SteppedDownlinks
from nearcast.runtime.simulation.cellular_foresight import ForeseenDownlinks, stride_of
from nearcast.runtime.simulation.cellular_profile import (
    BYPASS,
    LCN2016,
    BearerProfile,
    CellularProfile,
    Intermittence,
    Outage,
)
from nearcast.runtime.simulation.distributions import Constant, Distribution, Exponential, LogNormal, Normal, Uniform
from nearcast.runtime.simulation.kernel import Simulation

CLIENTS = ("ada", "bob", "cleo")
PORT = 1


class Note(Message, frozen=True, tag="note"):
    payload: bytes


@contextmanager
def stepped() -> Iterator[None]:
    """Every network steps through its downlinks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cellular, "stride_of", lambda _profile: 0)
        yield


Sending = tuple[int, str, list[str], int]
"""After so many microseconds, from whom, to whom, how large."""


def told(profile: CellularProfile, sendings: list[Sending], seed: int, kind: type) -> list[Any]:
    """All that was recorded, in order, and what waited in between."""
    rows: list[Any] = []
    observers = Observers()
    for table in ("messages", "drops"):
        observers.record(table, lambda *row, table=table: rows.append((table, *row)))
    simulation = Simulation(seed, start=1_800_000_000_000_000, observers=observers)
    network = CellularNetwork(simulation, profile, infrastructure=["broker"])
    assert type(network.downlinks) is kind
    ports = {}
    for node, name in enumerate(("broker", *CLIENTS)):
        link = network.attach(name, node)
        link.switch(on=True)

        def heard(sender: str, note: Note, name: str = name) -> None:
            rows.append((simulation.now(), name, sender, len(note.payload)))

        ports[name] = link.open(PORT, heard, Note)
    for wait, sender, receivers, size in sendings:
        simulation.run(simulation.now() + wait)
        rows.append((simulation.statistics().waiting, network.in_flight))
        ports[sender].send_all(receivers, Note(b"x" * size))
    simulation.run(simulation.now() + 3_600_000_000)
    assert network.in_flight == simulation.statistics().waiting == 0
    return [*rows, list(network.traffic())]


LATENCIES = st.sampled_from(
    [Constant(0.1), Uniform(0.01, 0.2), Exponential(0.1, offset=0.005), LogNormal(0.05, 1.0, offset=0.0006)]
)
DOWNLINKS = st.builds(
    BearerProfile,
    latency=LATENCIES,
    bandwidth=st.sampled_from([None, 1e5, 1e6]),
    queue_bytes=st.sampled_from([400, 5_000, 100_000]),
    cell_bandwidth=st.sampled_from([None, 5e4, 1e6]),
    cell_queue_bytes=st.sampled_from([3_000, 100_000]),
)
PROFILES = st.builds(CellularProfile, downlink=DOWNLINKS, ordered=st.booleans())
SENDINGS = st.lists(
    st.tuples(
        st.one_of(st.integers(0, 3_000), st.integers(0, 300_000)),
        st.sampled_from(["broker", "broker", *CLIENTS]),
        st.lists(st.sampled_from(["broker", "nobody", *CLIENTS]), max_size=6),
        st.integers(0, 2_000),
    ),
    max_size=60,
)


@given(PROFILES, SENDINGS, st.integers(0, 100))
def test_working_ahead_is_going_step_by_step(profile: CellularProfile, sendings: list[Sending], seed: int) -> None:
    ahead = told(profile, sendings, seed, ForeseenDownlinks)
    with stepped():
        assert ahead == told(profile, sendings, seed, SteppedDownlinks)


def test_that_holds_for_more_latencies_than_are_drawn_at_a_time_and_more_copies_than_there_is_room_for() -> None:
    sendings: list[Sending] = [(500, "broker", list(CLIENTS), 100)] * (3 * DRAWN_AHEAD)
    ahead = told(BYPASS, sendings, 1, ForeseenDownlinks)
    with stepped():
        assert ahead == told(BYPASS, sendings, 1, SteppedDownlinks)


@pytest.mark.parametrize(
    ("latency", "bits"),
    [
        (Constant(0.1), 14),
        (Constant(0.0162), 13),
        (Uniform(0.0006, 1.0), 9),
        (Constant(0.0), 0),
        (Uniform(0.0005, 1), 0),
    ],
)
def test_a_stride_is_no_longer_than_the_shortest_latency(latency: Distribution, bits: int) -> None:
    assert stride_of(CellularProfile(downlink=BearerProfile(latency=latency))) == bits
    assert bits == 0 or 2**bits <= latency.least * 1e6


def test_the_documents_networks_can_be_foreseen_and_those_in_which_something_is_lost_on_air_cannot() -> None:
    assert stride_of(BYPASS)
    assert stride_of(LCN2016)
    assert not stride_of(CellularProfile(downlink=BearerProfile(loss=0.01)))
    assert not stride_of(CellularProfile(outages=(Outage(1, 2),)))
    assert not stride_of(CellularProfile(intermittence=Intermittence(1, 1)))
    assert not stride_of(CellularProfile(downlink=BearerProfile(latency=Normal(0.1, 0.02, low=0.0))))
