"""The curves on which both radios must agree: reception over distance and in crowds, throughput alone and under contention."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import numpy as np

from nearcast.benchmark.radio_scenario import (
    RadioAnswer,
    RadioScenario,
    broadcasts,
    reception,
    single_sender,
    uniform_places,
)
from nearcast.benchmark.report import Measurement
from nearcast.runtime.simulation.radio.profile import Family, RadioProfile, wifi_b, wifi_g

RECEPTION: Final = "reception_ratio"
THROUGHPUT: Final = "throughput_megabits_per_second"
DIFFERENCE: Final = "largest_difference_percentage_points"

PAYLOAD: Final = 128
SIDE: Final = 1300.0
DENSE_SIDE: Final = 300.0
CROWD: Final = 297
"""People in the documents' world of 1,300 × 1,300 m (BYPASS §6.1.1)."""

_DISTANCES: Final = (10, 20, 30, 40, 50, 60, 70, 80, 86, 90, 100, 120, 150, 180, 200, 220)
_UNITS: Final = {RECEPTION: "1", THROUGHPUT: "Mbit/s"}
_NO_RTS: Final = 65_535

Values = list[tuple[dict[str, Any], float]]


class Radio(Protocol):
    """nearcast or ns-3."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def run(self, scenario: RadioScenario, seed: int = 1) -> RadioAnswer: ...


@dataclass(frozen=True, slots=True)
class Probe:
    """One run, and the points of a curve that it gives."""

    scenario: RadioScenario
    read: Callable[[RadioScenario, RadioAnswer], Values]


@dataclass(frozen=True, slots=True)
class Curve:
    name: str
    metric: str
    parameters: dict[str, Any]
    probes: tuple[Probe, ...]

    def measure(self, radio: Radio) -> list[Measurement]:
        found = []
        for probe in self.probes:
            for point, value in probe.read(probe.scenario, radio.run(probe.scenario)):
                about = {"curve": self.name, **self.parameters, **point}
                found.append(Measurement(radio.name, self.metric, _UNITS[self.metric], value, about))
        return found


def curves(*, quick: bool = False) -> list[Curve]:
    """All of them; ``quick`` leaves out the second radio, most crowd sizes and the long runs."""
    slow, fast = ("802.11b", wifi_b()), ("802.11g", wifi_g())
    radios = [slow] if quick else [slow, fast]
    sizes = (25, 100) if quick else (10, 25, 50, 100, 200, CROWD)
    found = [_over_distance(name, profile, 100 if quick else 1_000) for name, profile in radios]
    for name, profile in radios:
        for rate in (10,) if quick else (1, 10):
            found.append(_in_a_crowd(name, profile, SIDE, sizes, rate))
            # Nearly everything arrives in 802.11g, and 297 people who all hear each other take ns-3 half a minute.
            dense = sizes if profile.family is Family.DSSS else sizes[:-1]
            found.append(_in_a_crowd(name, profile, DENSE_SIDE, dense, rate))
    hard_of_hearing = ("802.11b, carrier sense 100 m", _hard_of_hearing(wifi_b()))
    found.append(_in_a_crowd(*hard_of_hearing, SIDE, sizes[-1:], 10))
    rates = [slow] if quick else [slow, fast, ("802.11g at 6 Mbit/s", wifi_g(data_rate=6_000_000))]
    for name, profile in rates:
        for payload in (1_000,) if quick else (PAYLOAD, 1_000):
            found += _unicasts(name, profile, payload, 1.0 if quick else 3.0)
    return found


def differences(ours: Iterable[Measurement], others: Iterable[Measurement]) -> list[Measurement]:
    """Per curve, by how many percentage points its worst point differs; throughput relative to the larger of both."""
    theirs = {_point(row): row.value for row in others}
    worst: dict[str, Measurement] = {}
    for row in ours:
        value = theirs[_point(row)]
        larger = max(row.value, value) if row.metric == THROUGHPUT else 1.0
        difference = 100.0 * abs(row.value - value) / larger if larger else 0.0
        curve = ", ".join(f"{row.parameters[name]}" for name in ("curve", "radio"))
        points = worst[curve].parameters["points"] + 1 if curve in worst else 1
        if curve not in worst or difference > worst[curve].value:
            about = {**row.parameters, "of": row.metric, "nearcast": row.value, "ns-3": value}
        else:
            difference, about = worst[curve].value, worst[curve].parameters
        worst[curve] = Measurement(row.system, DIFFERENCE, "percentage points", difference, {**about, "points": points})
    return list(worst.values())


def _point(row: Measurement) -> tuple[str, str]:
    return row.metric, repr(sorted(row.parameters.items()))


def _hard_of_hearing(profile: RadioProfile) -> RadioProfile:
    """Carrier sense hardly beyond reception: people who collide at a receiver no longer hear each other."""
    return replace(profile, carrier_sense_threshold_dbm=profile.power_at(100.0))


def _over_distance(radio: str, profile: RadioProfile, frames: int) -> Curve:
    scenario = single_sender(profile, _DISTANCES, PAYLOAD, frames)

    def read(_: RadioScenario, answer: RadioAnswer) -> Values:
        got = dict(zip(answer.receivers.tolist(), answer.frames.tolist(), strict=True))
        return [({"metres": far}, got.get(node + 1, 0) / frames) for node, far in enumerate(_DISTANCES)]

    return Curve("reception over distance", RECEPTION, {"radio": radio}, (Probe(scenario, read),))


def _in_a_crowd(radio: str, profile: RadioProfile, side: float, sizes: tuple[int, ...], rate: int) -> Curve:
    crowded = rate == 10 and (side == DENSE_SIDE or profile.carrier_sense_range < profile.interference_range - 1.0)

    def read(scenario: RadioScenario, answer: RadioAnswer) -> Values:
        found = reception(scenario, answer)
        values: Values = [({"nodes": len(scenario), "metres": "all"}, found.ratio)]
        if crowded:  # elsewhere next to nothing is lost, and the parts say no more than the whole
            values += [
                ({"nodes": len(scenario), "metres": f"{start:.0f}-{end:.0f}"}, ratio)
                for start, end, ratio in found.by_distance
            ]
        return values

    probes = []
    for nodes in sizes:
        places = uniform_places(nodes, side, seed=nodes)
        probes.append(Probe(broadcasts(profile, places, PAYLOAD, 4.0, rate), read))
    name = f"reception in {side:.0f} x {side:.0f} m, {rate} broadcasts/s each"
    return Curve(name, RECEPTION, {"radio": radio}, tuple(probes))


def _unicasts(radio: str, profile: RadioProfile, payload: int, seconds: float) -> list[Curve]:
    """A pair at several distances, ten in a ring, nine around one, and two that cannot hear each other."""
    pair, ring, star, hidden = [], [], [], []
    for protected in (False, True):
        chosen = replace(profile, rts_threshold=0 if protected else _NO_RTS)
        about = {"rts": protected}
        pair += [
            _saturated(chosen, [0.0, far], [0.0, 0.0], payload, seconds, ((0, 1),), {**about, "metres": far})
            for far in (10.0, 30.0, 45.0, 60.0, 80.0)
        ]
        angle = np.arange(10) * (2 * np.pi / 10)
        around = tuple((node, (node + 1) % 10) for node in range(10))
        ring.append(_saturated(chosen, 20 * np.cos(angle), 20 * np.sin(angle), payload, seconds, around, about))
        x, y = (np.concatenate(([0.0], 20 * turn(angle[:9] * 10 / 9))) for turn in (np.cos, np.sin))
        star.append(_saturated(chosen, x, y, payload, seconds, tuple((node, 0) for node in range(1, 10)), about))
        if profile.data_rate < 54_000_000:  # which reaches 48 m, too near to be hidden from each other
            x, y = np.array([-60.0, 0.0, 60.0]), np.zeros(3)
            hidden.append(_saturated(_hard_of_hearing(chosen), x, y, payload, seconds, ((0, 1), (2, 1)), about))
    named = (("a pair", pair), ("ten in a ring", ring), ("nine to one", star), ("hidden terminals", hidden))
    return [
        Curve(f"throughput of {name}, {payload} B", THROUGHPUT, {"radio": radio}, tuple(probes))
        for name, probes in named
        if probes
    ]


def _saturated(
    profile: RadioProfile,
    x: Any,
    y: Any,
    payload: int,
    seconds: float,
    saturated: tuple[tuple[int, int], ...],
    about: dict[str, Any],
) -> Probe:
    scenario = RadioScenario(
        profile, np.asarray(x, np.float64), np.asarray(y, np.float64), payload, seconds, saturated=saturated
    )
    return Probe(scenario, lambda asked, answer: [(about, answer.megabits_per_second(asked))])
