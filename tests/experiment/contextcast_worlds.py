"""Numbers of computed runs that never took place: as the Contextcast dissertation says, and otherwise."""

from __future__ import annotations

from collections.abc import Callable

from nearcast.experiment.checks import Outcome
from nearcast.experiment.contextcast.adapting import (
    BENEFITS,
    BIN,
    LENGTHS,
    PROPAGATIONS,
    RATES,
    WEIGHTS,
)
from nearcast.experiment.contextcast.calculated import calculated
from nearcast.experiment.contextcast.coarseness import ANEW, COUNTS, DISTANCES, SAA
from nearcast.experiment.contextcast.thresholds import READINGS, SCENARIOS, THRESHOLDS, WIDE
from nearcast.experiment.measures import Measures, computed


def by_clients(good: bool) -> Outcome:
    found: dict[str, Measures] = {}
    for reporting in (SAA, "DB250"):
        for people in COUNTS:
            updates = people * 5.0 if good else people**2 / 1000
            messages = people * 1.0 if good else people**0.3
            if good and people == 1_000:
                messages /= 2
            found[f"{reporting}-{people}"] = computed({"people": people, "updates": updates, "messages": messages})
    return found


def e3(good: bool) -> Outcome:
    updates = {20: 1000.0, 50: 500.0, 100: 300.0, 250: 150.0, 500: 111.0}
    found: dict[str, Measures] = {}
    for distance in DISTANCES:
        found[f"DB{distance}"] = computed(
            {
                "people": 10.0,
                "sent": 1.0,
                "updates": updates[distance] if good else 100.0,
                "messages": 1.0 if good else distance * 1.0,
                "false negatives": distance / 5_000 if good else 0.0,
                "missed": 1.0,
                "due": 1_000.0,
            }
        )
    if not good:
        found["DB20"] = computed({**found["DB20"].numbers, "false negatives": 0.001})
    found[SAA] = computed(
        {
            "people": 10.0,
            "sent": 1.5 if good else 0.1,
            "updates": 84.0 if good else 99.0,
            "messages": 1.56 if good else 3_000.0,
            "missed": 0.0 if good else 3.0,
            "due": 1_000.0 if good else 1.0,
        }
    )
    found[f"DB500{ANEW}"] = computed({"updates": 86.0 if good else 200.0})
    return found


def e4(good: bool) -> Outcome:
    found: dict[str, Measures] = {}
    audit = {"due": 100.0 if good else 1.0, "missed": 0.0 if good else 1.0}
    for it in SCENARIOS:
        found[f"reference-{it}"] = computed({"updates": 10_000.0, "messages": 100.0, "total": 10_100.0, **audit})
        for reading in READINGS:
            saved = (
                {0.5: 1_000.0, 0.6: 2_000.0, 0.7: 300.0} if reading == "position" else dict.fromkeys(THRESHOLDS, 100.0)
            )
            in_vain = {0.5: 1.9, 0.6: 1.5, 0.7: 0.4}
            if not good:
                saved = {0.5: -5.0, 0.6: -10.0, 0.7: -5.0}
                if reading == "literal":
                    saved = dict.fromkeys(THRESHOLDS, 500.0)
                in_vain = {0.5: 1.0, 0.6: 2.0, 0.7: 3.0}
            saved |= {0.3: 500.0, 0.4: 700.0} if good else {0.3: 2_000.0, 0.4: 1.0}
            in_vain |= {0.3: 9.0, 0.4: 5.0}
            for threshold in WIDE:
                updates = 10_000.0 - saved[threshold]
                total = updates + 100.0 + in_vain[threshold]
                found[f"{reading}-{threshold:g}-{it}"] = computed(
                    {
                        "updates": updates,
                        "messages": 100.0 + in_vain[threshold],
                        "total": total,
                        "false positives": in_vain[threshold],
                        **audit,
                    }
                )
    return found


def e5(good: bool) -> Outcome:
    series = {f"false positives {window}": 10.0 if good else 10.0 * window for window in range(9)}
    return {"quality": computed({**series, "missed": 0.0 if good else 1.0})}


def e6(good: bool) -> Outcome:
    audit = {"due": 100.0 if good else 1.0, "missed": 0.0 if good else 1.0}
    found = {"reference": computed({"updates": 40_000.0, "messages": 4_000.0, "total": 44_000.0, **audit})}
    totals = dict(zip(BENEFITS, (26_000.0, 25_000.0, 24_000.0, 25_000.0, 27_000.0, 30_000.0), strict=True))
    for above in BENEFITS:
        total = totals[above] if good else 60_000.0
        numbers = {"updates": 3_000.0, "messages": 25_000.0, "invalidations": 100.0}
        if not good:
            numbers = {"updates": 50_000.0, "messages": 4_000.0, "invalidations": 30_000.0}
        found[f"above-{above:g}"] = computed({**numbers, "total": total, **audit})
    return found


def e7(good: bool) -> Outcome:
    audit = {"due": 100.0 if good else 1.0, "missed": 0.0 if good else 1.0}
    found: dict[str, Measures] = {}
    for kind in PROPAGATIONS:
        for rate in RATES:
            total = {"reference": 100.0, "adaptive": 10.0 * rate, "merged": 9.0 * rate}[kind]
            if not good:
                total = {"reference": 100.0, "adaptive": 200.0 if rate < 10 else 50.0, "merged": 300.0}[kind]
            found[f"{kind}-{rate:g}"] = computed({"total": total, "updates": rate if good else 1.0, **audit})
    return found


def around_a_switch(runs: tuple[str, ...], good: bool, ends: dict[str, float], soon: dict[str, float]) -> Outcome:
    audit = {"due": 100.0 if good else 1.0, "missed": 0.0 if good else 1.0}
    found: dict[str, Measures] = {}
    for run in runs:
        after = (
            [30.0] * 2 + [soon[run]] * 2 + [ends[run]] * 4 if good else [10.0] * 2 + [soon[run]] * 2 + [ends[run]] * 4
        )
        series = [10.0] * 8 + after
        found[run] = computed({**{f"messages {n * BIN}": each for n, each in enumerate(series)}, **audit})
    return found


def e8(good: bool) -> Outcome:
    runs = tuple(f"newest-{weight:g}" for weight in WEIGHTS)
    values = dict(zip(runs, (20.0, 19.0, 18.0, 17.0) if good else (17.0, 18.0, 19.0, 20.0), strict=True))
    return around_a_switch(runs, good, values, values)


def e9(good: bool) -> Outcome:
    runs = tuple(f"window-{length}" for length in LENGTHS)
    falling = dict(zip(runs, (20.0, 19.0, 18.0, 17.0), strict=True))
    rising = dict(zip(runs, (17.0, 18.0, 19.0, 20.0), strict=True))
    return around_a_switch(runs, good, falling if good else rising, rising if good else falling)


def calculated_otherwise(good: bool) -> Outcome:
    numbers = dict(calculated(1))
    if good:
        numbers["future, in a day at 60 days"] = 5_555.0  # as the document has it, which does not calculate
        return {"calculated": computed(numbers)}
    return {"calculated": computed({name: 3 * value for name, value in numbers.items()})}


WORLDS: dict[str, Callable[..., Outcome]] = {
    "contextcast-e1": by_clients,
    "contextcast-e2": by_clients,
    "contextcast-e3": e3,
    "contextcast-e4": e4,
    "contextcast-e5": e5,
    "contextcast-e6": e6,
    "contextcast-e7": e7,
    "contextcast-e8": e8,
    "contextcast-e9": e9,
    "contextcast-calculated": calculated_otherwise,
}
