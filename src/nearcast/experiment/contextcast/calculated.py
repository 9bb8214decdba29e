"""E14, E15 and E17 as an experiment: the document's figures beside those of the closed forms (Contextcast 6.4.2)."""

from __future__ import annotations

from typing import Final

from nearcast.experiment.checks import Check, Part, at_most, near
from nearcast.experiment.contextcast.closed_forms import Archive, FutureStore, Header
from nearcast.experiment.experiment import Experiment
from nearcast.experiment.runs import Computed
from nearcast.experiment.values import number

HALF_A_YEAR: Final = 180.0


def calculated(_seed: int) -> dict[str, float]:
    archive, store = Archive(), FutureStore()
    few, many = Header(clients=100), Header(clients=10_000)
    return {
        "header, nodes of 100": few.named_nodes,
        "header, nodes of 10,000": many.named_nodes,
        "header, all nodes": many.trusted_nodes,
        "header, bytes of 10,000": many.bytes,
        "archive, MB in a day": archive.megabytes_per_day,
        "archive, MB": archive.megabytes,
        "archive, GB": archive.gigabytes,
        "future, messages": store.messages,
        "future, in a day at 60 days": store.messages_per_day,
        "future, in a day at 180 days": FutureStore(days=HALF_A_YEAR).messages_per_day,
    }


def _of(name: str, what: str, value: float, tolerance: float) -> Part:
    return Part(name, near(value, tolerance), number("calculated", what))


CE14: Final = Experiment(
    name="contextcast-calculated",
    document="Contextcast 6.4.2",
    title="What is calculated: headers, archives, messages to the future",
    runs=lambda _quick: (),
    computed=lambda _quick: (Computed("calculated", calculated),),
    checks=(
        Check(
            "CE14.1",
            "the header of a historical message names at most the distinct trusted nodes, several hundred",
            "text",
            (
                Part(
                    "nodes named, 10,000 identities of 300 nodes",
                    at_most(300),
                    number("calculated", "header, nodes of 10,000"),
                ),
            ),
            note="follows from arithmetic; identities come on top: 10,000 of them are 80 kB, so areas, periods and changes of identity must be bounded",
        ),
        Check(
            "CE15.1",
            "50,000 entries of 2 KB a day are 100 MB; three years are 109,500 MB, 106.93 GB",
            "text",
            (
                _of("MB in a day", "archive, MB in a day", 100, 0.5),
                _of("MB in three years", "archive, MB", 109_500, 50),
                _of("GB", "archive, GB", 106.93, 0.01),
            ),
            note="follows from arithmetic; megabytes of 1,000 and gigabytes of 1,024 of them",
        ),
        Check(
            "CE17.1",
            "100 GB hold 1,000,000 messages of 100 KB",
            "text",
            (_of("messages", "future, messages", 1e6, 1_000),),
            note="follows from arithmetic",
        ),
        Check(
            "CE17.2",
            "kept for 60 days, that is more than 5,500 a day",
            "text",
            (_of("messages a day at 60 days", "future, in a day at 60 days", 5_555, 60),),
            note="a million in 60 days are 16,667 a day; 5,555 fits 180 days",
        ),
        Check(
            "CE17.3",
            "what the document says fits a lifetime of 180 days",
            "inferred",
            (_of("messages a day at 180 days", "future, in a day at 180 days", 5_555, 60),),
        ),
    ),
    drawings=(),
    seeds=1,
)
