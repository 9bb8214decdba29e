"""How many seconds of a whole scenario one second holds: people who move, phones, networks, mechanisms, records.

The documents' AR game (BYPASS §6.1), by way of the cloud and by radio; and the cloud again with more and more people at equal
density.  Everything is written in Python but for matching and radio; the recorder is at work, its files are not written.
"""

from __future__ import annotations

from typing import Any, Final

from nearcast.benchmark.radio_curves import CROWD, SIDE
from nearcast.benchmark.report import OURSELVES
from nearcast.benchmark.timing import Course
from nearcast.records.writer import RecordWriter
from nearcast.runtime.observers import Observers
from nearcast.scenario.reading import read
from nearcast.scenario.simulation import RecordedRun, rare_collections

SPEED: Final = "simulated_seconds_per_second"
SIZES: Final = (100, 300, 1_000, 3_000, 10_000)
WARM_UP: Final = 5
"""Simulated seconds until everybody has joined and all kernels are compiled."""


class RunningScenario:
    """A run that goes on for as long as it is measured."""

    def __init__(self, name: str, changes: dict[str, Any]) -> None:
        self._scenario = read(name, {**changes, "run.duration": "1 h"})
        self._run: RecordedRun | None = None

    def advance(self, _: int) -> int:
        """One second; the first time, from the start on."""
        seconds = 1
        if self._run is None:
            self._run = RecordedRun(self._scenario, 1, Observers(), RecordWriter(None))
            self._run.begin()
            seconds = WARM_UP
        with rare_collections():
            self._run.advance(seconds)
        return seconds


FROM_HOST_TO_HOST: Final = ("GOSSIP", "FLOODING")


def spread_by(kind: str) -> dict[str, Any]:
    """The AR game from host to host, by that mechanism."""
    return {"adhoc.mechanism": {"kind": kind}}


def games() -> list[Course]:
    """The AR game with 297 clients: by way of the cloud, to those in range, and from host to host."""
    return [
        _course("ar-darmstadt", {}, {"clients": CROWD, "delivery": "cloud"}),
        _course("wifi-broadcast", {}, {"clients": CROWD, "delivery": "broadcast"}),
        *(_course("adhoc", spread_by(kind), {"clients": CROWD, "delivery": kind}) for kind in FROM_HOST_TO_HOST),
    ]


def more_people(*, quick: bool = False) -> list[Course]:
    """More and more clients at equal density, by way of the cloud."""
    found = []
    for clients in SIZES[:3] if quick else SIZES:
        side = round(SIDE * (clients / CROWD) ** 0.5)
        changes = {"clients.number": clients, "world.width": f"{side} m", "world.height": f"{side} m"}
        about = {"clients": clients, "metres": side, "delivery": "cloud", "density": "constant, clients"}
        found.append(_course("rnd-waypoint", changes, about))
    return found


def _course(name: str, changes: dict[str, Any], about: dict[str, Any]) -> Course:
    return Course(OURSELVES, SPEED, "s/s", RunningScenario(name, changes).advance, {"scenario": name, **about})
