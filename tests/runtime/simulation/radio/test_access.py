"""Who may send when: interframe spaces, backoff, acknowledgements, RTS and CTS, queues."""

from itertools import pairwise

import numpy as np
import pytest
from tests.runtime.simulation.radio.stations import (
    MILLISECOND,
    SECOND,
    around_a_sink,
    check_conservation,
    listen,
    on_a_line,
    share_bound,
)

from nearcast.errors import InvalidInput, InvalidTime, UnknownName
from nearcast.runtime.simulation.radio.engine import BROADCAST, Acceptance, Loss, Outcome, RadioEngine
from nearcast.runtime.simulation.radio.profile import RadioProfile, Ranges, wifi_b, wifi_g

HIDDEN = Ranges(reception=88, interference=205, carrier_sense=88)
BOTH = pytest.mark.parametrize("profile", [wifi_b(), wifi_g()])


@BOTH
def test_frames_that_come_during_another_draw_the_same_slot_once_in_a_window(profile: RadioProfile) -> None:
    """Two draws out of 0..CW are equal with probability 1/(CW + 1), and then both frames are lost at the sink."""
    trials = 4000
    engine = RadioEngine(profile, around_a_sink(2), seed=11)
    lost = 0
    for trial in range(trials):
        start = trial * 100 * MILLISECOND
        listen(engine, start - 1) if trial else None
        engine.send(0, BROADCAST, 500, 0, start)
        during = start + profile.broadcast_ns(500) // 2
        engine.advance(during)
        engine.send(1, BROADCAST, 100, 1, during)
        engine.send(2, BROADCAST, 100, 2, during)
        delivered, _ = listen(engine, start + 90 * MILLISECOND)
        heard = sum(told.node == 0 for told in delivered)
        assert heard in {0, 2}
        lost += heard == 0
    expected = 1 / (profile.cw_min + 1)
    assert lost / trials == pytest.approx(expected, abs=share_bound(expected, trials))


@BOTH
def test_backoff_is_uniform_over_the_window(profile: RadioProfile) -> None:
    """One saturated sender: its frames are DIFS and a whole number of slots apart, each number equally often."""
    engine = RadioEngine(profile, on_a_line(0, 10), seed=5)
    engine.add_source(0, 0, MILLISECOND // 10, 10)
    frames = 0
    starts = []
    airtime = profile.broadcast_ns(10)
    while frames < 4000:
        sent = engine.statistics().data_sent
        if sent != frames:
            frames = sent
            starts.append(int(engine._world.air["start"][engine._world.nodes["sending"][0]]))
        engine.advance(min(engine.next_ns, engine.now + MILLISECOND))
    gaps = np.array([later - earlier - airtime - profile.difs_ns for earlier, later in pairwise(starts)])
    assert (gaps % profile.slot_ns == 0).all()
    counts = np.bincount(gaps // profile.slot_ns, minlength=profile.cw_min + 1)
    assert len(counts) == profile.cw_min + 1
    expected = len(gaps) / len(counts)
    # Chi-squared with CW degrees of freedom: mean CW, variance 2 CW; four standard deviations.
    assert ((counts - expected) ** 2 / expected).sum() < profile.cw_min + 4 * (2 * profile.cw_min) ** 0.5


@BOTH
def test_slots_left_over_are_kept_while_the_medium_is_busy(profile: RadioProfile) -> None:
    """Station 2 interrupts the backoff of station 1: it is prolonged by frame, DIFS, and the slot that was cut."""

    def second_start(seed: int, interrupted_after: int | None) -> int:
        engine = RadioEngine(profile, around_a_sink(2), seed=seed)
        engine.send(1, BROADCAST, 100, 1, 0)
        engine.send(1, BROADCAST, 100, 2, 0)
        first_end = listen(engine, profile.difs_ns + profile.broadcast_ns(100))[1][0].time
        if interrupted_after is not None:
            # Handed in a DIFS before it goes on air.
            asked = first_end + interrupted_after
            engine.advance(asked)
            engine.send(2, BROADCAST, 100, 3, asked)
        _, completed = listen(engine, SECOND)
        return next(told.time for told in completed if told.key == 2) - profile.broadcast_ns(100)

    counted = 0
    for seed in range(20):
        undisturbed = second_start(seed, None)
        slots = (undisturbed - 2 * profile.difs_ns - profile.broadcast_ns(100)) // profile.slot_ns
        if slots < 4:
            continue
        counted += 1
        cut = profile.slot_ns // 3
        disturbed = second_start(seed, 2 * profile.slot_ns + cut)
        assert disturbed == undisturbed + profile.broadcast_ns(100) + profile.difs_ns + cut
    assert counted > 5


def test_a_unicast_is_acknowledged_after_sifs() -> None:
    profile = wifi_b()
    engine = RadioEngine(profile, on_a_line(0, 50, 60), seed=1)
    engine.send(0, 1, 128, 7, 0)
    delivered, completed = listen(engine, SECOND)
    arrived = profile.difs_ns + profile.unicast_ns(128)
    assert delivered == [(arrived, 7, 1, 0)]
    assert completed == [(arrived + profile.sifs_ns + profile.ack_ns, 7, 0, Outcome.ACKNOWLEDGED)]
    assert engine.statistics().received == 4  # station 2 overhears both


def test_rts_and_cts_come_before_frames_above_the_threshold() -> None:
    profile = wifi_b(rts_threshold=200)
    engine = RadioEngine(profile, on_a_line(0, 50), seed=1)
    engine.send(0, 1, 200 - profile.frame_bytes(0), 1, 0)
    listen(engine, SECOND)
    assert (engine.statistics().rts_sent, engine.statistics().cts_sent) == (0, 0)
    engine.send(0, 1, 201 - profile.frame_bytes(0), 2, SECOND)
    delivered, _ = listen(engine, 2 * SECOND)
    statistics = engine.statistics()
    assert (statistics.rts_sent, statistics.cts_sent, statistics.data_sent, statistics.ack_sent) == (1, 1, 2, 2)
    lead = profile.difs_ns + profile.rts_ns + profile.sifs_ns + profile.cts_ns + profile.sifs_ns
    assert delivered[0].time == SECOND + lead + profile.unicast_ns(201 - profile.frame_bytes(0))


@pytest.mark.parametrize("rts", [True, False])
def test_a_frame_without_answer_is_repeated_up_to_the_limit(rts: bool) -> None:
    profile = wifi_b(rts_threshold=0 if rts else 65_535, retry_limit=5)
    engine = RadioEngine(profile, on_a_line(0, 150), seed=1)
    engine.send(0, 1, 128, 7, 0)
    delivered, completed = listen(engine, SECOND)
    assert delivered == []
    assert [(told.key, told.other) for told in completed] == [(7, Outcome.RETRIES_EXHAUSTED)]
    statistics = engine.statistics()
    assert (statistics.rts_sent, statistics.data_sent) == ((5, 0) if rts else (0, 5))


def test_the_window_doubles_with_every_failure() -> None:
    profile = wifi_g(retry_limit=20)
    engine = RadioEngine(profile, on_a_line(0, 150), seed=1)
    engine.send(0, 1, 10, 7, 0)
    windows = []
    while engine.advance(engine.next_ns) and engine.statistics().pending:
        windows.append(int(engine._world.nodes["window"][0]))
    assert sorted(set(windows)) == [15, 31, 63, 127, 255, 511, 1023]
    assert windows == sorted(windows)
    assert engine._world.nodes["window"][0] == 15


def test_a_frame_whose_acknowledgement_is_lost_is_delivered_once() -> None:
    # 2 senses neither 0 nor 1, and its broadcasts now and then hide the acknowledgements of 1 from 0.
    profile = wifi_g(HIDDEN, data_rate=6_000_000, retry_limit=50, lifetime_ns=10 * SECOND)
    engine = RadioEngine(profile, on_a_line(0, 85, -95), seed=4)
    engine.add_source(2, 0, 2 * MILLISECOND, 50)
    for key in range(300):
        engine.send(0, 1, 50, key, 0)
    delivered, completed = listen(engine, 5 * SECOND)
    keys = [told.key for told in delivered if told.node == 1]
    assert keys == sorted(set(keys)) == list(range(300))
    assert engine.statistics().duplicates > 0
    assert all(told.other == Outcome.ACKNOWLEDGED for told in completed)


@pytest.mark.parametrize("protected", [True, False])
def test_a_clear_to_send_keeps_hidden_stations_silent(protected: bool) -> None:
    profile = wifi_g(HIDDEN, data_rate=6_000_000, rts_threshold=0 if protected else 65_535)
    engine = RadioEngine(profile, on_a_line(0, 80, 160), seed=1)
    engine.send(0, 1, 1000, 1, 0)
    lead = profile.difs_ns + (profile.rts_ns + profile.cts_ns + 2 * profile.sifs_ns if protected else 0)
    during = lead + profile.unicast_ns(1000) // 2
    engine.advance(during)
    engine.send(2, BROADCAST, 100, 2, during)
    _, completed = listen(engine, 100 * MILLISECOND)
    ended = {told.key: told.time for told in completed}
    exchange = lead + profile.unicast_ns(1000) + profile.sifs_ns + profile.ack_ns
    if protected:
        assert ended[1] == exchange
        assert ended[2] >= exchange + profile.difs_ns + profile.broadcast_ns(100)
    else:
        assert ended[2] < exchange
        assert ended[1] > exchange
        assert engine.statistics(1).losses[Loss.COLLIDED] >= 1


def test_the_silence_after_a_request_is_lifted_if_nothing_follows() -> None:
    profile = wifi_b(rts_threshold=0)
    # 1 is out of reach; 2 overhears the request to it.
    engine = RadioEngine(profile, on_a_line(0, 150, -50), seed=1)
    engine.send(0, 1, 1400, 1, 0)
    during = profile.difs_ns + 100_000
    engine.advance(during)
    engine.send(2, BROADCAST, 10, 2, during)
    _, completed = listen(engine, SECOND)
    ended = next(told.time for told in completed if told.key == 2)
    request = profile.difs_ns + profile.rts_ns
    lifted = 2 * profile.sifs_ns + profile.cts_ns + profile.preamble_ns + 2 * profile.slot_ns
    latest = request + lifted + profile.difs_ns + profile.cw_min * profile.slot_ns + profile.broadcast_ns(10)
    reserved = request + profile.sifs_ns + profile.cts_ns + profile.sifs_ns + profile.unicast_ns(1400)
    assert ended <= latest + profile.rts_ns + profile.difs_ns
    assert latest < reserved + profile.sifs_ns + profile.ack_ns + profile.difs_ns + profile.broadcast_ns(10)


def test_an_unreadable_frame_makes_the_others_wait_for_its_acknowledgement() -> None:
    """EIFS: 0 and 2 collide at 1, whose own frame, queued meanwhile, starts only after SIFS + ACK + DIFS."""
    profile = wifi_g(HIDDEN)
    engine = RadioEngine(profile, on_a_line(0, 80, 160), seed=1)
    engine.send(0, BROADCAST, 1000, 1, 0)
    later = 100_000
    engine.advance(later)
    engine.send(2, BROADCAST, 100, 2, later)
    listen(engine, later + 200_000)
    engine.send(1, BROADCAST, 10, 3, engine.now)
    _, completed = listen(engine, SECOND)
    times = {told.key: told.time for told in completed}
    wait = times[3] - profile.broadcast_ns(10) - times[1]
    assert engine.statistics(1).losses[Loss.COLLIDED] == 1
    assert (wait - profile.eifs_ns) % profile.slot_ns == 0
    assert 0 <= wait - profile.eifs_ns <= profile.cw_min * profile.slot_ns


def test_a_full_queue_drops_the_newest() -> None:
    engine = RadioEngine(wifi_b(queue_frames=3), on_a_line(0, 50), seed=1)
    answers = [engine.send(0, BROADCAST, 128, key, 0) for key in range(5)]
    assert answers == [Acceptance.ACCEPTED, *2 * [Acceptance.QUEUED], *2 * [Acceptance.DROPPED]]
    delivered, _ = listen(engine, SECOND)
    assert [told.key for told in delivered] == [0, 1, 2]
    assert engine.statistics().queue_full == 2


def test_frames_that_waited_too_long_are_not_sent() -> None:
    profile = wifi_b(lifetime_ns=10 * MILLISECOND)
    engine = RadioEngine(profile, on_a_line(0, 50), seed=1)
    for key in range(20):
        engine.send(0, BROADCAST, 128, key, 0)
    _, completed = listen(engine, SECOND)
    outcomes = [told.other for told in completed]
    sent = outcomes.count(Outcome.SENT)
    assert 5 <= sent <= 6  # 1.778 ms and up to 31 slots each
    assert outcomes == sent * [Outcome.SENT] + (20 - sent) * [Outcome.EXPIRED]
    assert engine.send(0, BROADCAST, 128, 99, SECOND) is not Acceptance.DROPPED
    assert [told.other for told in listen(engine, 2 * SECOND)[1]] == [Outcome.SENT]


def test_a_station_that_is_off_takes_nothing() -> None:
    engine = RadioEngine(wifi_b(), on_a_line(0, 50), seed=1)
    engine.power(0, on=False, at_ns=0)
    assert engine.send(0, BROADCAST, 128, 1, 0) is Acceptance.DROPPED
    assert engine.statistics().station_off == 1
    check_conservation(engine.statistics())


def test_saturated_stations_get_equal_shares() -> None:
    senders = 10
    engine = RadioEngine(wifi_g(), around_a_sink(senders), seed=8)
    for node in range(1, senders + 1):
        engine.add_source(node, 1_000 * node, MILLISECOND // 10, 100)
    engine.advance(20 * SECOND)
    shares = np.array([engine.statistics(node).data_sent for node in range(1, senders + 1)], float)
    jain = shares.sum() ** 2 / (senders * (shares**2).sum())
    # Were turns independent, the share of each would be binomial and 1 - Jain's index about 9 / frames: here some 1e-4.
    assert jain > 0.999


def test_a_source_sends_by_itself_and_is_only_counted() -> None:
    engine = RadioEngine(wifi_b(), on_a_line(0, 50, 60), seed=1)
    engine.add_source(0, 5 * MILLISECOND, 100 * MILLISECOND, 128)
    assert engine.advance(SECOND) == SECOND
    assert engine.reports() == ([], [], [])
    statistics = engine.statistics()
    assert statistics.handed_in == statistics.outcomes[Outcome.SENT] == 10
    assert statistics.delivered == 20


def test_everybody_at_once() -> None:
    """Arrays grow while frames are on air: nothing is forgotten; and who sends at the same instant is deaf to the others."""
    stations = 300
    engine = RadioEngine(wifi_b(), around_a_sink(stations - 1), seed=1)
    for node in range(stations):
        for key in range(3):
            engine.send(node, BROADCAST, 128, 3 * node + key, 0)
    end = wifi_b().difs_ns + wifi_b().broadcast_ns(128)
    engine.advance(end - 1)
    losses = engine.statistics().losses
    # Whoever was still listening when the others began missed their preambles.
    assert losses[Loss.BUSY_SENDING] + losses[Loss.PREAMBLE_MISSED] == stations * (stations - 1)
    delivered, completed = listen(engine, 10 * SECOND)
    assert sorted(told.key for told in completed) == list(range(3 * stations))
    assert sum(told.time == end for told in completed) == stations
    assert not [told for told in delivered if told.time == end]
    check_conservation(engine.statistics())


def test_what_cannot_be_is_refused_and_changes_nothing() -> None:
    engine = RadioEngine(wifi_b(), on_a_line(0, 50), seed=1)
    with pytest.raises(UnknownName, match="no station 2"):
        engine.send(2, BROADCAST, 128, 1, 0)
    with pytest.raises(UnknownName, match="no station -2"):
        engine.send(0, -2, 128, 1, 0)
    with pytest.raises(UnknownName, match="no station 7"):
        engine.power(7, on=False, at_ns=0)
    with pytest.raises(InvalidInput, match="to itself"):
        engine.send(0, 0, 128, 1, 0)
    with pytest.raises(InvalidInput, match="4032 bytes"):
        engine.send(0, 1, 4032, 1, 0)
    with pytest.raises(InvalidTime, match="period"):
        engine.add_source(0, 0, 0, 128)
    engine.send(0, BROADCAST, 128, 1, MILLISECOND)
    with pytest.raises(InvalidTime, match="already"):
        engine.send(0, BROADCAST, 128, 1, 0)
    with pytest.raises(InvalidTime, match="advance to it first"):
        engine.send(0, BROADCAST, 128, 1, SECOND)
    with pytest.raises(InvalidTime, match="already"):
        engine.advance(0)
    assert engine.statistics().handed_in == 1
