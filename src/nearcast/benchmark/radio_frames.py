"""The frames of a game from host to host, for a radio alone: who handed in what and when, and where people were.

ns-3 has no such game.  It gets what the game puts on air, and has less to do: nobody moves, and whoever hears a frame does nothing.
"""

from __future__ import annotations

from statistics import mean
from typing import Any

import numpy as np

from nearcast.benchmark.radio_scenario import RadioScenario
from nearcast.records.writer import RecordWriter
from nearcast.runtime.observers import Observers
from nearcast.runtime.simulation.motion import positions
from nearcast.scenario.reading import read
from nearcast.scenario.simulation import RecordedRun


def frames_of(name: str, changes: dict[str, Any], warm_up: float, seconds: float) -> RadioScenario:
    """Of that scenario, all frames of so many seconds after so many others."""
    found: list[tuple[int, str, int]] = []
    observers = Observers()
    observers.analyze("messages", lambda sent, _1, _2, _3, sender, _4, size, *_5: found.append((sent, sender, size)))
    run = RecordedRun(read(name, changes), 1, observers, RecordWriter(None))
    run.begin()
    run.advance(warm_up)
    simulation, motion, radio = run.assembly.simulation, run.assembly.world.motion, run.assembly.radio
    assert radio is not None
    start, nodes = simulation.now(), {client: node for node, client in enumerate(run.assembly.names)}
    x, y = np.zeros(len(motion.table)), np.zeros(len(motion.table))
    positions(motion.table, start, x, y)
    run.advance(seconds)
    # What became of a frame is known later than that it was handed in.
    frames = sorted((sent - start, nodes[sender], size) for sent, sender, size in found if sent >= start)
    times, senders, sizes = zip(*frames, strict=True)
    return RadioScenario(
        radio.profile,
        x[: len(nodes)],
        y[: len(nodes)],
        round(mean(sizes)) - radio.profile.frame_bytes(0),
        seconds,
        np.array(times, np.int64) * 1_000,
        np.array(senders, np.int64),
    )
