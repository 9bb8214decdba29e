"""Constants of HYPERG and PLAN-B are not in the text: whether what it says of them holds for others than ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nearcast.experiment.adhoc.crowd import MECHANISMS, Mechanism, download, static
from nearcast.experiment.checks import Check, Outcome, Part, at_least, at_most
from nearcast.experiment.experiment import Drawing, Experiment
from nearcast.experiment.figures.boxes import bars
from nearcast.experiment.runs import Run
from nearcast.experiment.values import delay, difference, quotient, recall

VARIANTS: Final[Mapping[str, Mapping[str, Mechanism]]] = {
    "HYPERG": {
        "ours": {},
        "2 forwarders": {"forwarders": 2.0},
        "8 forwarders": {"forwarders": 8.0},
        "2 copies": {"copies": 2},
        "6 copies": {"copies": 6},
        "hesitation 50 ms": {"hesitation": "50 ms"},
        "no partitions mended": {"keep": "0 s"},
    },
    "PLAN-B": {
        "ours": {},
        "no hesitation": {"hesitation": "0 s"},
        "hesitation 20 ms": {"hesitation": "20 ms"},
        "hesitation 100 ms": {"hesitation": "100 ms"},
        "no window": {"window": "0 s"},
        "window 50 ms": {"window": "50 ms"},
        "range 120 m": {"range": "120 m"},
    },
}
REFERENCES: Final = ("FLOODING", "GOSSIP")


def _name(mechanism: str, variant: str) -> str:
    return f"{mechanism}, {variant}".replace(" ", "-").replace(",", "")


NAMES: Final = {mechanism: [_name(mechanism, variant) for variant in variants] for mechanism, variants in VARIANTS.items()}  # fmt: skip


def _runs(quick: bool) -> tuple[Run, ...]:
    references = (static(name, MECHANISMS[name], quick=quick) for name in REFERENCES)
    variants = (
        static(_name(mechanism, variant), {**MECHANISMS[mechanism], **parameters}, quick=quick)
        for mechanism, found in VARIANTS.items()
        for variant, parameters in found.items()
    )
    return (*references, *variants)


def _drawing(mechanism: str) -> Drawing:
    """Recall and traffic of its variants, beside those that have no such constants."""
    runs = {name: name for name in REFERENCES}
    runs |= dict(zip((each.replace(" ", "\n") for each in VARIANTS[mechanism]), NAMES[mechanism], strict=True))

    def draw(outcomes: Sequence[Outcome]) -> Any:
        groups = {
            shown: {
                "recall": recall(run)(outcomes[0]),
                "traffic, of FLOODING's": quotient(download(run), download("FLOODING"))(outcomes[0]),
            }
            for shown, run in runs.items()
        }
        return bars(groups, label="share", title=f"{mechanism} with other constants, AR")

    return Drawing(
        mechanism.lower(), f"{mechanism}: recall, and traffic as a share of FLOODING's", tuple(runs.values()), draw
    )


CONSTANTS: Final = Experiment(
    "bypass-constants",
    "BYPASS.KOM 6.3.1 and A.3",
    "HYPERG and PLAN-B with other constants than ours",
    _runs,
    (
        Check(
            "C1",
            "AR: PLAN-B finds more than GOSSIP and HYPERG",
            "text",
            (
                *(Part(f"{name} minus GOSSIP", at_least(0.0), difference(recall(name), recall("GOSSIP"))) for name in NAMES["PLAN-B"]),
                *(Part(f"PLAN-B minus {name}", at_least(0.0), difference(recall(NAMES["PLAN-B"][0]), recall(name))) for name in NAMES["HYPERG"]),
            ),
        ),
        Check(
            "C2",
            "AR: GOSSIP finds more than HYPERG",
            "text",
            tuple(Part(f"GOSSIP minus {name}", at_least(0.0), difference(recall("GOSSIP"), recall(name))) for name in NAMES["HYPERG"]),
            note="6.3.1; A.3 has both at 0.8 to 0.9",
        ),
        Check(
            "C3",
            "AR: PLAN-B causes less traffic than FLOODING",
            "text",
            tuple(Part(f"{name}, of FLOODING", at_most(0.99), quotient(download(name), download("FLOODING")), " times") for name in NAMES["PLAN-B"]),
        ),
        Check(
            "C4",
            "AR: HYPERG causes less traffic than PLAN-B",
            "text",
            tuple(Part(f"{name}, of PLAN-B", at_most(0.99), quotient(download(name), download(NAMES["PLAN-B"][0])), " times") for name in NAMES["HYPERG"]),
            note="hellos included",
        ),
        Check(
            "C5",
            "AR: neither takes 20 ms",
            "text",
            tuple(Part(name, at_most(20.0), delay(name), " ms") for name in (*NAMES["HYPERG"], *NAMES["PLAN-B"])),
        ),
    ),
    (
        *(_drawing(mechanism) for mechanism in VARIANTS),
    ),
)  # fmt: skip
