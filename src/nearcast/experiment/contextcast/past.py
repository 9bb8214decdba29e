"""E10 to E13: what it costs to find those who were there (Contextcast 6.4.1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import Any, Final

import numpy as np

from nearcast.experiment.checks import Check, Outcome, Part, at_least, at_most, between, near
from nearcast.experiment.contextcast.history import Routers, added_hops, asked, setup
from nearcast.experiment.experiment import Drawing, Experiment
from nearcast.experiment.figures.lines import lines
from nearcast.experiment.runs import Computed
from nearcast.experiment.values import Value
from nearcast.overlay.temporal.messages import FULLY, NOT_AT_ALL

EDGES: Final = (0.05, 0.1, 0.15, 0.2, 0.25)
DEPTHS: Final = {"FCH": FULLY, "PCH2": 2, "PCH3": 3, "PCH4": 4, "SH": NOT_AT_ALL}
ROUTERS: Final = 10_000
MESSAGES: Final = {True: 20, False: 100}
LOADS: Final = {True: 4, False: 10}
"""Messages of which all copies are sent: a thousand times as much work."""

SEEDS: Final = 5
"""The document has 10 runs, of how many messages it does not say."""


def breadth(seed: int, *, edge: float, messages: int, routers: int) -> dict[str, float]:
    """Nodes that a message has to ask."""
    town, random = setup(seed, routers), Random(f"{seed} {edge}")
    return {"nodes": float(np.mean([len(asked(town, random, edge).found) for _ in range(messages)]))}


def consolidation(seed: int, *, edge: float, messages: int, routers: int) -> dict[str, float]:
    """Answers of a message, by how they are collected."""
    town, random = setup(seed, routers), Random(f"{seed} {edge}")
    sent = [asked(town, random, edge) for _ in range(messages)]
    return {
        name: float(np.mean([Routers(town, each, depth, resolving=False).counts.answers for each in sent]))
        for name, depth in DEPTHS.items()
    }


def load(seed: int, *, edge: float, messages: int, routers: int) -> dict[str, float]:
    """All hops of a message: of the question, of answers and of resolutions."""
    town, random = setup(seed, routers), Random(f"{seed} {edge}")
    sent = [asked(town, random, edge) for _ in range(messages)]
    found: dict[str, float] = {}
    for name, depth in DEPTHS.items():
        counts = [Routers(town, each, depth).counts for each in sent]
        found[name] = float(np.mean([each.total for each in counts]))
        found[f"{name} resolved"] = float(np.mean([each.resolved for each in counts]))
    return found


def delay(seed: int, *, edge: float, messages: int, routers: int) -> dict[str, float]:
    """Hops that collecting at the first branching point adds."""
    town, random = setup(seed, routers), Random(f"{seed} {edge}")
    longer = []
    for _ in range(messages):
        message = asked(town, random, edge)
        points = Routers(town, message, FULLY, resolving=False).counts.first_points
        if points and any(message.found.values()):
            longer.append(added_hops(town, message, min(points)))
    return {
        "longer way": float(np.mean([each[0] for each in longer])),
        "later": float(np.mean([each[1] for each in longer])),
    }


def _runs(kind: Any, messages: dict[bool, int]) -> Any:
    def runs(quick: bool) -> tuple[Computed, ...]:
        arguments = ("messages", messages[quick]), ("routers", ROUTERS)
        return tuple(
            Computed(_name(edge), kind, (("edge", edge), *arguments), seconds=100 * edge * edge) for edge in EDGES
        )

    return runs


def _name(edge: float) -> str:
    return f"edge-{edge:g}"


_ALL: Final = tuple(_name(edge) for edge in EDGES)


def _of(edge: float, name: str) -> Value:
    return lambda outcome: outcome[_name(edge)].numbers[name]


def _grows(outcome: Outcome) -> float:
    """The exponent with which the number of nodes grows with the edge."""
    smallest, largest = (outcome[_name(edge)].numbers["nodes"] for edge in (EDGES[0], EDGES[-1]))
    return math.log(largest / smallest) / math.log(EDGES[-1] / EDGES[0])


def _saved(edge: float, name: str, than: str) -> Value:
    """By how much less than another, as a share of that."""

    def value(outcome: Outcome) -> float:
        numbers = outcome[_name(edge)].numbers
        return 1.0 - numbers[name] / numbers[than] if numbers[than] else 0.0

    return value


def _extreme(pick: Any, edges: Sequence[float], pairs: Sequence[tuple[str, str]]) -> Value:
    values = [_saved(edge, name, than) for edge in edges for name, than in pairs]
    return lambda outcome: float(pick(value(outcome) for value in values))


def _resolved_alike(outcome: Outcome) -> float:
    """By how many identities the ways of collecting differ at most."""
    differences = [
        abs(outcome[run].numbers[f"{name} resolved"] - outcome[run].numbers["SH resolved"])
        for run in _ALL
        for name in DEPTHS
    ]
    return max(differences)


def _mean_of(name: str) -> Value:
    return lambda outcome: float(np.mean([outcome[run].numbers[name] for run in _ALL]))


def _drawn(names: Sequence[str], y: str, title: str) -> Any:
    def draw(outcomes: Sequence[Outcome]) -> Any:
        series = {
            name: [(edge, float(np.mean([_of(edge, name)(each) for each in outcomes]))) for edge in EDGES]
            for name in names
        }
        return lines(series, x="edge of the target square", y=y, title=title)

    return draw


_LARGER: Final = EDGES[1:]
_STATED: Final = {"PCH2": (0.35, 0.0293), "PCH3": (0.90, 0.1925), "PCH4": (1.0, 0.5816)}
"""By how much less than FCH, at the smallest and the largest target."""

CE10: Final = Experiment(
    name="contextcast-e10",
    document="Contextcast 6.4.1, figure 6.5",
    title="Nodes that a message to the past has to ask",
    runs=lambda _quick: (),
    computed=_runs(breadth, MESSAGES),
    checks=(
        Check(
            "CE10.1",
            "their number is proportional to the square of the target's edge",
            "text",
            (Part("exponent", near(2.0, 0.2), _grows),),
            note="service areas are points here: with areas of edge s it is (edge + s) squared",
        ),
    ),
    drawings=(Drawing("nodes", "Nodes asked", _ALL, _drawn(["nodes"], "nodes", "Nodes that are asked")),),
    seeds=SEEDS,
)

CE11: Final = Experiment(
    name="contextcast-e11",
    document="Contextcast 6.4.1, figure 6.6",
    title="Messages that collect answers",
    runs=lambda _quick: (),
    computed=_runs(consolidation, MESSAGES),
    checks=tuple(
        Check(
            f"CE11.{number}",
            f"{name} saves {small:.0%} of FCH's messages at edge 0.05, {large:.2%} at 0.25",
            "text",
            (
                Part("at 0.05", near(small, 0.15), _saved(EDGES[0], name, "FCH")),
                Part("at 0.25", near(large, 0.15), _saved(EDGES[-1], name, "FCH")),
            ),
            note="accepted within 15 points: service areas and places of senders are not in the document",
        )
        for number, (name, (small, large)) in enumerate(_STATED.items(), 1)
    ),
    drawings=(
        Drawing("answers", "Answers on their way to who collects them", _ALL,
            _drawn(["FCH", "PCH2", "PCH3", "PCH4"], "messages", "Messages that collect answers")),
    ),
    seeds=SEEDS,
)  # fmt: skip

CE12: Final = Experiment(
    name="contextcast-e12",
    document="Contextcast 6.4.1, figure 6.7",
    title="All messages of a lookup",
    runs=lambda _quick: (),
    computed=_runs(load, LOADS),
    checks=(
        Check(
            "CE12.1",
            "FCH needs 88 to 99 % less than SH",
            "text",
            (
                Part("least saved", between(0.80, 0.95), _extreme(min, EDGES, [("FCH", "SH")])),
                Part("most saved", between(0.95, 1.0), _extreme(max, EDGES, [("FCH", "SH")])),
            ),
        ),
        Check(
            "CE12.2",
            "and 74 to 98 % less than PCHn",
            "text",
            (
                Part("least saved", between(0.6, 0.88), _extreme(min, EDGES, [("FCH", f"PCH{n}") for n in (2, 3, 4)])),
                Part("most saved", between(0.9, 1.0), _extreme(max, EDGES, [("FCH", f"PCH{n}") for n in (2, 3, 4)])),
            ),
        ),
        Check(
            "CE12.3",
            "PCH3 is 50 to 65 % below PCH4, from edge 0.1 on",
            "text",
            (
                Part("least", at_least(0.35), _extreme(min, _LARGER, [("PCH3", "PCH4")])),
                Part("most", between(0.5, 0.8), _extreme(max, _LARGER, [("PCH3", "PCH4")])),
            ),
        ),
        Check(
            "CE12.4",
            "PCH2 is 52 to 82 % below PCH3, from edge 0.1 on",
            "text",
            (
                Part("least", at_least(0.37), _extreme(min, _LARGER, [("PCH2", "PCH3")])),
                Part("most", between(0.52, 0.97), _extreme(max, _LARGER, [("PCH2", "PCH3")])),
            ),
        ),
        Check(
            "CE12.5",
            "at edge 0.05 SH, PCH4 and PCH3 are about the same",
            "text",
            (
                Part("PCH4 below SH", at_most(0.1), _saved(EDGES[0], "PCH4", "SH")),
                Part("PCH3 below SH", at_most(0.2), _saved(EDGES[0], "PCH3", "SH")),
            ),
        ),
        Check(
            "CE12.6",
            "all find the same identities",
            "inferred",
            (Part("largest difference", at_most(0.0), _resolved_alike),),
        ),
    ),
    drawings=(
        Drawing("load", "All messages of a lookup", _ALL,
            _drawn(list(DEPTHS), "messages", "Questions, answers and resolutions, hop by hop")),
    ),
    seeds=SEEDS,
)  # fmt: skip

CE13: Final = Experiment(
    name="contextcast-e13",
    document="Contextcast 6.4.1",
    title="How much later full consolidation is",
    runs=lambda _quick: (),
    computed=_runs(delay, MESSAGES),
    checks=(
        Check(
            "CE13.1",
            "by 5 hops on average",
            "text",
            (Part("hops later, mean of all edges", near(5.0, 2.5), _mean_of("later"), "hops"),),
            note="until the answer from farthest away has come to the first branching point, along the tree",
        ),
    ),
    drawings=(
        Drawing("later", "Hops that full consolidation adds", _ALL,
            _drawn(["later", "longer way"], "hops", "Hops that full consolidation adds")),
    ),
    seeds=SEEDS,
)  # fmt: skip
