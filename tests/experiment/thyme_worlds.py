"""Numbers of computed runs that never took place: as THYME says, and otherwise."""

from __future__ import annotations

from collections.abc import Callable

from nearcast.experiment.checks import Outcome
from nearcast.experiment.measures import Measures, computed
from nearcast.experiment.thyme.book import OPERATIONS
from nearcast.experiment.thyme.evaluation import DCS, MECHANISMS, PL_SG
from nearcast.experiment.thyme.sweep import AROUND, AT_ONCE, BEACONS, GROWTHS, PERIODS
from nearcast.experiment.thyme.unstable import LOSSES, SHARES, SPEEDS, WAYS
from nearcast.experiment.thyme.venue import SIZES


def _static(it: str, good: bool) -> Measures:
    large = (it == PL_SG) is good
    rates = {f"{kind} success": 0.99 if good else 0.9 for kind in (*OPERATIONS, "notification")}
    return computed(
        rates
        | {
            "bytes sent": 3e6 if large else 1e6,
            "control share": 0.25 if good else 0.6,
            "control bytes": 1e5,
            "bytes forwarded": 1e5 if large else 2e5,
            "retransmissions": 5e4 if large else 1e4,
            "notification latency": 0.01 if large else 0.02,
            "download latency": 0.03 if large else 0.02,
        }
    )


def static(good: bool) -> Outcome:
    return {f"{it}-{nodes}": _static(it, good) for it in MECHANISMS for nodes in SIZES}


def swept(good: bool) -> Outcome:
    found = {f"{PL_SG}-period-{it:g}": _static(PL_SG, good) for it in PERIODS}
    found |= {f"{DCS}-beacon-{it:g}": _static(DCS, good) for it in BEACONS}
    found |= {f"{it}-slow": _static(it, good) for it in MECHANISMS}
    found |= {f"{it}-growth-{growth:g}": _static(it, good) for it in MECHANISMS for growth in GROWTHS}
    return found | {AROUND: computed({"bytes sent": 2e6}), AT_ONCE: _static(PL_SG, good)}


def failing(good: bool) -> Outcome:
    def of(it: str, share: float) -> Measures:
        loses = (it == PL_SG) is good
        success = 1.0 - share * (0.8 if loses else 0.05)
        return computed(
            dict.fromkeys((f"{kind} success" for kind in (*OPERATIONS, "notification")), success)
            | {
                "notification latency max": 250.0 * share + 1 if loses else 2.0,
                "bytes forwarded": 1e5 * (1 + share) if loses else 1e5,
            }
        )

    return {f"{it}-{share:g}": of(it, share) for it in MECHANISMS for share in SHARES}


def walking(good: bool) -> Outcome:
    def of(name: str, speed: float) -> Measures:
        fall = (0.05 if good else 0.004) * speed
        if name == PL_SG:
            fall = 0.0
        elif name not in {DCS, "DCS-lossy"} and good:
            fall /= 4
        rates = dict.fromkeys((f"{kind} success" for kind in OPERATIONS), 0.99 if good else 0.5)
        if name == "DCS-hand-over" and not good:
            fall = 0.2 * speed
        hops = 3.0 if (name == PL_SG) is good else 2.0
        return computed(rates | {"notification success": 1.0 - fall, "download hops": hops})

    return {f"{it}-{speed:g}": of(it, speed) for it in WAYS for speed in SPEEDS}


def losing(good: bool) -> Outcome:
    def of(loss: float) -> Measures:
        success = 1.0 - loss * (1.0 if good else 4.0)
        return computed(dict.fromkeys((f"{kind} success" for kind in (*OPERATIONS, "notification")), success))

    return {f"{it}-{loss:g}": of(loss) for it in MECHANISMS for loss in LOSSES}


WORLDS: dict[str, Callable[..., Outcome]] = {
    "thyme-th1": static,
    "thyme-th2": static,
    "thyme-th3": failing,
    "thyme-th4": failing,
    "thyme-th5": walking,
    "thyme-sweep": swept,
    "thyme-loss": losing,
}
