"""Saturated stations against Bianchi's model (Performance analysis of the IEEE 802.11 DCF, 2000), solved here.

All senders are equally far from the sink, so that no frame survives a collision by being louder.  The model lets every
station count a busy period as one slot; real ones, and ours, do not, and those who collided wait longer than the others.
Both are worth some per cent (Tinnirello, Bianchi and Xiao, 2010).
"""

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from tests.runtime.simulation.radio.stations import SECOND, around_a_sink, listen

from nearcast.runtime.simulation.radio.engine import BROADCAST, RadioEngine
from nearcast.runtime.simulation.radio.profile import RadioProfile, wifi_b, wifi_g

SIZE = 1000
UNLIMITED: dict[str, Any] = {"queue_frames": 10**6, "lifetime_ns": 10**16, "retry_limit": 10**6}


def chance_to_send(senders: int, window: int, doublings: int) -> float:
    """The fixed point: who collides with probability p doubles the window, and p follows from how often others send."""

    def sending(p: float) -> float:
        return 2 * (1 - 2 * p) / ((1 - 2 * p) * (window + 1) + p * window * (1 - (2 * p) ** doublings))

    low, high = 0.0, 0.999
    for _ in range(100):
        middle = (low + high) / 2 + 1e-15  # not one half, where the form is 0/0
        if 1 - (1 - sending(middle)) ** (senders - 1) > middle:
            low = middle
        else:
            high = middle
    return sending(low)


def modelled(profile: RadioProfile, senders: int, kind: str) -> tuple[float, float]:
    """Frames per second, delivered and sent."""
    window = profile.cw_min + 1
    if kind == "broadcast":
        tau = 2 / (window + 1)
        success = collision = profile.broadcast_ns(SIZE) + profile.difs_ns
    else:
        tau = chance_to_send(senders, window, round(math.log2((profile.cw_max + 1) / window)))
        success = profile.unicast_ns(SIZE) + profile.sifs_ns + profile.ack_ns + profile.difs_ns
        collision = profile.unicast_ns(SIZE) + profile.difs_ns
        if kind == "rts":
            success += profile.rts_ns + profile.cts_ns + 2 * profile.sifs_ns
            collision = profile.rts_ns + profile.difs_ns
    busy = 1 - (1 - tau) ** senders
    alone = senders * tau * (1 - tau) ** (senders - 1)
    mean = (1 - busy) * profile.slot_ns + alone * success + (busy - alone) * collision
    return alone / mean * SECOND, senders * tau / mean * SECOND


def measured(profile: RadioProfile, senders: int, kind: str, sent: float, frames: int = 2000) -> float:
    """Frames per second that reach the sink, while ``sent`` frames per second are sent."""
    horizon = round(frames / sent * SECOND)
    engine = RadioEngine(profile, around_a_sink(senders), seed=senders)
    for node in range(1, senders + 1):
        for key in range(round(1.5 * frames / senders) + 50):
            engine.send(node, BROADCAST if kind == "broadcast" else 0, SIZE, key, 0)
    delivered, _ = listen(engine, horizon)
    assert engine._world.nodes["queued"][1:].all()
    return sum(told.node == 0 for told in delivered) / horizon * SECOND


# Not 20 broadcasters of 802.11g: most of their slots are collisions, and what the model leaves out is worth a third.
@pytest.mark.parametrize(
    ("variety", "kind", "senders"),
    [
        (variety, kind, senders)
        for variety, kind, senders in product((wifi_b, wifi_g), ("broadcast", "basic", "rts"), (1, 2, 5, 10, 20))
        if (variety, kind, senders) != (wifi_g, "broadcast", 20)
    ],
)
def test_saturation_throughput_is_that_of_bianchi(
    variety: Callable[..., RadioProfile], kind: str, senders: int
) -> None:
    profile = variety(**UNLIMITED, rts_threshold=0 if kind == "rts" else 65_535)
    expected, sent = modelled(profile, senders, kind)
    throughput = measured(profile, senders, kind, sent)
    # Four per cent for what the model leaves out, and two standard deviations of the mean of some 2000 turns.
    assert throughput == pytest.approx(expected, rel=0.04 + 2 / (2000 * expected / sent) ** 0.5)


@pytest.mark.parametrize("senders", [10, 20, 50])
def test_saturated_broadcasts_are_as_many_as_counters_that_stand_still_while_the_medium_is_busy(senders: int) -> None:
    """Bianchi's slots without his shortcut: all counters go down in an idle slot, in a busy one those at zero are redrawn."""
    profile = wifi_g(**UNLIMITED)
    random = np.random.default_rng(1)
    counters = random.integers(0, profile.cw_min + 1, senders)
    elapsed = delivered = sent = 0
    for _ in range(40_000):
        ready = counters == 0
        count = int(np.count_nonzero(ready))
        if count:
            counters[ready] = random.integers(0, profile.cw_min + 1, count)
            elapsed += profile.broadcast_ns(SIZE) + profile.difs_ns
        else:
            counters -= 1
            elapsed += profile.slot_ns
        sent += count
        delivered += count == 1
    throughput = measured(profile, senders, "broadcast", sent / elapsed * SECOND, frames=8000)
    expected = delivered / elapsed * SECOND
    # Four standard deviations of the number of frames alone in their slot.
    assert throughput == pytest.approx(expected, rel=4 / (8000 * delivered / sent) ** 0.5)
