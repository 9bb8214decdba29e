"""E1 to E3: what it costs to tell where people are, more or less exactly (Contextcast 4.5.1).

Of distance-based reporting the document counts the load and not who is missed by it; here both are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from nearcast.experiment.checks import Check, Outcome, Part, at_least, at_most, between, near
from nearcast.experiment.contextcast.numbers import largest_over_smallest, less, times
from nearcast.experiment.experiment import Drawing, Experiment
from nearcast.experiment.figures.lines import lines
from nearcast.experiment.runs import Computed
from nearcast.experiment.values import Value, number, quotient

SAA: Final = "SAA"
ANEW: Final = "-anew"
"""Distance is measured from where somebody registered."""

COUNTS: Final = (1_000, 2_500, 5_000, 7_500, 10_000)
"""People in the document's world; a quick one is smaller and has as many on each square."""

DISTANCES: Final = (20, 50, 100, 250, 500)
COARSENESS_PEOPLE: Final = 5_000
"""Of E3: how many, is not in the text."""

SECONDS: Final = {True: 120.0, False: 300.0}
"""The document's 900 s would be some 700 million hops with a report every 20 m."""

_KINDS: Final = (SAA, *(f"DB{distance}" for distance in DISTANCES))

ROUTERS: Final = {True: 90, False: 1_000}
ACROSS: Final = {True: 6, False: 20}
SETTLING: Final = 15.0


def walking(
    seed: int, *, reporting: str, people: int, routers: int, across: int, seconds: float, audited: float
) -> dict[str, float]:
    """Load of so many seconds, and who was missed."""
    from nearcast.scenario.contextcast.network import RouterNetwork
    from nearcast.scenario.contextcast.setups import ground_of, s1
    from nearcast.scenario.contextcast.strategies import Strategy
    from nearcast.scenario.contextcast.walking import Walking, WalkingSettings

    distance = None if reporting == SAA else float(reporting.removeprefix("DB").removesuffix(ANEW))
    # What is reported is decided where people walk, without a look at each step.
    strategy = Strategy(coarse=distance is None)
    layout, areas = s1(seed, routers, across)
    network = RouterNetwork(seed, layout, strategy, ground_of(across))
    world = Walking(
        network,
        areas,
        WalkingSettings(people=people, reported=distance, anew=reporting.endswith(ANEW), audited=audited),
    )
    network.run(SETTLING)
    before, reports, sent = network.load(), world.reports, world.sent
    network.run(seconds)
    load = network.load() - before
    return {
        "people": people,
        "updates": load.updates / seconds,
        "messages": load.messages / seconds,
        "false positives": load.false_positives / seconds,
        "reports": (world.reports - reports) / seconds,
        "sent": (world.sent - sent) / seconds,
        "due": world.audit.due,
        "missed": world.audit.missed,
        "false negatives": world.audit.false_negatives,
    }


def _run(reporting: str, people: int, quick: bool, name: str, audited: float) -> Computed:
    scale = (ACROSS[quick] / ACROSS[False]) ** 2
    there = round(people * scale)
    arguments = (
        ("reporting", reporting),
        ("people", there),
        ("routers", ROUTERS[quick]),
        ("across", ACROSS[quick]),
        ("seconds", SECONDS[quick]),
        ("audited", audited),
    )
    work = there * ROUTERS[quick] * (8 if reporting == "DB20" else 1)
    return Computed(name, walking, arguments, seconds=work / 1e4)


def _by_clients(quick: bool) -> tuple[Computed, ...]:
    return tuple(
        _run(reporting, people, quick, f"{reporting}-{people}", 0.0)
        for reporting in (SAA, "DB250")
        for people in COUNTS
    )


def _by_coarseness(quick: bool) -> tuple[Computed, ...]:
    return tuple(_run(kind, COARSENESS_PEOPLE, quick, kind, 1.0) for kind in (*_KINDS, f"DB500{ANEW}"))


def _per_person(run: str, what: str) -> Value:
    return quotient(number(run, what), number(run, "people"))


def _break_even(outcome: Outcome) -> float | None:
    """Messages of a person in a second at which service areas cost as much as a report every 500 m."""
    coarse, exact = outcome[SAA].numbers, outcome["DB500"].numbers
    more = coarse["messages"] / coarse["sent"] - exact["messages"] / exact["sent"]
    return (exact["updates"] - coarse["updates"]) / more / coarse["people"] if more > 0 else None


def _drawn(what: str, title: str) -> Any:
    def draw(outcomes: Sequence[Outcome]) -> Any:
        series = {
            reporting: [(people, number(f"{reporting}-{people}", what)(outcomes[0])) for people in COUNTS]
            for reporting in (SAA, "DB250")
        }
        return lines(series, x="people (in the document's world)", y=f"{what} in a second, over all links", title=title)

    return draw


def _drawn_coarseness(outcomes: Sequence[Outcome]) -> Any:
    def of(what: str, factor: float = 1.0) -> list[tuple[float, float | None]]:
        return [(distance, factor * outcomes[0][f"DB{distance}"].numbers[what]) for distance in DISTANCES]

    coarse = outcomes[0][SAA].numbers
    ends = (DISTANCES[0], DISTANCES[-1])
    series: dict[str, list[tuple[float, float | None]]] = {
        "updates, DBn": of("updates"),
        "updates, SAA": [(at, coarse["updates"]) for at in ends],
        "messages, DBn": of("messages"),
        "messages, SAA": [(at, coarse["messages"]) for at in ends],
    }
    return lines(series, x="metres between two reports", y="in a second, over all links", title="Load by coarseness")


def _drawn_missed(outcomes: Sequence[Outcome]) -> Any:
    missed = [(distance, 100 * outcomes[0][f"DB{distance}"].numbers["false negatives"]) for distance in DISTANCES]
    coarse = [(distance, 100 * outcomes[0][SAA].numbers["false negatives"]) for distance in DISTANCES]
    return lines(
        {"DBn": missed, SAA: coarse}, x="metres between two reports", y="% of those due", title="Who is missed"
    )


_RUNS: Final = tuple(f"{reporting}-{people}" for reporting in (SAA, "DB250") for people in COUNTS)

CE1: Final = Experiment(
    name="contextcast-e1",
    document="Contextcast 4.5.1, figure 4.3",
    title="Updates by number of clients",
    runs=lambda _quick: (),
    computed=_by_clients,
    checks=(
        Check(
            "CE1.1",
            "the load of updates is proportional to the number of clients",
            "text",
            tuple(
                Part(
                    f"{reporting}: most updates of a person over fewest",
                    at_most(1.2),
                    largest_over_smallest([_per_person(f"{reporting}-{people}", "updates") for people in COUNTS]),
                )
                for reporting in (SAA, "DB250")
            ),
        ),
    ),
    drawings=(
        Drawing("updates", "Updates by number of clients", _RUNS, _drawn("updates", "Updates by number of clients")),
    ),
    seeds=3,
)

CE2: Final = Experiment(
    name="contextcast-e2",
    document="Contextcast 4.5.1, figure 4.4",
    title="Messages by number of clients",
    runs=lambda _quick: (),
    computed=_by_clients,
    checks=(
        Check(
            "CE2.1",
            "the load of messages is roughly proportional to the number of clients",
            "text",
            tuple(
                Part(
                    f"{reporting}: 10,000 people against 5,000",
                    between(1.6, 2.6),
                    times(f"{reporting}-10000", f"{reporting}-5000", "messages"),
                )
                for reporting in (SAA, "DB250")
            ),
        ),
        Check(
            "CE2.2",
            "with few clients it is less: DB250 with 1,000 clients well below a tenth of what it is with 10,000",
            "text",
            (
                Part(
                    "DB250: 1,000 people against 10,000", at_most(0.08), times("DB250-1000", "DB250-10000", "messages")
                ),
            ),
        ),
    ),
    drawings=(
        Drawing(
            "messages", "Messages by number of clients", _RUNS, _drawn("messages", "Messages by number of clients")
        ),
    ),
    seeds=3,
)

CE3: Final = Experiment(
    name="contextcast-e3",
    document="Contextcast 4.5.1, figure 4.5",
    title="Coarseness: distance-based reporting and service areas",
    runs=lambda _quick: (),
    computed=_by_coarseness,
    checks=(
        Check(
            "CE3.1",
            "updates: DB500 89 % below DB20; SAA 24.4 % below DB500 and 91.6 % below DB20",
            "text",
            (
                Part("DB500 below DB20", near(0.89, 0.05), less("DB500", "DB20", "updates")),
                Part("SAA below DB500", near(0.244, 0.1), less(SAA, "DB500", "updates")),
                Part("SAA below DB20", near(0.916, 0.03), less(SAA, "DB20", "updates")),
            ),
            note="distances from the last report of that kind; measured from where somebody registered, SAA is hardly below DB500 (CE3.6)",
        ),
        Check(
            "CE3.2",
            "messages: the same for all DBn; with SAA 56 % more than with DB500",
            "text",
            (
                Part(
                    "DBn: most over fewest",
                    at_most(1.1),
                    largest_over_smallest([number(f"DB{distance}", "messages") for distance in DISTANCES]),
                ),
                Part("SAA against DB500", near(1.56, 0.25), times(SAA, "DB500", "messages")),
            ),
        ),
        Check(
            "CE3.3",
            "about 1,000 updates for each message with DB20, 100 with DB500",
            "text",
            (
                Part("DB20", between(300, 3_000), quotient(number("DB20", "updates"), number("DB20", "messages"))),
                Part("DB500", between(30, 300), quotient(number("DB500", "updates"), number("DB500", "messages"))),
            ),
            note="copies over links of both; a quick world has fewer links, so fewer copies of an update",
        ),
        Check(
            "CE3.4",
            "service areas pay until each client sends more than 5 messages a second",
            "text",
            (Part("messages of a person in a second at break-even", at_least(5.0), _break_even),),
            note="a quick world has fewer links, so fewer copies of an update",
        ),
        Check(
            "CE3.5",
            "with service areas nobody is missed; distance-based reporting misses somebody, which the document never measured",
            "inferred",
            (
                Part("SAA: missed", at_most(0.0), number(SAA, "missed")),
                Part("SAA: due", at_least(100), number(SAA, "due")),
                Part("DB500: share missed", at_least(0.01), number("DB500", "false negatives")),
                Part(
                    "DB500 against DB20: times as many",
                    at_least(2.0),
                    times("DB500", "DB20", "false negatives"),
                ),
            ),
            note="of those who were registered for ten seconds before and after",
        ),
        Check(
            "CE3.6",
            "if distance were measured from where somebody registered, DB500 would cost as much as SAA",
            "inferred",
            (Part("SAA below that DB500", between(-0.02, 0.1), less(SAA, f"DB500{ANEW}", "updates")),),
            note="ours: which of the two the document means is not in the text; its figures fit the first only",
        ),
    ),
    drawings=(
        Drawing("load", "Updates and messages by coarseness", _KINDS, _drawn_coarseness),
        Drawing("missed", "False negatives of distance-based reporting", _KINDS, _drawn_missed),
    ),
    seeds=3,
)
