"""BYPASS.KOM 6.4.2: gateways at attraction points (E10).

CX-GATEWAY: who comes to an attraction point changes to ATTRACT, and takes part in spreading local events and in passing on what gateways
have; elsewhere there is RADIAL and no radio.  Without gateways the same is CX-AH.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nearcast.experiment.checks import Check, Outcome, Part, at_least, at_most, between, near
from nearcast.experiment.coexistence.plans import EXTENSION, SPREADING
from nearcast.experiment.drawings import boxes_of
from nearcast.experiment.experiment import Drawing, Experiment
from nearcast.experiment.figures.boxes import bars
from nearcast.experiment.gatewaying import CANDIDATES, DELIVERIES, FAIRNESS, GATEWAYS, MOST_DELIVERIES
from nearcast.experiment.hybrid.crowd import DOCUMENTS_GATEWAYS, cellular_download, run_of
from nearcast.experiment.runs import DOCUMENTS_WAY, Run
from nearcast.experiment.values import Value, difference, distance, kilobits, most, number, quotient, recall

SELECTIONS: Final = ("DKC-LEACH", "SKC-LEACH", "CS-WCA")
MECHANISMS: Final[Mapping[str, tuple[Mapping[str, Any], float]]] = {
    "GOSSIP": ({"kind": "GOSSIP", "p": 0.4}, 0.2),
    "UNICAST": ({"kind": "UNICAST"}, 0.4),
    "BROADCAST": ({"kind": "BROADCAST"}, 0.4),
}
"""With the shares of receivers that are gateways: for several hops, and for one (6.4.2)."""

WITHOUT: Final = "without"
"""The run that is the same but for gateways."""

ACKNOWLEDGED: Final = "SKC-LEACH-BROADCAST-acknowledged"
DENSITY: Final = "SKC-LEACH-BROADCAST-density"
SINGLE_HOP: Final = ("UNICAST", "BROADCAST")


def name_of(selection: str, mechanism: str) -> str:
    return f"{selection}-{mechanism}"


COMBINATIONS: Final = tuple(name_of(selection, mechanism) for selection in SELECTIONS for mechanism in MECHANISMS)


def _runs(quick: bool) -> tuple[Run, ...]:
    around = {"transitions": {**DOCUMENTS_WAY, "extension": EXTENSION}, "adhoc": dict(SPREADING)}

    def with_gateways(name: str, selection: str, mechanism: str, more: Mapping[str, Any]) -> Run:
        how, share = MECHANISMS[mechanism]
        told = {"selection": {"kind": selection}, "mechanism": dict(how), "share": share, **more}
        return run_of(name, "cloud", quick=quick, changes={**around, "coexistence.inside": "gateway", "gateways": told})

    return (
        run_of(WITHOUT, "cloud", quick=quick, changes={**around, "coexistence.inside": "augment"}),
        *(
            with_gateways(name_of(selection, mechanism), selection, mechanism, DOCUMENTS_GATEWAYS)
            for selection in SELECTIONS
            for mechanism in MECHANISMS
        ),
        with_gateways(ACKNOWLEDGED, "SKC-LEACH", "BROADCAST", {}),
        with_gateways(DENSITY, "SKC-LEACH", "BROADCAST", {"coverage": 0.95, "reach": "88 m"}),
    )


def saved(run: str) -> Value:
    """Of the cellular download without gateways."""

    def value(outcome: Outcome) -> float | None:
        share = quotient(cellular_download(run), cellular_download(WITHOUT))(outcome)
        return None if share is None else 1.0 - share

    return value


def saved_both_ways(run: str) -> Value:
    """Of both directions: with what is reported and acknowledged."""

    def value(outcome: Outcome) -> float | None:
        both = (kilobits(each, "download", "upload", phase="all") for each in (run, WITHOUT))
        share = quotient(*both)(outcome)
        return None if share is None else 1.0 - share

    return value


def saved_among_candidates(run: str) -> Value:
    """Share of those at points, whom the broker tells of an event, that are no gateways: they need no cellular message.

    Heads, not bytes, and of events with two candidates or more: for one alone nobody is chosen.
    """
    return lambda outcome: 1.0 - outcome[run].numbers[GATEWAYS] / outcome[run].numbers[CANDIDATES]


def _by_combination(value: Any, label: str, title: str) -> Any:
    def draw(outcomes: Sequence[Outcome]) -> Any:
        groups = {
            mechanism: {each: value(name_of(each, mechanism))(outcomes[0]) for each in SELECTIONS}
            for mechanism in MECHANISMS
        }
        return bars(groups, label=label, title=title)

    return draw


def _fairness(run: str) -> Value:
    return number(run, FAIRNESS)


E10: Final = Experiment(
    "bypass-e10",
    "BYPASS.KOM 6.4.2, figures 57 and 58",
    "Gateways at attraction points",
    _runs,
    (
        Check(
            "E10.1",
            "Gateways reduce cellular traffic by up to 64 %",
            "text",
            (
                Part("most of nine combinations", near(0.64, 0.05), most([saved(each) for each in COMBINATIONS])),
            ),
            note="download of all clients, against the same configuration without gateways",
        ),
        Check(
            "E10.2",
            "Every combination saves",
            "text",
            tuple(Part(each, at_least(0.05), saved(each)) for each in COMBINATIONS),
        ),
        Check(
            "E10.3",
            "Among those at points who are concerned, 60 % need no cellular message with one hop, 80 % with several",
            "inferred",
            (
                *(Part(name_of("DKC-LEACH", each), near(0.6, 0.05), saved_among_candidates(name_of("DKC-LEACH", each))) for each in SINGLE_HOP),
                Part("DKC-LEACH-GOSSIP", near(0.8, 0.05), saved_among_candidates("DKC-LEACH-GOSSIP")),
            ),
            note="arithmetic: DKC-LEACH takes exactly k = ceil(|U| k'), which is more than the share where few are concerned",
        ),
        Check(
            "E10.4",
            "Recall with CS-WCA is slightly worse than with the others",
            "text",
            tuple(
                Part(f"{mechanism}: {other} minus CS-WCA", between(0.0, 0.05), difference(recall(name_of(other, mechanism)), recall(name_of("CS-WCA", mechanism))))
                for mechanism in MECHANISMS
                for other in ("DKC-LEACH", "SKC-LEACH")
            ),
        ),
        Check(
            "E10.5",
            "CS-WCA chooses 20 % fewer gateways than SKC-LEACH",
            "text",
            tuple(
                Part(mechanism, near(0.8, 0.1), quotient(number(name_of("CS-WCA", mechanism), GATEWAYS), number(name_of("SKC-LEACH", mechanism), GATEWAYS)), " times")
                for mechanism in SINGLE_HOP
            ),
            note="the radius of its clusters is not in the text",
        ),
        Check(
            "E10.6",
            "With SKC-LEACH, clients get an event up to four times",
            "text",
            (Part("of who hears most", near(4.0, 1.0), number("SKC-LEACH-BROADCAST", MOST_DELIVERIES)),),
            note="copies that a client hears from gateways, mean over events; one hop",
        ),
        Check(
            "E10.7",
            "CS-WCA and SKC-LEACH are slightly fairer",
            "text",
            tuple(
                Part(f"{mechanism}: {each} minus DKC-LEACH", between(0.0, 0.2), difference(_fairness(name_of(each, mechanism)), _fairness(name_of("DKC-LEACH", mechanism))))
                for mechanism in MECHANISMS
                for each in ("CS-WCA", "SKC-LEACH")
            ),
            note="Jain's index of how often each client was chosen",
        ),
        Check(
            "E10.8",
            "UNICAST needs more of the cellular network than BROADCAST",
            "text",
            tuple(
                Part(each, at_least(1.01), quotient(cellular_download(name_of(each, "UNICAST")), cellular_download(name_of(each, "BROADCAST"))), " times")
                for each in SELECTIONS
            ),
            note="relays hold the addresses of those whom they are for",
        ),
        Check(
            "E10.9",
            "With acknowledgement recall is as without gateways, and traffic is still saved",
            "inferred",
            (
                Part("recall, off by", at_most(0.005), distance(recall(ACKNOWLEDGED), recall(WITHOUT))),
                Part("saved, both directions", at_least(0.05), saved_both_ways(ACKNOWLEDGED)),
                Part("by density: recall, off by", at_most(0.005), distance(recall(DENSITY), recall(WITHOUT))),
                Part("by density: saved, both directions", at_least(0.05), saved_both_ways(DENSITY)),
                Part("by density: deliveries, of a share's", at_most(0.95), quotient(number(DENSITY, DELIVERIES), number(ACKNOWLEDGED, DELIVERIES)), " times"),
            ),
            note="ours: the document proposes to count in the density, and has no acknowledgement",
        ),
    ),
    (
        boxes_of({"without": WITHOUT} | {f"{selection.removesuffix('-LEACH')}\n{mechanism}": name_of(selection, mechanism) for selection in SELECTIONS for mechanism in MECHANISMS}),
        Drawing("saved", "Cellular download that gateways save", (WITHOUT, *COMBINATIONS), _by_combination(saved, "share", "Saved of the cellular download without gateways")),
        Drawing("gateways", "Gateways of an event", COMBINATIONS, _by_combination(lambda run: number(run, GATEWAYS), "clients", "Gateways of an event")),
        Drawing("fairness", "How evenly clients serve", COMBINATIONS, _by_combination(_fairness, "Jain's index", "Fairness")),
        Drawing("deliveries", "How often clients hear an event from gateways", COMBINATIONS, _by_combination(lambda run: number(run, DELIVERIES), "copies", "Copies of an event")),
    ),
)  # fmt: skip
