"""Numbers of lookups that never took place: as Contextcast says, and otherwise."""

from __future__ import annotations

from collections.abc import Callable

from nearcast.experiment.checks import Outcome
from nearcast.experiment.contextcast.past import DEPTHS, EDGES
from nearcast.experiment.measures import computed


def e10(good: bool) -> Outcome:
    return {f"edge-{edge:g}": computed({"nodes": 7_000 * (edge**2 if good else edge)}) for edge in EDGES}


def e11(good: bool) -> Outcome:
    first = {"FCH": 1.0, "PCH2": 0.65, "PCH3": 0.1, "PCH4": 0.0, "SH": 0.0}
    last = {"FCH": 1.0, "PCH2": 0.97, "PCH3": 0.81, "PCH4": 0.42, "SH": 0.0}
    if not good:
        first, last = dict.fromkeys(first, 1.3), dict.fromkeys(last, 1.3)
        first["FCH"] = last["FCH"] = 1.0
    return {f"edge-{edge:g}": computed(first if edge == EDGES[0] else last) for edge in EDGES}


def e12(good: bool) -> Outcome:
    def of(edge: float) -> dict[str, float]:
        if not good:
            return dict.fromkeys(DEPTHS, 1.0) | {
                "PCH3": 0.5,
                "PCH4": 0.7 if edge == EDGES[0] else 0.5,
                "PCH2": 0.6,
                "FCH": 0.6,
            }
        if edge == EDGES[0]:
            return {"SH": 1.0, "PCH4": 1.0, "PCH3": 0.95, "PCH2": 0.4, "FCH": 0.1}
        return {"SH": 1.0, "PCH4": 0.5, "PCH3": 0.2, "PCH2": 0.06, "FCH": 0.011}

    def resolved() -> dict[str, float]:
        return {f"{name} resolved": 5.0 if good or name == "SH" else 4.0 for name in DEPTHS}

    return {f"edge-{edge:g}": computed(of(edge) | resolved()) for edge in EDGES}


def e13(good: bool) -> Outcome:
    later = 5.0 if good else 20.0
    return {f"edge-{edge:g}": computed({"later": later, "longer way": 1.0}) for edge in EDGES}


WORLDS: dict[str, Callable[..., Outcome]] = {
    "contextcast-e10": e10,
    "contextcast-e11": e11,
    "contextcast-e12": e12,
    "contextcast-e13": e13,
}
