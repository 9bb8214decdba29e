"""How many seconds of radio one second of ours holds: beside ns-3 in the documents' world, and alone in growing ones."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from nearcast.benchmark.radio_curves import CROWD, PAYLOAD, SIDE, Radio
from nearcast.benchmark.radio_frames import frames_of
from nearcast.benchmark.radio_ours import OurRadio, SourcesInTheKernel
from nearcast.benchmark.radio_scenario import RadioAnswer, RadioScenario, broadcasts, uniform_places
from nearcast.benchmark.radio_scenarios import FROM_HOST_TO_HOST, WARM_UP, games, more_people, spread_by
from nearcast.benchmark.report import OURSELVES, Measurement
from nearcast.benchmark.timing import Course
from nearcast.runtime.simulation.radio.profile import wifi_b

SPEED: Final = "simulated_seconds_per_second"
FRAME: Final = "microseconds_per_frame"
BY_THE_KERNEL: Final = "by the kernel"
BY_PYTHON: Final = "by Python, one by one"
BY_CPP: Final = "by C++"
_SIZES: Final = (100, 300, 1_000, 3_000, 10_000)


@dataclass(eq=False)
class RadioCourse(Course):
    """A course that measures itself: of the work of a radio only its run counts, not its set-up.

    ``step`` does the whole run and gives the answer; simulated seconds per second are what is counted.
    """

    step: Callable[[Any], Any]

    def run(self, seconds: float) -> None:
        simulated, spent, started = 0.0, 0.0, time.perf_counter()
        # Small worlds take longer to set up than to run: then fewer runs must do.
        while not simulated or (spent < seconds and time.perf_counter() - started < 3 * seconds):
            answer: RadioAnswer = self.step(self.ready(self.done))
            simulated += self.parameters["seconds"]
            spent += answer.spent
            self.done += 1
            self.parameters["receptions"] = int(answer.frames.sum())
        self.rates.append(simulated / spent)


def courses(peer: Radio | None, *, quick: bool = False) -> list[list[Course]]:
    """Everything whose speed is measured: each list in turns, one list after the other.

    Ten thousand phones fill the caches: what has 297 of them is measured before these are there.
    """
    documents = [*beside(peer, quick=quick), *games(), *frames_of_games(peer, quick=quick)]
    return [documents, growing(quick=quick), more_people(quick=quick)]


def frames_of_games(peer: Radio | None, *, quick: bool = False) -> list[Course]:
    """What the games from host to host put on air, in ns-3; and in nearcast's radio, where it is a part of the game."""
    found: list[Course] = []
    if peer is None:
        return found
    for kind in FROM_HOST_TO_HOST:
        scenario = frames_of("adhoc", spread_by(kind), WARM_UP, 1.0 if quick else 3.0)
        about = {"scenario": "adhoc", "clients": len(scenario), "delivery": kind, "part": "the frames alone"}
        found += [_course(radio, scenario, about) for radio in (OurRadio(), peer)]
    return found


def beside(peer: Radio | None, *, quick: bool = False) -> list[Course]:
    """The documents' world (BYPASS §6.1.1) at their rate of one broadcast a second, and at ten."""
    found: list[Course] = []
    for rate, seconds in ((1, 5.0), (10, 1.0)) if quick else ((1, 10.0), (10, 3.0)):
        scenario = _world(CROWD, SIDE, rate, seconds)
        about = {"metres": SIDE, "broadcasts_per_second": rate}
        found.append(_course(SourcesInTheKernel(), scenario, {**about, "handed_in": BY_THE_KERNEL}))
        found.append(_course(OurRadio(), scenario, {**about, "handed_in": BY_PYTHON}))
        if peer is not None:
            found.append(_course(peer, scenario, {**about, "handed_in": BY_CPP}))
    return found


def growing(*, quick: bool = False) -> list[Course]:
    """Nearcast alone, everybody with as many neighbours as in the documents' world."""
    found: list[Course] = []
    for nodes in _SIZES[:3] if quick else _SIZES:
        side = SIDE * (nodes / CROWD) ** 0.5
        about = {"metres": round(side), "broadcasts_per_second": 1, "density": "constant"}
        found.append(_course(SourcesInTheKernel(), _world(nodes, side, 1, 5.0), about))
    return found


def growth(results: list[Measurement]) -> list[Measurement]:
    """What a frame costs in each of the growing worlds, and how many times as much as in the smallest of them."""
    costs = []
    for row in results:
        if row.metric == SPEED and row.parameters.get("density") == "constant":
            frames_per_second = row.parameters["frames"] / row.parameters["seconds"]
            about = {name: row.parameters[name] for name in ("nodes", "metres", "broadcasts_per_second")}
            costs.append(Measurement(OURSELVES, FRAME, "us", 1e6 / (row.value * frames_per_second), about))
    smallest = costs[0]
    grown = [
        Measurement(
            OURSELVES,
            "growth",
            "1",
            row.value / smallest.value,
            {"nodes": row.parameters["nodes"], "from_nodes": smallest.parameters["nodes"]},
        )
        for row in reversed(costs[1:])
    ]
    return costs + grown


def _world(nodes: int, side: float, rate: int, seconds: float) -> RadioScenario:
    """Strictly periodic, until the end: such sources need no list of what is to come."""
    return broadcasts(wifi_b(), uniform_places(nodes, side, nodes), PAYLOAD, seconds, rate, jitter=0.0, quiet=0.0)


def _course(radio: Radio, scenario: RadioScenario, about: dict[str, Any]) -> Course:
    size = {"nodes": len(scenario), "seconds": scenario.seconds, "frames": len(scenario.times)}
    parameters = {**size, **about, "version": radio.version}
    return RadioCourse(radio.name, SPEED, "s/s", lambda _: radio.run(scenario), parameters)
