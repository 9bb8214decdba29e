"""Numbers of computed runs that never took place: as THYME says, and otherwise."""

from __future__ import annotations

from collections.abc import Callable

from nearcast.experiment.checks import Outcome
from nearcast.experiment.measures import Measures, computed
from nearcast.experiment.thyme.book import OPERATIONS
from nearcast.experiment.thyme.evaluation import DCS, MECHANISMS, PL_SG
from nearcast.experiment.thyme.static import LARGEST, PERIODS
from nearcast.experiment.thyme.unstable import SHARES, SPEEDS, WAYS
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
    found = {f"{it}-{nodes}": _static(it, good) for it in MECHANISMS for nodes in SIZES}
    return found | {f"{PL_SG}-{LARGEST}-{period:g}": _static(PL_SG, good) for period in PERIODS}


def failing(good: bool) -> Outcome:
    def of(it: str, share: float) -> Measures:
        loses = (it == PL_SG) is good
        success = 1.0 - share * (0.8 if loses else 0.05)
        return computed(
            {
                "notification success": success,
                "download success": success,
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
        elif name != DCS and good:
            fall /= 4
        return computed({"notification success": 1.0 - fall})

    return {f"{it}-{speed:g}": of(it, speed) for it in WAYS for speed in SPEEDS}


WORLDS: dict[str, Callable[..., Outcome]] = {
    "thyme-th1": static,
    "thyme-th2": static,
    "thyme-th3": failing,
    "thyme-th4": failing,
    "thyme-th5": walking,
}
