"""BYPASS.KOM 6.3.3: a broker tells everybody to spread events another way (E7).

Events go from host to host only; the cellular network carries plans.  As in the text, events from hosts that run another
mechanism are lost, and nobody heals itself: with self-healing, who hears a neighbour does not wait for the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nearcast.dissemination.adhoc.carrier import LOCAL
from nearcast.experiment.adhoc.crowd import MECHANISMS, TARGETS, TIMETABLE, planned, static
from nearcast.experiment.checks import Check, Outcome, Part, at_least, at_most, between, near
from nearcast.experiment.drawings import mechanisms_of, transitions_of, windows_of
from nearcast.experiment.experiment import Drawing, Experiment
from nearcast.experiment.figures.spread import spread_maps
from nearcast.experiment.runs import DOCUMENTS_WAY, Run, scenario
from nearcast.experiment.values import Value, depth, difference, dip, distance, precision, recall

PLANNED: Final[Mapping[str, Any]] = {
    "cellular.enabled": True,
    "delivery.mechanism": "offload",
    "transitions": dict(DOCUMENTS_WAY),
    "adhoc.self_healing": False,
}
QUICK_ENDS: Final = 61.0
DIPS: Final = 0.75
"""A bin belongs to a dip if its recall is below this share of what is usual: nobody is told at once, so that about half of the hosts
understand each other meanwhile."""

VISIBLE: Final = 0.2
"""How deep a dip must be to be seen: 15 events in a bin scatter by half of that."""


def _runs(quick: bool) -> tuple[Run, ...]:
    statics = (static(f"static-{name}", MECHANISMS[name], quick=quick) for name in TIMETABLE)
    return (
        planned("planned", quick=quick, ends=QUICK_ENDS, changes=PLANNED),
        _first("lost", False),
        _first("taken", True),
        *statics,
    )


def _first(name: str, foreign: bool) -> Run:
    """T1 alone, and whether events of hosts that run another mechanism are lost: the same whether quick or not."""
    changes = {
        "run.title": f"GOSSIP to PLAN-B, events of others {name}",
        "run.duration": "20 s",
        "radio.standard": "802.11g",
        "adhoc.mechanism": dict(MECHANISMS["GOSSIP"]),
        "adhoc.transition": [{"at": "8 s", "mechanism": dict(MECHANISMS["PLAN-B"])}],
        "adhoc.foreign": foreign,
    }
    phases = ("GOSSIP", "PLAN-B")
    made = scenario("adhoc", changes | dict(PLANNED))
    return Run(name, made, phases, transitions=True, proxy=LOCAL, window=2.0, settling=2.0)


def _frame(mark: str) -> Value:
    """Milliseconds from the first client that did it to the last."""

    def value(outcome: Outcome) -> float | None:
        found = outcome["planned"].mark(mark)
        return None if found.first is None or found.last is None else 1000.0 * (found.last - found.first)

    return value


def _share(mark: str) -> Value:
    def value(outcome: Outcome) -> float | None:
        followed = outcome["planned"].mark(mark).followed
        return None if followed is None else len(followed.after) / followed.clients

    return value


def _as_static(what: Any) -> tuple[Part, ...]:
    return tuple(
        Part(name, at_most(0.05), distance(what("planned", name), what(f"static-{name}"))) for name in TIMETABLE
    )


E7: Final = Experiment(
    "bypass-e7",
    "BYPASS.KOM 6.3.3, Table 8, figures 50 and 51",
    "A broker tells everybody to spread events another way",
    _runs,
    (
        Check(
            "E7.1",
            "Recall and precision are those of the mechanism in use",
            "text",
            (*_as_static(recall), *(Part(f"precision, {part.name}", part.accepted, part.measure) for part in _as_static(precision))),
            note="compared with runs of one mechanism at other times: people stand elsewhere",
        ),
        Check(
            "E7.2",
            "All clients do it within 50 ms",
            "text",
            (
                *(Part(f"{mark}, first to last", at_most(55.0), _frame(mark), " ms") for mark in TARGETS),
                *(Part(f"{mark}, share of the clients", at_least(0.99), _share(mark)) for mark in TARGETS),
            ),
        ),
        Check(
            "E7.3",
            "At T1, recall drops for about 50 ms",
            "text",
            (
                Part("T1, lower by", at_least(VISIBLE), depth("planned", "T1")),
                Part("T1, for", between(50.0, 150.0), dip("planned", "T1", DIPS), " ms"),
            ),
        ),
        Check(
            "E7.4",
            "At T2, T3 and T4, no drop is clearly visible",
            "text",
            tuple(Part(f"{mark}, lower by", at_most(VISIBLE), depth("planned", mark)) for mark in ("T2", "T3", "T4")),
            note="compared with the mechanism before or after it, whichever finds fewer",
        ),
        Check(
            "E7.5",
            "BROADCAST has a recall of 0.6",
            "text",
            (Part("from T4 on", near(0.6, 0.05), recall("planned", "BROADCAST")),),
        ),
        Check(
            "E7.6",
            "Whoever takes events of other mechanisms, too, sees no drop",
            "inferred",
            (
                Part("T1 alone, lower by", at_most(VISIBLE), depth("taken", "T1")),
                Part("T1 alone, less deep by", at_least(0.05), difference(depth("lost", "T1"), depth("taken", "T1"))),
            ),
            note="the text loses them; here all mechanisms send events in one form",
        ),
    ),
    (
        windows_of("planned"),
        transitions_of({"told by plan": "planned"}),
        transitions_of({"events of others are lost": "lost", "events of others are taken": "taken"}, name="close-up-foreign", of="T1 alone"),
        mechanisms_of("planned"),
        Drawing(
            "spread",
            "Where and when clients did it, after the broker said so",
            ("planned",),
            lambda outcomes: spread_maps({f"{mark}: to {name}": outcomes[0]["planned"].mark(mark) for mark, name in TARGETS.items()}),
        ),
    ),
)  # fmt: skip
