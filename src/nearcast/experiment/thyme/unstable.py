"""TH3 to TH5: nodes that leave, that come and go, and that walk about (THYME 6.4, 6.5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nearcast.experiment.checks import Check, Part, at_least, at_most, between
from nearcast.experiment.experiment import Drawing, Experiment
from nearcast.experiment.runs import Computed
from nearcast.experiment.thyme.evaluation import DCS, MECHANISMS, PL_SG, run_of
from nearcast.experiment.thyme.reporting import JUDGED, drawn, operations_drawn, worst
from nearcast.experiment.values import Value, difference, number, quotient

NODES: Final = 100
SHARES: Final = (0.0, 0.1, 0.2, 0.3, 0.4)
SPEEDS: Final = (0.0, 0.6, 1.4, 2.5)
LOSSES: Final = (0.0, 0.02, 0.05, 0.1)
"""Shares of the frames."""

BROADCAST_LOSS: Final = 0.3
"""Share of the receivers that miss a broadcast; the paper gives no number, and this one was chosen before any run with it."""

WAYS: Final[dict[str, tuple[str, dict[str, float]]]] = {
    PL_SG: (PL_SG, {}),
    DCS: (DCS, {"anti_entropy": False}),
    "DCS-anti-entropy": (DCS, {"anti_entropy": True}),
    "DCS-hand-over": (DCS, {"anti_entropy": True, "populated": 0}),
    "DCS-lossy": (DCS, {"anti_entropy": False, "broadcast_loss": BROADCAST_LOSS}),
    "DCS-lossy-anti-entropy": (DCS, {"anti_entropy": True, "broadcast_loss": BROADCAST_LOSS}),
}
"""What walks in TH5, by the names of the runs.

With hand-over, it goes wherever it likes, and cells hand over what they keep.  In the lossy ones broadcasts, and nothing else, get lost: the
paper says that members of a cell come to differ because the broadcasts within it are unreliable (6.5), and on this radio hardly any is.
"""

KEPT: Final = 0.9
"""The success that counts as an operation that is little affected, where the paper names no number."""


def _leaving(quick: bool) -> tuple[Computed, ...]:
    return tuple(
        run_of(f"{it}-{share:g}", quick, NODES, it, leaving=share, divided=1) for it in MECHANISMS for share in SHARES
    )


def _failing(quick: bool) -> tuple[Computed, ...]:
    return tuple(run_of(f"{it}-{share:g}", quick, NODES, it, failing=share) for it in MECHANISMS for share in SHARES)


def _lost(it: str, name: str) -> Value:
    """What the largest share of failures takes away."""
    return difference(number(f"{it}-0", name), number(f"{it}-{SHARES[-1]:g}", name))


def _keeps(id_: str, stated: str, way: str, at: float) -> Check:
    """Each operation in the worst case; what DCS does beyond the paper, whose figures show some of them only."""
    parts = tuple(Part(kind, at_least(KEPT), worst([f"{way}-{at:g}"], kind)) for kind in JUDGED)
    return Check(id_, stated, "inferred", parts, note="the paper names no number")


def _figures(ways: Sequence[str], xs: Sequence[float], x: str) -> tuple[Drawing, ...]:
    """The success of each operation with its confidence interval."""
    return tuple(
        Drawing(
            f"operations-{way.replace('/', '').lower()}",
            f"Operations that succeeded, {way}: means over the seeds, with 95 % confidence intervals",
            tuple(f"{way}-{at:g}" for at in xs),
            operations_drawn(xs, way, x=x, title=f"{way}: operations"),
        )
        for way in ways
    )


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
        _keeps("TH3.2", "every operation of DCS succeeds when 40 % leave", DCS, SHARES[-1]),
    ),
    drawings=(
        Drawing(
            "notified",
            "Due notifications that came",
            _BY_SHARE,
            drawn(SHARES, MECHANISMS, "notification success", x="share of nodes that leave", y="share", title="Notifications"),
        ),
        *_figures(MECHANISMS, SHARES, "share of nodes that leave"),
    ),
)  # fmt: skip

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
        _keeps("TH4.5", "every operation of DCS succeeds when 40 % come and go", DCS, SHARES[-1]),
    ),
    drawings=(
        Drawing(
            "downloads",
            "Downloads that succeeded",
            _BY_SHARE,
            drawn(SHARES, MECHANISMS, "download success", x="share of nodes that fail", y="share", title="Downloads"),
        ),
        Drawing(
            "longest",
            "The longest latency of a notification",
            _BY_SHARE,
            drawn(SHARES, MECHANISMS, "notification latency max", x="share of nodes that fail", y="seconds", title="Notifications"),
        ),
        *_figures(MECHANISMS, SHARES, "share of nodes that fail"),
    ),
)  # fmt: skip


def _walking(quick: bool) -> tuple[Computed, ...]:
    return tuple(
        run_of(f"{name}-{speed:g}", quick, NODES, it, speed=speed, **given)
        for name, (it, given) in WAYS.items()
        for speed in SPEEDS
    )


_FASTEST: Final = f"{SPEEDS[-1]:g}"
_SUCCESS: Final = "notification success"


def _lost_by_walking(way: str) -> Value:
    """How much less succeeds at the highest speed than standing still with the same frames lost, and without anti-entropy."""
    still = "DCS-lossy-0" if "lossy" in way else "DCS-0"
    return difference(number(still, _SUCCESS), number(f"{way}-{_FASTEST}", _SUCCESS))


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
                    "lost at 2.5 m/s", at_least(0.02), _lost_by_walking("DCS")
                ),
            ),
            note="without anti-entropy, and with cells that keep their population",
        ),
        Check(
            "TH5.2",
            "with anti-entropy at least half of what is lost by walking comes back, where broadcasts get lost",
            "inferred",
            (
                Part(
                    "lost at 2.5 m/s with, against without",
                    at_most(0.5),
                    quotient(_lost_by_walking("DCS-lossy-anti-entropy"), _lost_by_walking("DCS-lossy")),
                    " times",
                ),
            ),
            note="the paper names lost broadcasts and the entropy of cells as the cause, and no remedy; against the same crowd standing still",
        ),
        Check(
            "TH5.3",
            "downloads travel less in DCS",
            "text",
            (
                Part(
                    "hops at 2.5 m/s, PL/SG against DCS",
                    at_least(1.0),
                    quotient(number(f"{PL_SG}-{_FASTEST}", "download hops"), number(f"DCS-{_FASTEST}", "download hops")),
                    " times",
                ),
            ),
        ),
        _keeps("TH5.4", "with hand-over, nobody has to stay where it is, and DCS still succeeds at 2.5 m/s", "DCS-hand-over", SPEEDS[-1]),
        Check(
            "TH5.5",
            "the success of notifications falls with speed where broadcasts get lost, which the paper takes for the cause",
            "inferred",
            (Part("lost at 2.5 m/s", at_least(0.02), _lost_by_walking("DCS-lossy")),),
            note="without anti-entropy",
        ),
    ),
    drawings=(
        Drawing(
            "notified",
            "Due notifications that came",
            tuple(f"{it}-{speed:g}" for it in WAYS for speed in SPEEDS),
            drawn(SPEEDS, tuple(WAYS), _SUCCESS, x="metres per second at most", y="share", title="Notifications"),
        ),
        Drawing(
            "hops",
            "Hops of a downloaded object",
            tuple(f"{it}-{speed:g}" for it in WAYS for speed in SPEEDS),
            drawn(SPEEDS, tuple(WAYS), "download hops", x="metres per second at most", y="hops", title="Downloads"),
        ),
        *_figures(tuple(WAYS), SPEEDS, "metres per second at most"),
    ),
)  # fmt: skip


def _losing(quick: bool) -> tuple[Computed, ...]:
    return tuple(run_of(f"{it}-{loss:g}", quick, NODES, it, loss=loss) for it in MECHANISMS for loss in LOSSES)


LOSS: Final = Experiment(
    name="thyme-loss",
    document="nearcast",
    title="Frames get lost that the radio has acknowledged",
    runs=lambda _quick: (),
    computed=_losing,
    seeds=3,
    checks=(_keeps("TH6.1", "every operation of DCS succeeds when 5 % of all frames get lost", DCS, LOSSES[2]),),
    drawings=(
        Drawing(
            "notified",
            "Due notifications that came",
            tuple(f"{it}-{loss:g}" for it in MECHANISMS for loss in LOSSES),
            drawn(LOSSES, MECHANISMS, _SUCCESS, x="share of frames that get lost", y="share", title="Notifications"),
        ),
        *_figures(MECHANISMS, LOSSES, "share of frames that get lost"),
    ),
)
