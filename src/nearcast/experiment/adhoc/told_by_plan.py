"""BYPASS.KOM 6.3.3: a broker tells everybody to spread events another way (E7).

Events go from host to host only; the cellular network carries plans.  As in the text, events from hosts that run another
mechanism are lost, and nobody heals itself: with self-healing, who hears a neighbour does not wait for the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nearcast.dissemination.adhoc.carrier import LOCAL
from nearcast.experiment.adhoc.crowd import MECHANISMS, STANDARD, TARGETS, TIMETABLE, planned, static
from nearcast.experiment.checks import Check, Outcome, Part, at_least, at_most, between, near
from nearcast.experiment.drawings import mechanisms_of, transitions_of, windows_of
from nearcast.experiment.experiment import Drawing, Experiment
from nearcast.experiment.figures.spread import spread_maps
from nearcast.experiment.plans import transition_times
from nearcast.experiment.runs import DOCUMENTS_WAY, Run, scenario
from nearcast.experiment.values import Value, depth, difference, dip, distance, precision, recall, recall_around

PLANNED: Final[Mapping[str, Any]] = {
    "cellular.enabled": True,
    "delivery.mechanism": "offload",
    "transitions": dict(DOCUMENTS_WAY),
    "adhoc.self_healing": False,
}
QUICK: Final = (12.0, 24.0, 36.0, 48.0, 61.0)
"""Seconds: no transition sooner after the one before than they are looked at closely."""

DIPS: Final = 0.75
"""A bin belongs to a dip if its recall is below this share of what is usual: nobody is told at once, so that about half of the hosts
understand each other meanwhile."""

VISIBLE: Final = 0.2
"""How deep a dip must be to be seen: 15 events in a bin scatter by half of that."""


def _runs(quick: bool) -> tuple[Run, ...]:
    statics = (static(f"static-{name}", MECHANISMS[name], quick=quick) for name in TIMETABLE)
    return (planned("planned", quick=QUICK if quick else (), changes=PLANNED), _taken(quick), *statics)


def _taken(quick: bool) -> Run:
    """The same up to T1, and nothing else after it; events of hosts that run another mechanism are taken."""
    at = QUICK[0] if quick else transition_times(quick)[0]
    changes = {
        "run.title": "taken",
        "run.duration": f"{at + 12:g} s",
        "radio.standard": STANDARD,
        "adhoc.mechanism": dict(MECHANISMS["GOSSIP"]),
        "adhoc.transition": [{"at": f"{at:g} s", "mechanism": dict(MECHANISMS["PLAN-B"])}],
    }
    made = scenario("adhoc", changes | dict(PLANNED))
    return Run("taken", made, TIMETABLE[:2], transitions=True, proxy=LOCAL, window=2.0, settling=2.0)


def _frame(mark: str) -> Value:
    """Milliseconds from the first client that did it to the last."""

    def value(outcome: Outcome) -> float | None:
        found = outcome["planned"].mark(mark)
        return None if found.first is None or found.last is None else 1000.0 * (found.last - found.first)

    return value


def _meanwhile(run: str) -> Value:
    """Recall of what is published while the plan comes in, 75 to 125 ms after it was sent, and in the bins around that."""
    return recall_around(run, "T1", 0.05, 0.15)


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
            note="given by the model of the cellular network: 75 to 125 ms from the broker to a client",
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
            note="compared with the mechanism before or after it, whichever finds fewer; the measure does not see the drop at T1 either (E7.3), so "
            "this excludes deep drops only",
        ),
        Check(
            "E7.5",
            "BROADCAST has a recall of 0.6",
            "text",
            (Part("from T4 on", near(0.6, 0.05), recall("planned", "BROADCAST")),),
        ),
        Check(
            "E7.6",
            "Whoever takes events of other mechanisms, too, gets more of them while clients change",
            "inferred",
            (
                Part("T1, more of the same events arrive while clients change, by", at_least(0.01), difference(_meanwhile("taken"), _meanwhile("planned"))),
            ),
            note="the text loses them; here all mechanisms send events in one form",
        ),
    ),
    (
        windows_of("planned"),
        transitions_of({"told by plan": "planned"}),
        transitions_of({"events of others are taken": "taken", "events of others are lost": "planned"}, name="close-up-taken", of="T1"),
        mechanisms_of("planned"),
        Drawing(
            "spread",
            "Where and when clients did it, after the broker said so",
            ("planned",),
            lambda outcomes: spread_maps({f"{mark}: to {name}": outcomes[0]["planned"].mark(mark) for mark, name in TARGETS.items()}),
        ),
    ),
)  # fmt: skip
