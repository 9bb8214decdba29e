"""BYPASS.KOM 6.3.2: what goes by way of the cloud, from host to host, or both (E6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nearcast.experiment.checks import Check, Outcome, Part, at_least, at_most, between, near
from nearcast.experiment.drawings import boxes_of
from nearcast.experiment.experiment import Drawing, Experiment
from nearcast.experiment.figures.boxes import bars
from nearcast.experiment.hybrid.crowd import DOCUMENTS_GATEWAYS, cellular_download, run_of
from nearcast.experiment.runs import Run
from nearcast.experiment.values import Value, delay, difference, distance, kilobits, precision, quotient, recall

MODES: Final[Mapping[str, str]] = {
    "AD-HOC": "adhoc",
    "CLOUD": "cloud",
    "OFFLOAD": "offload",
    "AUGMENT": "augment",
    "GATEWAY": "gateway",
}
"""Table 7."""

WORKLOADS: Final = ("AR", "LBS", "RND")
ELSEWHERE: Final = ("LBS", "RND")
VARIANTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "GATEWAY-fifth-AR": {**DOCUMENTS_GATEWAYS, "share": 0.2},
    "GATEWAY-acknowledged-AR": {},
    "GATEWAY-density-AR": {"coverage": 0.95, "reach": "88 m"},
    "GATEWAY-cover-AR": {"selection": {"kind": "SKC-LEACH", "cover": True}},
}
"""Gateways of other numbers, and with what is ours: acknowledgement, as many as the density asks for, and as few as cover all."""

HIGHER: Final = 0.001
"""By so much a recall must be higher than one that it cannot be lower than."""

STREETS: Final = {"model": "streets"}


def _runs(quick: bool) -> tuple[Run, ...]:
    told = {"gateways": dict(DOCUMENTS_GATEWAYS)}
    of_table = (
        run_of(f"{name}-{kind}", mode, quick=quick, kind=kind, changes=told)
        for name, mode in MODES.items()
        for kind in WORKLOADS
    )
    variants = (run_of(name, "gateway", quick=quick, changes={"gateways": dict(how)}) for name, how in VARIANTS.items())
    scattered = (
        run_of(f"{name}-streets", MODES[name], quick=quick, changes={**told, "mobility": STREETS})
        for name in ("CLOUD", "GATEWAY")
    )
    return (*of_table, *variants, *scattered)


def _of_cloud(run: str, cloud: str) -> Value:
    return quotient(cellular_download(run), cellular_download(cloud))


def _traffic(prefix: str) -> Any:
    def draw(outcomes: Sequence[Outcome]) -> Any:
        groups = {
            kind: {name: kilobits(f"{name}-{kind}", prefix, phase="all")(outcomes[0]) for name in MODES}
            for kind in WORKLOADS
        }
        return bars(groups, label="kbit/s", title=f"{prefix.capitalize()} of a client")

    return draw


def _delays(outcomes: Sequence[Outcome]) -> Any:
    groups = {kind: {name: delay(f"{name}-{kind}")(outcomes[0]) for name in MODES} for kind in WORKLOADS}
    return bars(groups, label="ms", title="Mean delay")


_OF_TABLE: Final = tuple(f"{name}-{kind}" for name in MODES for kind in WORKLOADS)

E6: Final = Experiment(
    "bypass-e6",
    "BYPASS.KOM 6.3.2, Table 7, figures 48 and 49; A.3, figure 76",
    "Hybrid modes",
    _runs,
    (
        Check(
            "E6.1",
            "AD HOC has a recall of 0.85 with AR and 0.2 with LBS",
            "text",
            (
                Part("AR", near(0.85, 0.05), recall("AD-HOC-AR")),
                Part("LBS", near(0.2, 0.05), recall("AD-HOC-LBS")),
            ),
            note="absolute values depend on the model of the radio",
        ),
        Check("E6.2", "AD HOC has a precision of 0.7 with AR", "text", (Part("AR", near(0.7, 0.05), precision("AD-HOC-AR")),)),
        Check(
            "E6.3",
            "With CLOUD, events take 200 ms",
            "text",
            tuple(Part(kind, near(200.0, 10.0), delay(f"CLOUD-{kind}"), " ms") for kind in WORKLOADS),
            note="given by the model of the cellular network: 75 to 125 ms each way",
        ),
        Check(
            "E6.4",
            "AUGMENT has a higher recall than CLOUD with AR",
            "text",
            (Part("AUGMENT minus CLOUD", at_least(HIGHER), difference(recall("AUGMENT-AR"), recall("CLOUD-AR"))),),
            note="it cannot be lower: what the radio brings is added to what CLOUD brings",
        ),
        Check(
            "E6.5",
            "GATEWAY needs about 25 % of CLOUD's cellular download",
            "text",
            (
                *(Part(kind, near(0.25, 0.05), _of_cloud(f"GATEWAY-{kind}", f"CLOUD-{kind}"), " times") for kind in WORKLOADS),
                Part("AR, a fifth are gateways", near(0.25, 0.05), _of_cloud("GATEWAY-fifth-AR", "CLOUD-AR"), " times"),
                Part("AR, by density", near(0.25, 0.05), _of_cloud("GATEWAY-density-AR", "CLOUD-AR"), " times"),
            ),
            note="6.4.2 names a share of 0.4 for one hop, and two fifths of the receivers are no quarter; 6.3.2 itself names none",
        ),
        Check(
            "E6.6",
            "Where people are scattered, GATEWAY saves 60 % instead of 75 %",
            "text",
            (
                Part(
                    "saved less by",
                    near(0.15, 0.05),
                    difference(_of_cloud("GATEWAY-streets", "CLOUD-streets"), _of_cloud("GATEWAY-AR", "CLOUD-AR")),
                ),
            ),
        ),
        Check(
            "E6.7",
            "AUGMENT and GATEWAY have a recall of about 0.99",
            "text",
            tuple(Part(name, near(0.99, 0.01), recall(f"{name}-AR")) for name in ("AUGMENT", "GATEWAY")),
        ),
        Check(
            "E6.8",
            "OFFLOAD has a recall of 0.7 to 0.85",
            "text",
            (Part("AR", between(0.7, 0.85), recall("OFFLOAD-AR")),),
        ),
        Check(
            "E6.9",
            "With AR, OFFLOAD leaves nothing to the cloud, and AUGMENT as much as CLOUD has",
            "text",
            (
                Part("OFFLOAD: events by the cloud", at_most(0.0), kilobits("OFFLOAD-AR", "download event", phase="all"), " kbit/s"),
                Part("AUGMENT: cellular download, of CLOUD's", near(1.0, 0.02), _of_cloud("AUGMENT-AR", "CLOUD-AR"), " times"),
            ),
            note="Table 7",
        ),
        Check(
            "E6.10",
            "Events to elsewhere go by the cloud alone: OFFLOAD and AUGMENT are as CLOUD",
            "inferred",
            tuple(
                Part(f"{name}, {kind}: recall, off by", at_most(0.01), distance(recall(f"{name}-{kind}"), recall(f"CLOUD-{kind}")))
                for name in ("OFFLOAD", "AUGMENT")
                for kind in ELSEWHERE
            ),
        ),
        Check(
            "E6.11",
            "With acknowledgement nothing is missed, and less is sent than by CLOUD",
            "inferred",
            (
                Part(
                    "recall, off AUGMENT's by",
                    at_most(0.005),
                    distance(recall("GATEWAY-acknowledged-AR"), recall("AUGMENT-AR")),
                ),
                Part(
                    "cellular traffic both ways, of CLOUD's",
                    at_most(0.9),
                    quotient(
                        kilobits("GATEWAY-acknowledged-AR", "download", "upload", phase="all"),
                        kilobits("CLOUD-AR", "download", "upload", phase="all"),
                    ),
                    " times",
                ),
                Part("only as many as cover all: recall, off by", at_most(0.005), distance(recall("GATEWAY-cover-AR"), recall("AUGMENT-AR"))),
                Part("only as many as cover all: cellular download, of CLOUD's", at_most(0.35), _of_cloud("GATEWAY-cover-AR", "CLOUD-AR"), " times"),
            ),
            note="ours: in the document whom a gateway does not reach is missed",
        ),
    ),
    (
        boxes_of({f"{name}\n{kind}": f"{name}-{kind}" for name in MODES for kind in WORKLOADS}),
        Drawing("download", "Cellular download by workload and mode", _OF_TABLE, _traffic("download")),
        Drawing("upload", "Cellular upload by workload and mode", _OF_TABLE, _traffic("upload")),
        Drawing("ad-hoc-download", "Download by radio, by workload and mode", _OF_TABLE, _traffic("ad hoc download")),
        Drawing("delay", "Mean delay by workload and mode", _OF_TABLE, _delays),
    ),
)  # fmt: skip
