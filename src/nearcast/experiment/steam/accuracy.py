"""ST4 and ST5: whom an event reaches in spite of partitions, and with less forwarding (STEAM 5.4).

Where the entities of a scenario are, the paper shows in a figure only; one placement of them is all it measured.  We place them at
random, many times, and look at chances.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final

from nearcast.experiment.checks import Check, Outcome, Part, at_least, at_most, near
from nearcast.experiment.experiment import Drawing, Experiment
from nearcast.experiment.figures.lines import lines
from nearcast.experiment.runs import Computed
from nearcast.experiment.steam.crowds import PLACEMENTS, RANGE, SATURATIONS, SETTINGS, Crowd
from nearcast.experiment.values import Value

IDLE: Final = 0.2
"""The share of entities that pass nothing on."""

GOSSIP: Final = 0.8
CROWDED: Final = tuple(number for number in SATURATIONS if number > 60)
FLAT: Final = "AB"
"""Scenarios on a road; the others spread over an area, of which C is two roads."""

RANGES: Final = (100, 200, 300, 500, 700)
WIDE: Final = tuple(radius for radius in RANGES if radius > RANGE)
PLACES: Final = {True: 240, False: 3_600}
"""Consumers that are placed in all, for each scenario and saturation: a large crowd takes long, and chance matters less in it."""

GOSSIP_DRAWS: Final = {True: 1, False: 20}


def partitions(seed: int, *, scenario: str, saturation: int, draws: int) -> dict[str, float]:
    """By range: the chance that somebody in the proximity is not reached, and the share that is not."""
    random = Random(f"{seed} {scenario} {saturation}")
    crowd = Crowd(random.getrandbits(32), saturation, idle=round(IDLE * saturation))
    found = {f"{what} {radius}": 0.0 for what in ("chance", "unreached") for radius in RANGES}
    for _ in range(draws):
        places = PLACEMENTS[scenario](random, saturation)
        random.shuffle(places)  # so that anybody may be idle
        crowd.place(places)
        for radius in RANGES:
            spread = crowd.spread(radius, moves=scenario == "B")
            found[f"chance {radius}"] += (spread.reached < spread.inside) / draws
            found[f"unreached {radius}"] += (1.0 - spread.reached / spread.inside if spread.inside else 0.0) / draws
    found["chance"] = sum(found[f"chance {radius}"] for radius in WIDE) / len(WIDE)
    return found


def gossip(seed: int, *, scenario: str, saturation: int, draws: int) -> dict[str, float]:
    """By range: the share of those reached by flooding that gossip reaches, and the share of messages that it saves."""
    random = Random(f"{seed} {scenario} {saturation}")
    # Seeds of their own: else devices of one name would toss the same coins in all runs.
    first, second = random.getrandbits(32), random.getrandbits(32)
    flooding, gossiping = Crowd(first, saturation), Crowd(second, saturation, replace(SETTINGS, gossip=GOSSIP))
    found = {f"{what} {radius}": 0.0 for what in ("reached", "saved") for radius in WIDE}
    for _ in range(draws):
        places = PLACEMENTS[scenario](random, saturation)
        for crowd in (flooding, gossiping):
            crowd.place(places)
        for radius in WIDE:
            most, less = (crowd.spread(radius, moves=scenario == "B") for crowd in (flooding, gossiping))
            found[f"reached {radius}"] += (less.reached / most.reached if most.reached else 1.0) / draws
            found[f"saved {radius}"] += (1.0 - less.cost / most.cost) / draws
    return found


def saved(scenario: str, radius: float) -> float:
    """What geometry says: the share of consumers beyond the producer's range, on roads or in an area, times 1 - p."""
    beyond = 1.0 - (RANGE / radius) ** (1 if scenario in "ABC" else 2)
    return (1.0 - GOSSIP) * beyond


def _run(kind: Any, scenario: str, saturation: int, draws: int) -> Computed:
    arguments = ("scenario", scenario), ("saturation", saturation), ("draws", draws)
    return Computed(f"{scenario}-{saturation}", kind, arguments, seconds=saturation / 10)


def _partition_runs(quick: bool) -> tuple[Computed, ...]:
    return tuple(_run(partitions, it, number, PLACES[quick] // number) for it in PLACEMENTS for number in SATURATIONS)


def _gossip_runs(quick: bool) -> tuple[Computed, ...]:
    return tuple(_run(gossip, it, number, GOSSIP_DRAWS[quick]) for it in PLACEMENTS for number in CROWDED)


def _chance(scenario: str, saturation: int) -> Value:
    return lambda outcome: outcome[f"{scenario}-{saturation}"].numbers["chance"]


def _mean(scenarios: str, saturations: Sequence[int], *names: str) -> Value:
    runs = [f"{it}-{number}" for it in scenarios for number in saturations]
    return lambda outcome: sum(outcome[run].numbers[name] for run in runs for name in names) / len(runs) / len(names)


def _fall(scenario: str) -> Value:
    """By how much the chance falls from the lowest saturation to the highest."""

    def value(outcome: Outcome) -> float:
        first, last = (
            outcome[f"{scenario}-{number}"].numbers["chance"] for number in (SATURATIONS[0], SATURATIONS[-1])
        )
        return first - last

    return value


def _later(outcome: Outcome) -> float:
    """How much larger the share that is not reached is at 700 m than at 300 m."""
    shares = [outcome[f"{it}-60"].numbers for it in "CDE"]
    return sum(each["unreached 700"] - each["unreached 300"] for each in shares) / len(shares)


def _unlike(scenario: str) -> Value:
    """By how much what is saved differs from what geometry says; mean of all ranges and saturations."""

    def value(outcome: Outcome) -> float:
        runs = [outcome[f"{scenario}-{number}"].numbers for number in CROWDED]
        off = [numbers[f"saved {radius}"] - saved(scenario, radius) for numbers in runs for radius in WIDE]
        return sum(off) / len(off)

    return value


_SAVED: Final = tuple(f"saved {radius}" for radius in WIDE)


def _drawn(name: str, saturation: int, title: str) -> Any:
    def draw(outcomes: Sequence[Outcome]) -> Any:
        series = {
            it: [(radius, outcomes[0][f"{it}-{saturation}"].numbers[f"{name} {radius}"]) for radius in RANGES]
            for it in PLACEMENTS
        }
        return lines(series, x="range of the proximity in metres", y="share", title=title)

    return draw


def _drawn_saved(outcomes: Sequence[Outcome]) -> Any:
    series = {
        it: [(radius, _mean(it, CROWDED, f"saved {radius}")(outcomes[0])) for radius in WIDE] for it in PLACEMENTS
    }
    series["on a road, by geometry"] = [(radius, saved("A", radius)) for radius in WIDE]
    series["in an area, by geometry"] = [(radius, saved("D", radius)) for radius in WIDE]
    return lines(
        series, x="range of the proximity in metres", y="share of messages", title="Messages that gossip saves"
    )


ST4: Final = Experiment(
    name="steam-st4",
    document="STEAM 5.4",
    title="Partitions: who is not reached when a fifth passes nothing on",
    runs=lambda _quick: (),
    computed=_partition_runs,
    checks=(
        Check(
            "ST4.1",
            "none up to the range of the radio",
            "text",
            (Part("chance, all scenarios", at_most(0.0), _mean("ABCDE", SATURATIONS, "chance 100", "chance 200")),),
        ),
        Check(
            "ST4.2",
            "partitions occur in scenarios C, D, E only",
            "inferred",
            (
                Part("A and B, saturation 60", at_most(0.15), _mean(FLAT, (60,), "chance")),
                Part("A and B, above 60", at_most(0.02), _mean(FLAT, CROWDED, "chance")),
                *(Part(f"{it}, saturation 60", at_least(0.15), _chance(it, 60)) for it in "CDE"),
            ),
            note="the paper has one placement, here are many: on a road, gaps of 200 m are rare at 60, but not impossible",
        ),
        Check(
            "ST4.3",
            "and at saturation 60 only",
            "text",
            tuple(Part(f"{it}: chance at 60 less that at 240", at_least(0.1), _fall(it)) for it in "CDE"),
            not_checkable="the paper measured one placement: players at random are partitioned in many placements at 120, too",
        ),
        Check(
            "ST4.4",
            "and for proximities above 300 m only",
            "text",
            (
                Part("not reached at 300 m, C, D, E at 60", at_most(0.1), _mean("CDE", (60,), "unreached 300")),
                Part("at 700 m less that", at_least(0.02), _later),
            ),
            not_checkable="the paper measured one placement",
        ),
    ),
    drawings=(
        Drawing("chance", "Chance that somebody is not reached, saturation 60", tuple(f"{it}-60" for it in PLACEMENTS),
            _drawn("chance", 60, "Chance of a partition, saturation 60")),
        Drawing("unreached", "Share that is not reached, saturation 60", tuple(f"{it}-60" for it in PLACEMENTS),
            _drawn("unreached", 60, "Entities that are not reached, saturation 60")),
    ),
)  # fmt: skip

ST5: Final = Experiment(
    name="steam-st5",
    document="STEAM 5.4",
    title="Gossip: fewer messages, and still everybody is reached",
    runs=lambda _quick: (),
    computed=_gossip_runs,
    checks=(
        Check(
            "ST5.1",
            "with p = 0.8 beyond 200 m, everybody is reached that flooding reaches",
            "text",
            (
                Part("A, B, C", at_least(0.99), _mean("ABC", CROWDED, *(f"reached {radius}" for radius in WIDE))),
                Part("D, E", at_least(0.97), _mean("DE", CROWDED, *(f"reached {radius}" for radius in WIDE))),
            ),
        ),
        Check(
            "ST5.2",
            "fewer messages are needed",
            "inferred",
            (
                *(Part(f"{it}: saved", at_least(0.05), _mean(it, CROWDED, *_SAVED)) for it in PLACEMENTS),
                *(Part(f"{it}: less what geometry says", near(0.0, 0.03), _unlike(it)) for it in PLACEMENTS),
            ),
            note="how many, the paper shows in a figure; by geometry 0.2 (1 - 200/P) on roads, 0.2 (1 - (200/P)^2) in an area",
        ),
    ),
    drawings=(
        Drawing("saved", "Messages that gossip saves, mean of saturations 120 to 240",
            tuple(f"{it}-{number}" for it in PLACEMENTS for number in CROWDED), _drawn_saved),
    ),
)  # fmt: skip
