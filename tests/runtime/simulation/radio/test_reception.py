"""Who hears a frame: ranges, collisions, half duplex, movement."""

import doctest
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runtime.simulation.radio.stations import (
    MILLISECOND,
    SECOND,
    check_conservation,
    listen,
    on_a_line,
    placed,
    share_bound,
)

from nearcast.model.time import MICROSECONDS
from nearcast.runtime.simulation.motion import Leg
from nearcast.runtime.simulation.radio import engine as engine_module
from nearcast.runtime.simulation.radio.engine import BROADCAST, Loss, Outcome, RadioEngine
from nearcast.runtime.simulation.radio.modulation import success_probability
from nearcast.runtime.simulation.radio.profile import Family, RadioProfile, Ranges, wifi_b, wifi_g

HIDDEN = Ranges(reception=88, interference=205, carrier_sense=88)
"""Two that do not sense each other can both reach the one between them."""


@pytest.mark.parametrize("profile", [wifi_b(), wifi_g()])
def test_a_broadcast_reaches_88_metres_and_is_noticed_to_205(profile: RadioProfile) -> None:
    engine = RadioEngine(profile, on_a_line(0, 1, 87.99, 88.01, 204.99, 205.01), seed=1)
    engine.send(0, BROADCAST, 128, 7, 0)
    delivered, completed = listen(engine, SECOND)
    end = profile.difs_ns + profile.broadcast_ns(128)
    assert delivered == [(end, 7, 1, 0), (end, 7, 2, 0)]
    assert completed == [(end, 7, 0, Outcome.SENT)]
    statistics = engine.statistics()
    assert statistics.potential_receptions == 4
    assert statistics.losses[Loss.OUT_OF_RANGE] == 2
    assert statistics.bytes_sent == 192
    assert statistics.bytes_received == 2 * 192


def test_what_the_documentation_shows_is_true() -> None:
    assert doctest.testmod(engine_module) == (0, 6)


def test_two_that_start_at_the_same_instant_collide_and_are_deaf_meanwhile() -> None:
    engine = RadioEngine(wifi_b(), on_a_line(0, 40, 80), seed=1)
    engine.send(0, BROADCAST, 128, 1, 0)
    engine.send(2, BROADCAST, 128, 2, 0)
    delivered, completed = listen(engine, SECOND)
    assert delivered == []
    assert [told.other for told in completed] == [Outcome.SENT, Outcome.SENT]
    losses = engine.statistics().losses
    assert losses[Loss.BUSY_SENDING] == 2
    assert losses[Loss.PREAMBLE_MISSED] == 2


@pytest.mark.parametrize(("margin_db", "received"), [(4.2, True), (3.8, False)])
def test_the_stronger_of_two_preambles_wins_if_it_stands_out_by_4_decibels(margin_db: float, received: bool) -> None:
    # So near that noise is nothing.
    nearer = 20.0
    farther = nearer * 10 ** (margin_db / 38)
    engine = RadioEngine(wifi_b(), on_a_line(-nearer, 0, farther), seed=1)
    engine.send(2, BROADCAST, 128, 2, 0)
    engine.send(0, BROADCAST, 128, 1, 0)
    delivered, _ = listen(engine, SECOND)
    assert [(told.key, told.node) for told in delivered] == ([(1, 1)] if received else [])


def test_a_station_that_receives_does_not_turn_to_a_louder_frame() -> None:
    # 0 and 2 do not sense each other; 1 listens to 0 when 2, nearer, starts: no capture.
    engine = RadioEngine(wifi_b(HIDDEN), on_a_line(0, 70, 110), seed=1, report_losses=True)
    engine.send(0, BROADCAST, 128, 1, 0)
    assert engine.advance(MILLISECOND) == wifi_b().difs_ns  # the frame is out of range for station 2
    assert engine.reports().lost == [(1, 2, Loss.OUT_OF_RANGE)]
    assert engine.advance(MILLISECOND) == MILLISECOND
    engine.send(2, BROADCAST, 128, 2, MILLISECOND)
    seen = []
    while engine.advance(SECOND) < SECOND:
        reports = engine.reports()
        seen += reports.lost + reports.delivered
    assert (2, 1, Loss.BUSY_RECEIVING) in seen
    assert (1, 1, Loss.COLLIDED) in seen  # 7.5 dB below the other
    assert not engine.statistics().received


@pytest.mark.parametrize("load", [0.05, 0.15])
@pytest.mark.parametrize("robust", [False, True])
def test_hidden_stations_collide_as_often_as_their_frames_overlap(load: float, robust: bool) -> None:
    """The vulnerable window: at 6 Mbit/s (OFDM) no frame survives an equal one, so nothing may be on air at the start nor
    start before the end: (1 - load) exp(-load).  At 1 Mbit/s (DSSS) despreading saves the frame that came first.
    """
    profile = (wifi_b if robust else wifi_g)(HIDDEN, lifetime_ns=10**15)
    engine = RadioEngine(profile, on_a_line(0, 80, 160), seed=3)
    random = np.random.default_rng(3)
    airtime = profile.broadcast_ns(128)
    frames = 4000
    times = {node: np.cumsum(random.exponential(airtime / load, frames)) for node in (0, 2)}
    sendings = sorted((int(time), node) for node in times for time in times[node])
    for key, (time, node) in enumerate(sendings):
        listen(engine, time)
        engine.send(node, BROADCAST, 128, key, time)
    listen(engine, engine.now + SECOND)
    statistics = engine.statistics(1)
    assert statistics.received + sum(statistics.losses.values()) == 2 * frames
    expected = (1 - load) * (1.0 if robust else math.exp(-load))
    # Frames of one sender that come together wait for each other; that bends the closed form by load squared.
    assert statistics.received / (2 * frames) == pytest.approx(
        expected, abs=share_bound(expected, 2 * frames) + 0.3 * load**2
    )


def test_slow_broadcasts_reach_farther_than_the_unicasts_of_the_same_radio() -> None:
    """As often as its bits survive noise alone: preamble and header, then the payload."""
    profile = wifi_g(data_rate=6_000_000, broadcast_rate=1_000_000, preamble_sinr_db=-10.0, retry_limit=1)
    place = profile.range_of(profile.noise_dbm + 1.0)  # at 1 dB: little for 6 Mbit/s, plenty for 1
    profile = replace(profile, reception_threshold_dbm=profile.power_at(place) - 1.0)
    ratio = 10**0.1
    slow = success_probability(Family.DSSS, 1_000_000, ratio, 48 + 8 * 192)
    fast = success_probability(Family.OFDM, 6_000_000, ratio, 24 + 8 * 192)
    assert fast < 0.01
    assert slow > 0.99
    engine = RadioEngine(profile, on_a_line(0, place), seed=1)
    for key in range(500):
        engine.send(0, BROADCAST if key % 2 else 1, 128, key, key * 20 * MILLISECOND)
        listen(engine, (key + 1) * 20 * MILLISECOND - 1)
    heard = engine.statistics(1)
    assert heard.received == pytest.approx(
        250 * (slow + fast), abs=250 * (share_bound(slow, 250) + share_bound(fast, 250)) + 1
    )
    check_conservation(engine.statistics())


def test_switching_off_cuts_what_is_sent_and_loses_what_is_received() -> None:
    engine = RadioEngine(wifi_b(), on_a_line(0, 40, 80), seed=1)
    engine.power(2, on=False, at_ns=0)
    engine.send(0, BROADCAST, 128, 1, 0)
    engine.send(0, BROADCAST, 128, 2, 0)
    engine.advance(MILLISECOND)
    engine.power(0, on=False, at_ns=MILLISECOND)
    assert engine.reports().completed == [(1, 0, Outcome.SWITCHED_OFF), (2, 0, Outcome.SWITCHED_OFF)]
    assert listen(engine, SECOND) == ([], [])
    statistics = engine.statistics()
    assert statistics.losses[Loss.SWITCHED_OFF] == 2
    assert statistics.data_sent == 1
    check_conservation(statistics)
    engine.power(0, on=True, at_ns=SECOND)
    engine.send(0, BROADCAST, 128, 3, SECOND)
    delivered, _ = listen(engine, 2 * SECOND)
    assert [(told.key, told.node) for told in delivered] == [(3, 1)]


def test_whoever_is_switched_off_while_receiving_gets_nothing() -> None:
    engine = RadioEngine(wifi_b(), on_a_line(0, 40, 80), seed=1)
    engine.send(0, BROADCAST, 128, 1, 0)
    engine.advance(MILLISECOND)
    engine.power(1, on=False, at_ns=MILLISECOND)
    delivered, _ = listen(engine, SECOND)
    assert [told.node for told in delivered] == [2]
    check_conservation(engine.statistics())


def test_where_stations_are_when_a_frame_starts_decides() -> None:
    legs = on_a_line(0, 0)
    # 1 m/s: 88 m after 88 s.
    legs[1] = Leg(0, 1_000 * MICROSECONDS, 0.0, 0.0, 1.0, 0.0)
    engine = RadioEngine(wifi_b(), legs, seed=1)
    heard = []
    for second in range(5, 300, 5):
        listen(engine, second * SECOND - 1)
        engine.send(0, BROADCAST, 128, second, second * SECOND)
        heard += [told.key for told in listen(engine, second * SECOND + 10 * MILLISECOND)[0]]
    assert heard == list(range(5, 88, 5))
    assert engine.statistics().potential_receptions == len(range(5, 205, 5))


def test_the_legs_may_be_changed_between_calls() -> None:
    legs = on_a_line(0, 50, 5_000)
    engine = RadioEngine(wifi_b(), legs, seed=1, start_us=1_000)
    engine.send(0, BROADCAST, 128, 1, 0)
    assert [told.node for told in listen(engine, SECOND)[0]] == [1]
    legs["x"][1:] = [5_000, 50]
    engine.send(0, BROADCAST, 128, 2, SECOND)
    assert [told.node for told in listen(engine, 2 * SECOND)[0]] == [2]
    # Leave at 50 m/s, two seconds after what legs count as zero.
    legs[2] = Leg(2_001_000, 10_001_000, 50.0, 0.0, 50.0, 0.0)
    engine.send(0, BROADCAST, 128, 3, 2 * SECOND)
    assert [told.node for told in listen(engine, 3 * SECOND)[0]] == [2]
    engine.send(0, BROADCAST, 128, 4, 3 * SECOND)
    assert listen(engine, 4 * SECOND)[0] == []


places = st.tuples(st.integers(-400, 400), st.integers(-400, 400))
velocities = st.tuples(st.integers(-30, 30), st.integers(-30, 30))


@settings(max_examples=50)
@given(st.lists(st.tuples(places, velocities), min_size=1, max_size=30), st.data())
def test_one_sender_alone_is_heard_by_exactly_those_within_range(
    people: list[tuple[tuple[int, int], tuple[int, int]]], data: st.DataObject
) -> None:
    legs = placed((float(x), float(y)) for (x, y), _ in people)
    legs["vx"], legs["vy"] = np.array([velocity for _, velocity in people], float).T
    engine = RadioEngine(wifi_b(), legs, seed=1)
    profile = engine.profile
    for second in (0, 1, 5, 6, 30):
        sender = data.draw(st.integers(0, len(people) - 1))
        if data.draw(st.booleans()):  # somebody is put somewhere else
            legs[data.draw(st.integers(0, len(people) - 1))] = Leg(0, 10**12, *map(float, data.draw(places)))
        start = second * SECOND
        engine.send(sender, BROADCAST, 128, second, start)
        before = engine.statistics().potential_receptions
        heard = {told.node for told in listen(engine, start + 10 * MILLISECOND)[0]}
        on_air = (start + profile.difs_ns) // 1000 * 1e-6
        begun = legs["start"] * 1e-6
        moved = np.minimum(np.maximum(on_air, begun), legs["until"] * 1e-6) - begun
        x, y = legs["x"] + legs["vx"] * moved, legs["y"] + legs["vy"] * moved
        distance = np.hypot(x - x[sender], y - y[sender])
        distance[sender] = math.inf
        sure = heard | {int(node) for node in np.flatnonzero(abs(distance - 88) < 1e-6)}
        assert {int(node) for node in np.flatnonzero(distance < 88)} <= sure
        assert all(distance[node] < 88 + 1e-6 for node in heard)
        edge = int(np.count_nonzero(abs(distance - 205) < 1e-6))
        hearers = engine.statistics().potential_receptions - before
        assert abs(hearers - np.count_nonzero(distance < 205)) <= edge
        listen(engine, start + SECOND - 1)
