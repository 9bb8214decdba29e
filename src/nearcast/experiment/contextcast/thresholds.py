"""E4 and E5: how alike contexts must be to be aggregated (Contextcast 4.5.2).

The document gives neither distributions nor the size of targets, nor how alike two places are; so percentages cannot be
repeated, and signs are checked instead.  Both readings of its similarity of numbers are run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from nearcast.experiment.checks import Accepted, Check, Outcome, Part, at_least, at_most
from nearcast.experiment.contextcast.numbers import less, total
from nearcast.experiment.experiment import Drawing, Experiment
from nearcast.experiment.figures.lines import lines
from nearcast.experiment.runs import Computed
from nearcast.experiment.values import Value, difference, number

THRESHOLDS: Final = (0.5, 0.6, 0.7)
LOWER: Final = (0.3, 0.4)
"""Beyond the document's, in one scenario: where the best lies depends on what is alike, which the document leaves open."""

WIDE: Final = (*LOWER, *THRESHOLDS)
SCENARIOS: Final = {"messages": (5, 1), "balanced": (3, 3), "updates": (1, 5)}
"""Dominated by what: messages and updates in a cycle."""

QUALITY_RATES: Final = (20, 5)
"""Of E5, whose 15,000 updates in 3,000 cycles are 5 in each; more messages than the document's one, for better statistics."""

READINGS: Final = {"literal": "literal", "position": "position_only_for_points"}
ROUTERS: Final = {True: 24, False: 60}
CLIENTS: Final = {True: 400, False: 3_000}
"""For each router 17, or 50: how much aggregation saves depends on how many are alike behind a link.  The document has 400 routers and 2,400
clients, which it lets walk for 3,000 cycles; that would take hours."""

CYCLES: Final = {True: 50, False: 40}

LONG: Final = {True: 225, False: 2_500}
WINDOW: Final = 25
QUALITY: Final = 0.5
"""S_th of E5."""


def aggregating(
    seed: int,
    *,
    threshold: float,
    reading: str,
    messages: float,
    updates: float,
    routers: int,
    clients: int,
    cycles: int,
) -> dict[str, float]:
    """Load in so many cycles, and who was missed; a threshold of 0: the reference."""
    from nearcast.overlay.values.similarity import Reading
    from nearcast.scenario.contextcast.cycles import Cycles, CycleSettings
    from nearcast.scenario.contextcast.network import RouterNetwork
    from nearcast.scenario.contextcast.setups import GROUND, s2
    from nearcast.scenario.contextcast.strategies import Propagation, Strategy

    layout, areas, model = s2(seed, routers)
    strategy = (
        Strategy(
            Propagation.AGGREGATED,
            threshold=threshold,
            reading=Reading(reading),
            by_aggregates=True,
            # The document's similarity is one of intervals; as long as values are listed, each new one is told.
            largest_set=1,
            domains=model.domains(),
        )
        if threshold
        else Strategy(coarse=True)
    )
    network = RouterNetwork(seed, layout, strategy, GROUND)
    settings = CycleSettings(
        clients=clients, updates=updates, messages=messages, senders=tuple(range(routers)), audited=1.0
    )
    world = Cycles(network, layout, areas, model, settings)
    network.run(10.0)
    start = before = network.load()
    found: dict[str, float] = {}
    for window in range(cycles // WINDOW):
        world.run(WINDOW)
        load = network.load()
        found[f"false positives {window}"] = (load - before).false_positives
        before = load
    world.run(cycles % WINDOW)
    load = network.load() - start
    network.run(15.0)  # the last audits
    return found | {
        "updates": load.updates,
        "messages": load.messages,
        "false positives": load.false_positives,
        "total": load.total,
        "due": world.audit.due,
        "missed": world.audit.missed,
    }


def _run(name: str, threshold: float, reading: str, scenario: str, quick: bool, cycles: int) -> Computed:
    messages, updates = SCENARIOS.get(scenario, QUALITY_RATES)
    arguments = (
        ("threshold", threshold),
        ("reading", reading),
        ("messages", float(messages)),
        ("updates", float(updates)),
        ("routers", ROUTERS[quick]),
        ("clients", CLIENTS[quick]),
        ("cycles", cycles),
    )
    return Computed(name, aggregating, arguments, seconds=cycles * (2 + updates))


def _sweep(quick: bool) -> tuple[Computed, ...]:
    runs = [_run(f"reference-{it}", 0.0, "", it, quick, CYCLES[quick]) for it in SCENARIOS]
    for short, reading in READINGS.items():
        runs += [
            _run(f"{short}-{threshold:g}-{it}", threshold, reading, it, quick, CYCLES[quick])
            for threshold in THRESHOLDS
            for it in SCENARIOS
        ]
    runs += [
        _run(f"position-{threshold:g}-balanced", threshold, READINGS["position"], "balanced", quick, CYCLES[quick])
        for threshold in LOWER
    ]
    return tuple(runs)


def _over_time(quick: bool) -> tuple[Computed, ...]:
    return (_run("quality", QUALITY, READINGS["position"], "quality", quick, LONG[quick]),)


def _saved(threshold: float, scenario: str, reading: str = "position", what: str = "updates") -> Value:
    return less(f"{reading}-{threshold:g}-{scenario}", f"reference-{scenario}", what)


def _best_saving(outcome: Outcome) -> float | None:
    """Of the whole load, at the best threshold inside of the wide sweep, more than at its better end."""
    saved = [_saved(threshold, "balanced", what="total")(outcome) for threshold in WIDE]
    known = [each for each in saved if each is not None]
    if len(known) < len(saved):
        return None
    return max(known[1:-1]) - max(known[0], known[-1])


def _more_in_vain(low: float, high: float, scenario: str) -> Value:
    """How many false positives the lower threshold has more, in absolute numbers."""
    return difference(
        number(f"position-{low:g}-{scenario}", "false positives"),
        number(f"position-{high:g}-{scenario}", "false positives"),
    )


def _in_vain_for_saved(scenario: str) -> Value:
    def value(outcome: Outcome) -> float | None:
        ours, reference = outcome[f"position-0.6-{scenario}"].numbers, outcome[f"reference-{scenario}"].numbers
        # Where nothing is saved, one false positive is too many.
        return ours["false positives"] / max(reference["updates"] - ours["updates"], 1.0)

    return value


def _trend(outcome: Outcome) -> float | None:
    """False positives in the last third of the time over those in the second."""
    numbers = outcome["quality"].numbers
    series = [
        numbers[f"false positives {window}"] for window in range(len(numbers)) if f"false positives {window}" in numbers
    ]
    third = len(series) // 3
    middle, last = sum(series[third : 2 * third]), sum(series[2 * third : 3 * third])
    return last / middle if middle else None


def _by_scenario(accepted: Accepted, value: Any, name: str) -> tuple[Part, ...]:
    return tuple(Part(f"{it}: {name}", accepted, value(it)) for it in SCENARIOS)


_NO_NUMBERS: Final = "the document gives neither distributions, nor target sizes, nor the similarity of places"
_AGGREGATED: Final = [
    f"{reading}-{threshold:g}-{it}" for reading in READINGS for threshold in THRESHOLDS for it in SCENARIOS
]


def _drawn(what: str, title: str, y: str) -> Any:
    def value(threshold: float, scenario: str, reading: str) -> Value:
        if what == "false positives":
            return number(f"{reading}-{threshold:g}-{scenario}", what)
        return _saved(threshold, scenario, reading, what)

    def draw(outcomes: Sequence[Outcome]) -> Any:
        series = {
            f"{reading}, {it}": [(threshold, value(threshold, it, reading)(outcomes[0])) for threshold in THRESHOLDS]
            for reading in READINGS
            for it in SCENARIOS
        }
        return lines(series, x="threshold of similarity", y=y, title=title)

    return draw


def _drawn_over_time(outcomes: Sequence[Outcome]) -> Any:
    numbers = outcomes[0]["quality"].numbers
    series = [
        (window * WINDOW, numbers[f"false positives {window}"])
        for window in range(len(numbers))
        if f"false positives {window}" in numbers
    ]
    return lines({"S_th = 0.5": series}, x="cycle", y="in 25 cycles", title="False positives over time")


_ALL: Final = (*(f"reference-{it}" for it in SCENARIOS), *_AGGREGATED)

CE4: Final = Experiment(
    name="contextcast-e4",
    document="Contextcast 4.5.2, figures 4.6 to 4.8",
    title="Aggregation: the threshold of similarity",
    runs=lambda _quick: (),
    computed=_sweep,
    checks=(
        Check(
            "CE4.1",
            "false positives grow by 222 to 337 % from 0.7 to 0.6, by 36 to 70 % from 0.6 to 0.5",
            "text",
            (
                *_by_scenario(at_least(0.0), lambda it: _more_in_vain(0.6, 0.7, it), "more at 0.6 than at 0.7"),
                *_by_scenario(at_least(0.0), lambda it: _more_in_vain(0.5, 0.6, it), "more at 0.5 than at 0.6"),
            ),
            not_checkable=_NO_NUMBERS,
            note="signs only; position counts for numbers",
        ),
        Check(
            "CE4.2",
            "0.6 saves 4.5 to 9.8 times the updates that 0.7 saves, and 0.5 nearly half of what 0.6 does: the best lies between",
            "text",
            (
                *_by_scenario(at_least(0.0), lambda it: _saved(0.6, it), "saved at 0.6"),
                *_by_scenario(
                    at_least(0.0), lambda it: difference(_saved(0.6, it), _saved(0.7, it)), "0.6 saves more than 0.7 by"
                ),
                *_by_scenario(
                    at_least(0.0), lambda it: difference(_saved(0.6, it), _saved(0.5, it)), "0.6 saves more than 0.5 by"
                ),
            ),
            not_checkable=_NO_NUMBERS,
            note="signs and an optimum between 0.5 and 0.7; position counts for numbers",
        ),
        Check(
            "CE4.3",
            "false positives are less than 0.1 % of the updates that are saved",
            "text",
            _by_scenario(at_most(0.001), _in_vain_for_saved, "false positives for each update saved at 0.6"),
            not_checkable=_NO_NUMBERS,
        ),
        Check(
            "CE4.4",
            "the whole load at 0.6 is 18 to 25 % below the reference",
            "text",
            _by_scenario(at_least(0.0), lambda it: _saved(0.6, it, what="total"), "below the reference by"),
            not_checkable=_NO_NUMBERS,
            note="sign only; position counts for numbers",
        ),
        Check(
            "CE4.7",
            "there is a best threshold: below it false positives cost more than updates save",
            "inferred",
            (Part("0.3 to 0.7, balanced: load saved inside more than at the ends", at_least(0.0), _best_saving),),
            note="ours, over a wider sweep than the document's; position counts for numbers",
        ),
        Check(
            "CE4.5",
            "read to the letter, the similarity of exact numbers is at most a third: less is aggregated",
            "inferred",
            _by_scenario(
                at_least(0.0),
                lambda it: difference(_saved(0.6, it), _saved(0.6, it, "literal")),
                "updates saved at 0.6, position less literal",
            ),
            note="ours: both readings",
        ),
        Check(
            "CE4.6",
            "nobody is missed",
            "text",
            (
                Part("missed, all runs", at_most(0.0), total(_ALL, "missed")),
                Part("due, all runs", at_least(100.0), total(_ALL, "due")),
            ),
        ),
    ),
    drawings=(
        Drawing("saved", "Updates that aggregation saves, of those of the reference", _ALL,
            _drawn("updates", "Updates saved", "share of the reference's")),
        Drawing("load", "Load that aggregation saves, of that of the reference", _ALL,
            _drawn("total", "Load saved", "share of the reference's")),
        Drawing("false-positives", "Messages for nobody", _ALL,
            _drawn("false positives", "False positives", "messages")),
    ),
    seeds=3,
)  # fmt: skip

CE5: Final = Experiment(
    name="contextcast-e5",
    document="Contextcast 4.5.2, figure 4.9",
    title="Aggregation over time",
    runs=lambda _quick: (),
    computed=_over_time,
    checks=(
        Check(
            "CE5.1",
            "with S_th = 0.5, false positives do not grow over 3,000 cycles",
            "text",
            (
                Part("last third over the third before it", at_most(1.3), _trend),
                Part("missed", at_most(0.0), number("quality", "missed")),
            ),
        ),
    ),
    drawings=(Drawing("over-time", "False positives in 25 cycles", ("quality",), _drawn_over_time),),
    seeds=3,
)
