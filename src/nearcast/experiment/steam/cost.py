"""ST1: what it costs to spread an event (STEAM 5.1)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Any, Final

from nearcast.experiment.checks import Check, Outcome, Part, at_most, between, near
from nearcast.experiment.experiment import Drawing, Experiment
from nearcast.experiment.figures.lines import lines
from nearcast.experiment.runs import Computed
from nearcast.experiment.steam.crowds import PROXIMITIES, RANGE, SATURATIONS, Crowd, road
from nearcast.experiment.values import Value

SPEEDS: Final = (0, 10, 20, 30)
"""Metres per second, of the vehicles (A) or of the ambulance (B)."""

AT: Final = 120
"""Saturation at which speeds are compared."""

SPEED: Final = 14.0
DRAWS: Final = {True: 1, False: 20}


def cost(seed: int, *, scenario: str, saturation: int, speed: float, draws: int) -> dict[str, float]:
    """Messages for an event by range of the proximity, with what the closed form says of the same instant; means over draws.

    A: a car has broken down, and the others drive by.  B: an ambulance drives past cars that have stopped.
    """
    random, crowd = Random(f"{seed} {scenario} {saturation} {speed}"), Crowd(seed, saturation)
    found = {f"{what} {radius}": 0.0 for what in ("cost", "closed form") for radius in PROXIMITIES}
    found["largest difference"] = 0.0
    for _ in range(draws):
        places = road(random, saturation)
        ways = [(-speed if y > 0 else speed, 0.0) for _, y in places]
        for radius in PROXIMITIES:
            if scenario == "A":
                crowd.place(places, ways)
            else:
                crowd.place(places, producer=(speed, 0.0))
            spread = crowd.spread(radius, moves=scenario == "B")
            closed = 1 if radius <= RANGE else 1 + spread.connected
            found[f"cost {radius}"] += spread.cost / draws
            found[f"closed form {radius}"] += closed / draws
            found["largest difference"] = max(found["largest difference"], abs(spread.cost - closed))
    return found


def _runs(quick: bool) -> tuple[Computed, ...]:
    def run(name: str, scenario: str, saturation: int, speed: float) -> Computed:
        arguments = ("scenario", scenario), ("saturation", saturation), ("speed", speed), ("draws", DRAWS[quick])
        return Computed(name, cost, arguments, seconds=saturation / 10)

    saturations = [run(f"{it}-{number}", it, number, SPEED) for it in "AB" for number in SATURATIONS]
    speeds = [run(f"{it}-{AT}-{speed}", it, AT, speed) for it in "AB" for speed in SPEEDS]
    return (*saturations, *speeds)


def _mean(runs: Sequence[str], *names: str) -> Value:
    """Mean over these runs of the sum of these numbers."""
    return lambda outcome: sum(outcome[run].numbers[name] for run in runs for name in names) / len(runs)


def _quotient(one: Value, other: Value) -> Value:
    def value(outcome: Outcome) -> float | None:
        a, b = one(outcome), other(outcome)
        return None if a is None or not b else a / b

    return value


def _largest(runs: Sequence[str]) -> Value:
    return lambda outcome: max(outcome[run].numbers["largest difference"] for run in runs)


_COSTS: Final = tuple(f"cost {radius}" for radius in PROXIMITIES)
_WIDE: Final = tuple(f"cost {radius}" for radius in PROXIMITIES if radius > RANGE)
_NARROW: Final = tuple(f"cost {radius}" for radius in PROXIMITIES if radius <= RANGE)
_BY_SATURATION: Final = {it: [f"{it}-{number}" for number in SATURATIONS] for it in "AB"}
_BY_SPEED: Final = {it: [f"{it}-{AT}-{speed}" for speed in SPEEDS] for it in "AB"}
_ALL: Final = [run for runs in (*_BY_SATURATION.values(), *_BY_SPEED.values()) for run in runs]


def _growth(run: str) -> Value:
    """By how much cost rises from one proximity beyond the radio's range to the next, at least."""

    def value(outcome: Outcome) -> float:
        costs = [outcome[run].numbers[name] for name in _WIDE]
        return min(b - a for a, b in pairwise(costs))

    return value


def _drawn(outcomes: Sequence[Outcome]) -> Any:
    series = {
        run: [(radius, outcomes[0][run].numbers[f"cost {radius}"]) for radius in PROXIMITIES]
        for run in (*_BY_SATURATION["A"], *_BY_SATURATION["B"])
    }
    return lines(
        series, x="range of the proximity in metres", y="messages", title="Messages for an event, by saturation"
    )


def _drawn_by_speed(outcomes: Sequence[Outcome]) -> Any:
    series = {
        f"{it}, {radius} m": [
            (speed, outcomes[0][run].numbers[f"cost {radius}"])
            for speed, run in zip(SPEEDS, _BY_SPEED[it], strict=True)
        ]
        for it in "AB"
        for radius in (100, 300, 500, 700)
    }
    return lines(series, x="metres per second", y="messages", title=f"Messages for an event, saturation {AT}")


ST1: Final = Experiment(
    name="steam-st1",
    document="STEAM 5.1",
    title="The cost of spreading an event in a proximity",
    runs=lambda _quick: (),
    computed=_runs,
    checks=(
        Check(
            "ST1.1",
            "C_d = 1 if P_R <= T_R, else 1 + N_CP",
            "text",
            (Part("largest difference", at_most(1.0), _largest(_ALL), " messages"),),
            note="one vehicle may cross the border while the event is on its way",
        ),
        Check(
            "ST1.2",
            "cost steps at 200 m, and then grows with area and saturation",
            "text",
            (
                Part("up to 200 m, all saturations", near(2.0, 0.0), _mean(_BY_SATURATION["A"], *_NARROW), " messages"),
                *(
                    Part(f"growth with each 100 m, {run}", between(1.0, 100.0), _growth(run), " messages")
                    for run in (*_BY_SATURATION["A"], *_BY_SATURATION["B"])
                ),
                *(
                    Part(
                        f"{it}: {more} against {less} vehicles",
                        between(0.8 * more / less, 1.25 * more / less),
                        _quotient(_mean([f"{it}-{more}"], *_WIDE), _mean([f"{it}-{less}"], *_WIDE)),
                        " times",
                    )
                    for it in "AB"
                    for less, more in pairwise(SATURATIONS)
                ),
            ),
        ),
        Check(
            "ST1.3",
            "the stationary service (A) costs what the mobile one (B) costs",
            "text",
            (
                Part(
                    "A against B, mean of all",
                    near(1.0, 0.1),
                    _quotient(_mean(_BY_SATURATION["A"], *_COSTS), _mean(_BY_SATURATION["B"], *_COSTS)),
                    " times",
                ),
            ),
            note="the vehicles are others in A and in B",
        ),
        Check(
            "ST1.4",
            "cost depends neither on the speed of consumers (A) nor on that of the producer (B)",
            "text",
            tuple(
                Part(
                    f"{it}: {SPEEDS[-1]} m/s against standing",
                    near(1.0, 0.15),
                    _quotient(_mean(_BY_SPEED[it][-1:], *_COSTS), _mean(_BY_SPEED[it][:1], *_COSTS)),
                    " times",
                )
                for it in "AB"
            ),
            note="the vehicles are others at each speed; that each cost is 1 + N_CP, whatever the speed, is ST1.1",
        ),
    ),
    drawings=(
        Drawing("cost", "Messages for an event, by range and saturation", tuple(_BY_SATURATION["A"] + _BY_SATURATION["B"]), _drawn),
        Drawing("speed", "Messages for an event, by speed", tuple(_BY_SPEED["A"] + _BY_SPEED["B"]), _drawn_by_speed),
    ),
)  # fmt: skip
