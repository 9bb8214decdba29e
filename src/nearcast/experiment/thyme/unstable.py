"""TH3 to TH5: nodes that leave, that come and go, and that walk about (THYME 6.4, 6.5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from nearcast.experiment.checks import Check, Outcome, Part, at_least, at_most, between
from nearcast.experiment.experiment import Drawing, Experiment
from nearcast.experiment.figures.lines import lines
from nearcast.experiment.runs import Computed
from nearcast.experiment.thyme.evaluation import DCS, MECHANISMS, PL_SG, run_of
from nearcast.experiment.values import Value, difference, number, quotient

NODES: Final = 100
SHARES: Final = (0.0, 0.1, 0.2, 0.3, 0.4)
SPEEDS: Final = (0.0, 0.6, 1.4, 2.5)
WAYS: Final = {PL_SG: PL_SG, DCS: DCS, "DCS-anti-entropy": DCS}
"""Mechanisms in TH5, by the names of their runs."""


def _leaving(quick: bool) -> tuple[Computed, ...]:
    return tuple(
        run_of(f"{it}-{share:g}", quick, NODES, it, leaving=share, divided=1) for it in MECHANISMS for share in SHARES
    )


def _failing(quick: bool) -> tuple[Computed, ...]:
    return tuple(run_of(f"{it}-{share:g}", quick, NODES, it, failing=share) for it in MECHANISMS for share in SHARES)


def _lost(it: str, name: str) -> Value:
    """What the largest share of failures takes away."""
    return difference(number(f"{it}-0", name), number(f"{it}-{SHARES[-1]:g}", name))


def _drawn(xs: Sequence[float], ways: Sequence[str], name: str, x: str, title: str) -> Any:
    def draw(outcomes: Sequence[Outcome]) -> Any:
        series = {it: [(at, outcomes[0][f"{it}-{at:g}"].numbers.get(name)) for at in xs] for it in ways}
        return lines(series, x=x, y="share" if "success" in name else "seconds", title=title)

    return draw


_BY_SHARE: Final = tuple(f"{it}-{share:g}" for it in MECHANISMS for share in SHARES)
_WORST: Final = f"{SHARES[-1]:g}"

TH3: Final = Experiment(
    name="thyme-th3",
    document="THYME 6.4.1",
    title="Publishers leave for ever",
    runs=lambda _quick: (),
    computed=_leaving,
    seeds=3,
    checks=(
        Check(
            "TH3.1",
            "PL/SG loses notifications with the share of failing nodes, DCS hardly",
            "text",
            (
                Part("PL/SG, lost with 40 %", at_least(0.1), _lost(PL_SG, "notification success")),
                Part("DCS, lost with 40 %", at_most(0.05), _lost(DCS, "notification success")),
            ),
            note="half of 100 nodes publish, the others subscribe: the paper names neither",
        ),
    ),
    drawings=(
        Drawing(
            "notified",
            "Due notifications that came",
            _BY_SHARE,
            _drawn(SHARES, MECHANISMS, "notification success", "share of nodes that leave", "Notifications"),
        ),
    ),
)

TH4: Final = Experiment(
    name="thyme-th4",
    document="THYME 6.4.2",
    title="Nodes come and go",
    runs=lambda _quick: (),
    computed=_failing,
    seeds=3,
    checks=(
        Check(
            "TH4.1",
            "DCS is little affected",
            "text",
            tuple(
                Part(f"{kind}, lost with 40 %", at_most(0.1), _lost(DCS, f"{kind} success"))
                for kind in ("notification", "download")
            ),
        ),
        Check(
            "TH4.2",
            "in PL/SG downloads fail with the share of failing nodes",
            "text",
            (Part("lost with 40 %", at_least(0.1), _lost(PL_SG, "download success")),),
        ),
        Check(
            "TH4.3",
            "the longest latency of a notification in PL/SG reaches about 100 s with 40 %; that of DCS stays",
            "text",
            (
                Part("PL/SG", between(60.0, 180.0), number(f"{PL_SG}-{_WORST}", "notification latency max"), " s"),
                Part("DCS", at_most(60.0), number(f"{DCS}-{_WORST}", "notification latency max"), " s"),
            ),
        ),
        Check(
            "TH4.4",
            "with failures PL/SG forwards more than DCS",
            "text",
            (
                Part(
                    "bytes, with 40 %",
                    at_least(1.0),
                    quotient(
                        number(f"{PL_SG}-{_WORST}", "bytes forwarded"), number(f"{DCS}-{_WORST}", "bytes forwarded")
                    ),
                    " times",
                ),
            ),
        ),
    ),
    drawings=(
        Drawing(
            "downloads",
            "Downloads that succeeded",
            _BY_SHARE,
            _drawn(SHARES, MECHANISMS, "download success", "share of nodes that fail", "Downloads"),
        ),
        Drawing(
            "longest",
            "The longest latency of a notification",
            _BY_SHARE,
            _drawn(SHARES, MECHANISMS, "notification latency max", "share of nodes that fail", "Notifications"),
        ),
    ),
)


def _walking(quick: bool) -> tuple[Computed, ...]:
    return tuple(
        run_of(f"{name}-{speed:g}", quick, NODES, it, speed=speed, **({"anti_entropy": "anti" in name} if it == DCS else {}))
        for name, it in WAYS.items()
        for speed in SPEEDS
    )  # fmt: skip


_FASTEST: Final = f"{SPEEDS[-1]:g}"
_SUCCESS: Final = "notification success"

TH5: Final = Experiment(
    name="thyme-th5",
    document="THYME 6.5",
    title="Nodes walk about",
    runs=lambda _quick: (),
    computed=_walking,
    seeds=3,
    checks=(
        Check(
            "TH5.1",
            "in DCS the success of notifications falls with speed",
            "text",
            (
                Part(
                    "lost at 2.5 m/s", at_least(0.02), difference(number("DCS-0", _SUCCESS), number(f"DCS-{_FASTEST}", _SUCCESS))
                ),
            ),
            note="without anti-entropy, and with cells that keep their population",
        ),
        Check(
            "TH5.2",
            "with anti-entropy at least half of that comes back",
            "inferred",
            (
                Part(
                    "lost at 2.5 m/s with, against without",
                    at_most(0.5),
                    quotient(
                        difference(number("DCS-0", _SUCCESS), number(f"DCS-anti-entropy-{_FASTEST}", _SUCCESS)),
                        difference(number("DCS-0", _SUCCESS), number(f"DCS-{_FASTEST}", _SUCCESS)),
                    ),
                    " times",
                ),
            ),
            note="the paper names the entropy of cells as the cause, and no remedy",
        ),
    ),
    drawings=(
        Drawing(
            "notified",
            "Due notifications that came",
            tuple(f"{it}-{speed:g}" for it in WAYS for speed in SPEEDS),
            _drawn(SPEEDS, tuple(WAYS), _SUCCESS, "metres per second at most", "Notifications"),
        ),
    ),
)  # fmt: skip
