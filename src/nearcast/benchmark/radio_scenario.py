"""The same work for both radios: who stands where, who sends what when; and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nearcast.runtime.simulation.radio.profile import RadioProfile

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

NANOSECONDS: Final = 1_000_000_000
DISTANCE_BINS: Final = (0.0, 22.0, 44.0, 66.0, 88.0)
"""Metres; quarters of the reception range."""

JITTER: Final = 0.1
"""Of the period.  Nobody's is exactly the others': two who collide once shall not collide for ever."""


@dataclass(frozen=True, slots=True, eq=False)
class RadioScenario:
    """People who stand still and broadcast at given times, or keep their queues towards one other person filled."""

    profile: RadioProfile
    x: Floats
    y: Floats
    payload: int
    seconds: float
    times: Numbers = field(default_factory=lambda: np.empty(0, np.int64))
    """When somebody hands over a broadcast, in nanoseconds and in this order."""
    senders: Numbers = field(default_factory=lambda: np.empty(0, np.int64))
    saturated: tuple[tuple[int, int], ...] = ()
    """Who always has another unicast for whom."""

    def __len__(self) -> int:
        return len(self.x)

    @property
    def nanoseconds(self) -> int:
        return round(self.seconds * NANOSECONDS)


@dataclass(frozen=True, slots=True, eq=False)
class RadioAnswer:
    """Receiver ``receivers[i]`` got ``frames[i]`` frames of ``senders[i]``; the run took ``spent`` seconds of our time."""

    senders: Numbers
    receivers: Numbers
    frames: Numbers
    spent: float

    def megabits_per_second(self, scenario: RadioScenario) -> float:
        """Payload that arrived."""
        return float(self.frames.sum()) * scenario.payload * 8 / scenario.seconds / 1e6


@dataclass(frozen=True, slots=True)
class Reception:
    """Which part of the frames arrived at those within the reception range: at all of them, and by distance."""

    ratio: float
    by_distance: tuple[tuple[float, float, float], ...]
    """From, to (metres) and the ratio, where anybody is at that distance."""


def broadcasts(
    profile: RadioProfile,
    places: tuple[Floats, Floats],
    payload: int,
    seconds: float,
    rate: float,
    *,
    jitter: float = JITTER,
    quiet: float = 1.0,
    seed: int = 7,
) -> RadioScenario:
    """Everybody broadcasts ``rate`` times a second from a random phase on; ``quiet`` seconds at the end empty the queues."""
    random = np.random.default_rng(seed)
    nodes, period = len(places[0]), NANOSECONDS / rate
    count = int((seconds - quiet) * rate / (1.0 - jitter / 2)) + 1
    gaps = period * (1.0 + jitter * random.uniform(-0.5, 0.5, (nodes, count)))
    gaps[:, 0] = random.uniform(0.0, period, nodes).astype(np.int64)
    times = np.cumsum(gaps, axis=1).astype(np.int64)
    kept = times < (seconds - quiet) * NANOSECONDS
    senders = np.broadcast_to(np.arange(nodes)[:, None], times.shape)[kept]
    order = np.lexsort((senders, times[kept]))
    return RadioScenario(profile, *places, payload, seconds, times[kept][order], senders[order].astype(np.int64))


def single_sender(profile: RadioProfile, distances: Sequence[float], payload: int, frames: int) -> RadioScenario:
    """Node 0 broadcasts every 10 ms; the others stand around it, each at its distance."""
    angle = np.linspace(0.0, 2.0 * np.pi, len(distances), endpoint=False)
    x, y = (np.concatenate(([0.0], np.asarray(distances) * turn)) for turn in (np.cos(angle), np.sin(angle)))
    times = np.arange(frames, dtype=np.int64) * 10_000_000
    return RadioScenario(profile, x, y, payload, frames * 0.01 + 0.1, times, np.zeros(frames, np.int64))


def uniform_places(nodes: int, side: float, seed: int) -> tuple[Floats, Floats]:
    x, y = np.random.default_rng(seed).uniform(0.0, side, (2, nodes))
    return x, y


def distances(scenario: RadioScenario) -> Floats:
    return np.asarray(
        np.hypot(scenario.x[:, None] - scenario.x[None, :], scenario.y[:, None] - scenario.y[None, :]), np.float64
    )


def reception(scenario: RadioScenario, answer: RadioAnswer) -> Reception:
    """Received / (frames × nodes within the range).  A frame that is still waiting at the end counts as not received."""
    apart = distances(scenario)
    near = apart <= scenario.profile.reception_range
    np.fill_diagonal(near, val=False)
    expected = np.bincount(scenario.senders, minlength=len(scenario))[:, None] * near
    received = np.zeros_like(expected)
    received[answer.senders, answer.receivers] = answer.frames

    def ratio(among: Any) -> float:
        return float(received[among].sum() / expected[among].sum())

    parts = []
    for start, end in pairwise(DISTANCE_BINS):
        among = near & (apart >= start) & (apart < end)
        if among.any():
            parts.append((start, end, ratio(among)))
    return Reception(ratio(near) if near.any() else 1.0, tuple(parts))
