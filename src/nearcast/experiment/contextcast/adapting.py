"""E6 to E9: adaptive propagation (Contextcast 5.4), and what the document only recommends: aggregation in its composites.

A cycle is a second.  Windows of different routers do not begin together here, as they do in the document's simulator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nearcast.experiment.checks import Check, Outcome, Part, at_least, at_most, between
from nearcast.experiment.contextcast.numbers import less, times, total
from nearcast.experiment.experiment import Drawing, Experiment
from nearcast.experiment.figures.lines import lines
from nearcast.experiment.runs import Computed
from nearcast.experiment.values import Value, difference, number, quotient

ROUTERS: Final = {True: 40, False: 500}
CLIENTS: Final = {True: 400, False: 9_000}
WINDOWS: Final = {True: 50, False: 100}
"""t_w, in cycles."""

WARM: Final = {True: 150, False: 1_000}
CYCLES: Final = {True: 75, False: 1_000}
UPDATES: Final = 5.0
NEWEST: Final = 0.8
"""The weight of the newest window (β), where it is not what is looked at; of E6 and E7 it is not in the text."""

INVALIDATED: Final = 0.9
BENEFITS: Final = (1.1, 1.5, 3.0, 6.0, 24.0, 1_000.0)
"""B_th,P of E6: the values are not in the text; with the last one hardly anything is ever told."""

EXAMPLE: Final = 1.5
RATES: Final = (5.0, 7.5, 10.0, 12.5, 15.0)
PROPAGATIONS: Final = ("reference", "adaptive", "merged")

WEIGHTS: Final = (0.5, 0.6, 0.7, 0.8)
LENGTHS: Final = (25, 50, 75, 100)
SWITCH: Final = {True: 200, False: 2_500}
AFTER: Final = {True: 200, False: 2_500}
BIN: Final = 25
"""Cycles in a point of the figures."""


def adapting(
    seed: int,
    *,
    propagation: str,
    above: float,
    newest: float,
    window: float,
    messages: float,
    routers: int,
    clients: int,
    warm: int,
    cycles: int,
    switch: int = 0,
) -> dict[str, float]:
    """Load in so many cycles after others, messages by bins of cycles, and who was missed.

    ``switch``: the cycle after which senders ask for the other half of the attributes.
    """
    from nearcast.overlay.routing.settings import AdaptiveSettings
    from nearcast.scenario.contextcast.attributes import Tastes
    from nearcast.scenario.contextcast.cycles import Cycles, CycleSettings
    from nearcast.scenario.contextcast.network import RouterNetwork
    from nearcast.scenario.contextcast.setups import GROUND, s3
    from nearcast.scenario.contextcast.strategies import Propagation, Strategy

    tastes = (Tastes(switch, 1, 15), Tastes(float("inf"), 16, 30)) if switch else ()
    layout, areas, model, senders = s3(seed, routers, tastes)
    settings = AdaptiveSettings(window=window, newest=newest, propagate_above=above, invalidate_below=INVALIDATED)
    strategy = Strategy(Propagation(propagation), coarse=True, adaptive=settings, domains=model.domains())
    network = RouterNetwork(seed, layout, strategy, GROUND)
    rates = CycleSettings(clients=clients, updates=UPDATES, messages=messages, senders=senders, audited=0.2)
    world = Cycles(network, layout, areas, model, rates)
    network.run(10.0)
    found: dict[str, float] = {}
    start = before = network.load()
    for cycle in range(0, warm + cycles, BIN):
        if cycle == warm:
            start = before
        world.run(BIN)
        load = network.load()
        found[f"messages {cycle}"], found[f"updates {cycle}"] = (load - before).messages, (load - before).updates
        before = load
    load = before - start
    network.run(15.0)  # the last audits
    return found | {
        "updates": load.updates,
        "messages": load.messages,
        "invalidations": load.invalidations,
        "total": load.total,
        "due": world.audit.due,
        "missed": world.audit.missed,
    }


def _run(name: str, quick: bool, **changes: Any) -> Computed:
    arguments: dict[str, Any] = {
        "propagation": "adaptive",
        "above": EXAMPLE,
        "newest": NEWEST,
        "window": float(WINDOWS[quick]),
        "messages": 5.0,
        "routers": ROUTERS[quick],
        "clients": CLIENTS[quick],
        "warm": WARM[quick],
        "cycles": CYCLES[quick],
    }
    arguments |= changes
    work = (arguments["warm"] + arguments["cycles"]) * arguments["messages"]
    return Computed(name, adapting, tuple(arguments.items()), seconds=work / 100)


# E6, E7


def _by_benefit(quick: bool) -> tuple[Computed, ...]:
    reference = _run("reference", quick, propagation="reference", warm=BIN)
    return (reference, *(_run(f"above-{above:g}", quick, above=above) for above in BENEFITS))


def _by_rate(quick: bool) -> tuple[Computed, ...]:
    return tuple(
        _run(
            f"{kind}-{rate:g}", quick, propagation=kind, messages=rate, **({"warm": BIN} if kind == "reference" else {})
        )
        for kind in PROPAGATIONS
        for rate in RATES
    )


def _best(outcome: Outcome) -> float:
    return min(outcome[f"above-{above:g}"].numbers["total"] for above in BENEFITS)


def _best_below_reference(outcome: Outcome) -> float | None:
    return 1.0 - _best(outcome) / outcome["reference"].numbers["total"]


def _worse_than_best(above: float) -> Value:
    return lambda outcome: outcome[f"above-{above:g}"].numbers["total"] / _best(outcome) - 1.0


def _drawn_benefits(outcomes: Sequence[Outcome]) -> Any:
    def of(what: str) -> list[tuple[float, float | None]]:
        return [(above, number(f"above-{above:g}", what)(outcomes[0])) for above in BENEFITS]

    reference = number("reference", "total")(outcomes[0])
    series: dict[str, list[tuple[float, float | None]]] = {
        "updates": of("updates"),
        "messages": of("messages"),
        "both": of("total"),
        "reference, both": [(above, reference) for above in (BENEFITS[0], BENEFITS[-1])],
    }
    return lines(series, x="B_th,P: messages in vain for each update", y="over all links", title="Adaptive propagation")


def _drawn_rates(outcomes: Sequence[Outcome]) -> Any:
    series = {
        kind: [(rate, number(f"{kind}-{rate:g}", "total")(outcomes[0])) for rate in RATES] for kind in PROPAGATIONS
    }
    return lines(series, x="messages in a cycle, with 5 updates", y="over all links", title="Load by rate of messages")


_E6_RUNS: Final = ("reference", *(f"above-{above:g}" for above in BENEFITS))
_E7_RUNS: Final = tuple(f"{kind}-{rate:g}" for kind in PROPAGATIONS for rate in RATES)
_NO_VALUES: Final = "the document gives neither distributions nor the values of B_th,P"

CE6: Final = Experiment(
    name="contextcast-e6",
    document="Contextcast 5.4.2, figure 5.3",
    title="Adaptive propagation: when a composite is worth its updates",
    runs=lambda _quick: (),
    computed=_by_benefit,
    checks=(
        Check(
            "CE6.1",
            "the whole load falls by 42 to 43 %, updates by 87 to 94 %, messages grow by 614 to 709 %",
            "text",
            (
                Part("load below the reference, at best", between(0.2, 0.6), _best_below_reference),
                Part("updates below, B_th,P = 1.5", between(0.8, 0.99), less("above-1.5", "reference", "updates")),
                Part(
                    "messages, times the reference's", between(3.0, 10.0), times("above-1.5", "reference", "messages")
                ),
            ),
            not_checkable=_NO_VALUES,
            note="signs and sizes",
        ),
        Check(
            "CE6.2",
            "too low a threshold brings useless composites, too high a one false positives: the best lies between",
            "text",
            tuple(
                Part(f"B_th,P = {above:g}: more load than the best by", at_least(0.001), _worse_than_best(above))
                for above in (BENEFITS[0], BENEFITS[-1])
            ),
        ),
        Check(
            "CE6.3",
            "invalidations are negligible",
            "text",
            (
                Part(
                    "share of the load",
                    at_most(0.02),
                    quotient(number("above-1.5", "invalidations"), number("above-1.5", "total")),
                ),
            ),
        ),
        Check(
            "CE6.4",
            "nobody is missed",
            "text",
            (
                Part("missed", at_most(0.0), total(_E6_RUNS, "missed")),
                Part("due", at_least(100.0), total(_E6_RUNS, "due")),
            ),
        ),
    ),
    drawings=(Drawing("benefits", "Load by the benefit that a composite must have", _E6_RUNS, _drawn_benefits),),
    seeds=3,
)

CE7: Final = Experiment(
    name="contextcast-e7",
    document="Contextcast 5.4.3, figure 5.4",
    title="Adaptive propagation: more messages; and aggregation in composites",
    runs=lambda _quick: (),
    computed=_by_rate,
    checks=(
        Check(
            "CE7.1",
            "adaptive propagation wins where messages are as many as updates, and loses from 2.5 times as many on",
            "text",
            (
                Part("5 messages: below the reference by", at_least(0.05), less("adaptive-5", "reference-5", "total")),
                Part("12.5 messages: below by", at_most(0.0), less("adaptive-12.5", "reference-12.5", "total")),
                Part("15 messages: below by", at_most(0.0), less("adaptive-15", "reference-15", "total")),
            ),
        ),
        Check(
            "CE7.2",
            "its updates grow with the rate of messages",
            "text",
            (
                Part(
                    "updates with 15 messages, times those with 5",
                    at_least(1.2),
                    times("adaptive-15", "adaptive-5", "updates"),
                ),
            ),
        ),
        Check(
            "CE7.3",
            "with aggregation in composites the load is less still (the document recommends it, and does not try)",
            "inferred",
            tuple(
                Part(
                    f"{rate:g} messages: below adaptive alone by",
                    at_least(0.0),
                    less(f"merged-{rate:g}", f"adaptive-{rate:g}", "total"),
                )
                for rate in RATES
            ),
        ),
        Check(
            "CE7.4",
            "nobody is missed",
            "text",
            (
                Part("missed", at_most(0.0), total(_E7_RUNS, "missed")),
                Part("due", at_least(100.0), total(_E7_RUNS, "due")),
            ),
        ),
    ),
    drawings=(Drawing("rates", "Load by rate of messages", _E7_RUNS, _drawn_rates),),
    seeds=3,
)


# E8, E9


def _switched(name: str, quick: bool, **changes: Any) -> Computed:
    return _run(name, quick, switch=SWITCH[quick], warm=SWITCH[quick], cycles=AFTER[quick], **changes)


def _by_weight(quick: bool) -> tuple[Computed, ...]:
    return tuple(_switched(f"newest-{weight:g}", quick, newest=weight) for weight in WEIGHTS)


def _by_length(quick: bool) -> tuple[Computed, ...]:
    return tuple(_switched(f"window-{length}", quick, window=float(length)) for length in LENGTHS)


def series_of(numbers: Mapping[str, float], what: str = "messages") -> list[tuple[int, float]]:
    found = [(int(name.split()[1]), value) for name, value in numbers.items() if name.startswith(f"{what} ")]
    return sorted(found)


def _level(run: str, where: str) -> Value:
    """Mean messages in a bin: in the quarter before the switch, at most in the quarter after it, and in the last quarter."""

    def value(outcome: Outcome) -> float:
        series = series_of(outcome[run].numbers)
        half = len(series) // 2
        quarter = max(1, half // 4)
        before, after = [each for _, each in series[:half]], [each for _, each in series[half:]]
        if where == "peak":
            return max(after[:quarter])
        chosen = (
            before[-quarter:]
            if where == "before"
            else after[-quarter:]
            if where == "end"
            else after[quarter : 2 * quarter]
        )
        return sum(chosen) / len(chosen)

    return value


def _relative(run: str, than: str, where: str) -> Value:
    """How much more the first has there, of what the second has."""
    more = quotient(_level(run, where), _level(than, where))
    return difference(more, lambda _outcome: 1.0)


def _drawn_series(runs: Sequence[str]) -> Any:
    def draw(outcomes: Sequence[Outcome]) -> Any:
        return lines(
            {run: list(series_of(outcomes[0][run].numbers)) for run in runs},
            x="cycle",
            y="messages in 25 cycles, over all links",
            title="Senders ask for other attributes in the middle",
        )

    return draw


_E8_RUNS: Final = tuple(f"newest-{weight:g}" for weight in WEIGHTS)
_E9_RUNS: Final = tuple(f"window-{length}" for length in LENGTHS)

CE8: Final = Experiment(
    name="contextcast-e8",
    document="Contextcast 5.4.4, figure 5.5",
    title="Adaptive propagation: the weight of the newest window",
    runs=lambda _quick: (),
    computed=_by_weight,
    checks=(
        Check(
            "CE8.1",
            "when senders ask for other attributes there is a sharp peak of messages, then recovery",
            "text",
            (
                *(
                    Part(
                        f"{run}: peak over before", at_least(1.2), quotient(_level(run, "peak"), _level(run, "before"))
                    )
                    for run in (_E8_RUNS[0], _E8_RUNS[-1])
                ),
                *(
                    Part(f"{run}: end over peak", at_most(0.9), quotient(_level(run, "end"), _level(run, "peak")))
                    for run in (_E8_RUNS[0], _E8_RUNS[-1])
                ),
            ),
        ),
        Check(
            "CE8.2",
            "0.8 recovers faster than 0.5, and ends lower",
            "text",
            (
                Part("soon after, 0.8 less 0.5, of 0.5's", at_most(0.0), _relative("newest-0.8", "newest-0.5", "soon")),
                Part("at the end, 0.8 less 0.5, of 0.5's", at_most(0.0), _relative("newest-0.8", "newest-0.5", "end")),
            ),
        ),
        Check(
            "CE8.3",
            "nobody is missed",
            "text",
            (
                Part("missed", at_most(0.0), total(_E8_RUNS, "missed")),
                Part("due", at_least(100.0), total(_E8_RUNS, "due")),
            ),
        ),
    ),
    drawings=(Drawing("weights", "Messages around the switch", _E8_RUNS, _drawn_series(_E8_RUNS)),),
    seeds=3,
)

CE9: Final = Experiment(
    name="contextcast-e9",
    document="Contextcast 5.4.5, figure 5.6",
    title="Adaptive propagation: the length of windows",
    runs=lambda _quick: (),
    computed=_by_length,
    checks=(
        Check(
            "CE9.1",
            "short windows react faster at first",
            "text",
            (Part("soon after, 25 less 100, of 100's", at_most(0.0), _relative("window-25", "window-100", "soon")),),
        ),
        Check(
            "CE9.2",
            "long windows end lower",
            "text",
            (Part("at the end, 100 less 25, of 25's", at_most(0.0), _relative("window-100", "window-25", "end")),),
        ),
        Check(
            "CE9.3",
            "nobody is missed",
            "text",
            (
                Part("missed", at_most(0.0), total(_E9_RUNS, "missed")),
                Part("due", at_least(100.0), total(_E9_RUNS, "due")),
            ),
        ),
    ),
    drawings=(Drawing("windows", "Messages around the switch", _E9_RUNS, _drawn_series(_E9_RUNS)),),
    seeds=3,
)
