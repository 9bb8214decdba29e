"""Numbers of computed runs that never took place: as STEAM says, and otherwise."""

from __future__ import annotations

from collections.abc import Callable

from nearcast.experiment.checks import Outcome
from nearcast.experiment.measures import Measures, computed
from nearcast.experiment.steam.accuracy import CROWDED, RANGES, WIDE, saved
from nearcast.experiment.steam.cost import AT, SPEEDS
from nearcast.experiment.steam.crowds import PLACEMENTS, PROXIMITIES, SATURATIONS
from nearcast.experiment.steam.intersection import COUNTS, SPEED
from nearcast.experiment.steam.latency import SIZES


def st1(good: bool) -> Outcome:
    def of(scenario: str, saturation: int, speed: float) -> Measures:
        factor = 1.0 if good else (2.0 if scenario == "A" else 1.0) * (1 + speed / 10)
        costs = {f"cost {r}": 1.0 if r <= 200 else 1 + saturation * r / 700 for r in PROXIMITIES}
        if not good:
            costs = dict.fromkeys(costs, factor * 100.0)
        return computed({**costs, "largest difference": 0.0 if good else 5.0})

    found = {f"{it}-{number}": of(it, number, 10.0) for it in "AB" for number in SATURATIONS}
    return found | {f"{it}-{AT}-{speed}": of(it, AT, speed) for it in "AB" for speed in SPEEDS}


def st2(good: bool) -> Outcome:
    def of(metres: float, signals: int, off: float) -> Measures:
        events = {f"events {lane}": off * count * signals * metres / SPEED for lane, count in COUNTS.items()}
        return computed(events | {f"found {lane}": 1.0 if good else 0.5 for lane in COUNTS})

    return {"unfiltered": of(400.0, 2, 1.0 if good else 1.3), "filtered": of(40.0, 1, 1.0 if good else 4.0)}


def st3(good: bool) -> Outcome:
    names = ("raise, types", "raise, subscribers", "deliver, subscriptions")
    numbers = {
        f"{name} {size}: {unit}": 10.0 if good else 10.0 + size
        for name in names
        for size in SIZES
        for unit in ("calls", "microseconds")
    }
    return {"latency": computed({**numbers, "collisions": 0.0 if good else 2.0})}


def st4(good: bool) -> Outcome:
    def of(scenario: str, saturation: int) -> Measures:
        split = scenario in "CDE" and saturation == 60
        chance = (0.8 if split else 0.0) if good else (0.1 if scenario in "CDE" else 0.3)
        shares = {f"unreached {r}": r / 7000 if split and r > 300 else 0.0 for r in RANGES}
        if not good:
            shares = {f"unreached {r}": 0.3 for r in RANGES}
        narrow = dict.fromkeys(("chance 100", "chance 200"), 0.0 if good else 0.1)
        return computed({**shares, **narrow, "chance": chance})

    return {f"{it}-{number}": of(it, number) for it in PLACEMENTS for number in SATURATIONS}


def st5(good: bool) -> Outcome:
    def of(scenario: str) -> Measures:
        less = {f"saved {r}": saved(scenario, r) if good else 0.0 for r in WIDE}
        return computed(less | {f"reached {r}": 1.0 if good else 0.9 for r in WIDE})

    return {f"{it}-{number}": of(it) for it in PLACEMENTS for number in CROWDED}


WORLDS: dict[str, Callable[..., Outcome]] = {
    "steam-st1": st1,
    "steam-st2": st2,
    "steam-st3": st3,
    "steam-st4": st4,
    "steam-st5": st5,
}
