"""Numbers of messages that never waited: as Contextcast says, and otherwise."""

from __future__ import annotations

from collections.abc import Callable

from nearcast.experiment.checks import Outcome
from nearcast.experiment.contextcast.future import ABSENT
from nearcast.experiment.measures import computed


def e16(good: bool) -> Outcome:
    def of(absent: float) -> dict[str, float]:
        if not good:
            return {"addressed": 0.4, "reached": 0.8, "saved": 0.2, "saved on a chain": 0.5}
        return {"addressed": 1 - absent, "reached": 1 - absent, "saved": absent, "saved on a chain": 0.0}

    return {f"absent-{absent:g}": computed(of(absent)) for absent in ABSENT}


def e18(good: bool) -> Outcome:
    return {"delay": computed({"longest": 1.0 if good else 1.5, "sent for later ones": 0.0 if good else 3.0})}


WORLDS: dict[str, Callable[..., Outcome]] = {"contextcast-e16": e16, "contextcast-e18": e18}
