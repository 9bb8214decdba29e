"""The same seed means the same run: in any process, and however time is cut."""

import hashlib
import os
import sys
from collections.abc import Iterator
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.child import run_python
from tests.runtime.simulation.radio.stations import MILLISECOND, SECOND, check_conservation, placed

from nearcast.runtime.simulation.motion import Leg, Legs
from nearcast.runtime.simulation.radio.engine import BROADCAST, RadioEngine
from nearcast.runtime.simulation.radio.profile import Ranges, wifi_b, wifi_g

Story = list[tuple[object, ...]]


def crowd(random: Random, stations: int = 12, side: float = 250.0) -> Legs:
    legs = placed((random.uniform(0, side), random.uniform(0, side)) for _ in range(stations))
    for leg in legs:
        leg["vx"], leg["vy"] = random.uniform(-15, 15), random.uniform(-15, 15)
    return legs


def deeds(random: Random, legs: Legs, steps: int) -> Iterator[tuple[int, str, int, int, int]]:
    """Things that hosts do, in the order of time."""
    time = 0
    stations = len(legs)
    for _ in range(steps):
        time += random.choice((0, random.randrange(300_000), random.randrange(20 * MILLISECOND)))
        node = random.randrange(stations)
        kind = random.choices(("broadcast", "unicast", "switch", "move"), (5, 5, 1, 1))[0]
        yield time, kind, node, random.randrange(stations), random.randrange(1, 1500)


def lived(seed: int, cuts: int = 0, steps: int = 150) -> tuple[Story, RadioEngine]:
    """A random life of a crowd; ``cuts`` other than 0 cut time into random pieces besides."""
    random = Random(seed)
    cutter = Random(cuts)
    legs = crowd(random)
    make = random.choice((wifi_b, wifi_g))
    ranges = random.choice((None, Ranges(carrier_sense=100)))
    profile = make(
        ranges,
        rts_threshold=random.choice((0, 400, 65_535)),
        queue_frames=random.choice((2, 500)),
        lifetime_ns=random.choice((5 * MILLISECOND, 500 * MILLISECOND)),
    )
    engine = RadioEngine(profile, legs, seed, report_losses=random.random() < 0.5)
    engine.add_source(0, 1_000, 7 * MILLISECOND, 300)
    on = [True] * len(legs)
    story: Story = []

    def advance(until: int) -> None:
        while True:
            target = until
            if cuts and cutter.random() < 0.7 and until > engine.now:
                target = cutter.randrange(engine.now, until + 1)
            reached = engine.advance(target)
            reports = engine.reports()
            if any(reports):
                story.append((reached, *reports))
            elif reached == until:
                return

    for key, (time, kind, node, other, size) in enumerate(deeds(random, legs, steps)):
        advance(time)
        if kind == "switch":
            on[node] = not on[node]
            engine.power(node, on[node], time)
        elif kind == "move":
            legs[node] = Leg(time // 1000, 10**12, float(size % 250), float(size % 200), float(other - 5), 1.0)
        elif kind == "broadcast" or node == other:
            story.append((time, engine.send(node, BROADCAST, size, key, time)))
        else:
            story.append((time, engine.send(node, other, size, key, time)))
        story.append((time, *engine.reports()))
        check_conservation(engine.statistics())
    advance(engine.now + SECOND)
    return story, engine


@settings(max_examples=30)
@given(st.integers(0, 2**32))
def test_nothing_is_lost_that_is_not_counted(seed: int) -> None:
    _, engine = lived(seed)
    total = engine.statistics()
    check_conservation(total)
    each = [engine.statistics(node) for node in range(12)]
    assert sum(one.received for one in each) == total.received
    assert (
        sum(one.handed_in for one in each)
        == total.handed_in
        == sum(one.pending for one in each)
        + sum(sum(one.outcomes.values()) + one.queue_full + one.station_off for one in each)
    )
    # All is quiet but for the source: nobody hears signals that are over.
    quiet = engine._world.nodes[engine._world.nodes["signals"] == 0]
    assert (quiet["power"] == 0.0).all()
    on_air = sum(engine._world.air["hearers"][slot] for slot in engine._world.nodes["sending"] if slot >= 0)
    assert engine._world.nodes["signals"].sum() == on_air


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.integers(1, 2**32))
def test_how_time_is_cut_makes_no_difference(seed: int, cuts: int) -> None:
    assert lived(seed)[0] == lived(seed, cuts)[0]


def test_seeds_make_a_difference() -> None:
    assert lived(1)[0] != lived(2)[0]


def fingerprint() -> str:
    return hashlib.sha256(repr([lived(seed)[0] for seed in range(5)]).encode()).hexdigest()


def test_another_process_tells_the_same_story() -> None:
    program = "from tests.runtime.simulation.radio.test_determinism import fingerprint; print(fingerprint())"
    other_seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    told = run_python("-c", program, hash_seed=other_seed, PYTHONPATH=os.pathsep.join(["", *sys.path]))
    assert told.strip() == fingerprint()
