"""What the experiments of ad hoc mechanisms would bring in a world as BYPASS.KOM says, and in another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace
from tests.experiment.synthetic import Around, Part, measures

from nearcast.experiment.adhoc.constants import NAMES
from nearcast.experiment.adhoc.crowd import AGGRESSIVE, MECHANISMS, TIMETABLE
from nearcast.experiment.adhoc.gossip import CHANCES
from nearcast.experiment.checks import Outcome
from nearcast.experiment.measures import Cells, Followed, Measures

CLIENTS = 100
MARKS = ("T1", "T2", "T3", "T4")


def of(recall: float, precision: float, download: float, milliseconds: float, upload: float = 1.0) -> Part:
    rates = {"ad hoc download event": download, "ad hoc upload event": upload}
    return Part(recall, precision, rates, delay=milliseconds / 1000)


def alone(part: Part) -> Measures:
    return measures({"all": part}, whole=part)


def e5(good: bool) -> Outcome:
    recalls = {"FLOODING": 0.95, "PLAN-B": 0.95, "GOSSIP": 0.85, "HYPERG": 0.8, "BROADCAST": 0.6}
    elsewhere = {"FLOODING": 0.35, "PLAN-B": 0.35, "GOSSIP": 0.15, "HYPERG": 0.15, "BROADCAST": 0.01}
    found = {}
    for name in MECHANISMS:
        uploads = (3.0 if name in AGGRESSIVE else 1.0) if good else 1.0
        precision = (0.95 if name == "BROADCAST" else 0.7) if good else 0.4
        near = of(recalls[name] if good else 0.5, precision, 1.0, 5.0 if good else 30.0, uploads)
        far = of(elsewhere[name] if good else 0.8, 0.1, 6.0 if good else 1.0, 100.0 if good else 30.0, uploads)
        cells = Cells(
            size=20.0,
            x=[10.0, 30.0],
            y=[10.0, 10.0],
            values={"due": [100, 90], "correct": [95, 70] if good else [70, 90], "notified": [100, 100]},
        )
        found[f"{name}-AR"] = replace(alone(near), recall_map=cells)
        found[f"{name}-RND"] = alone(far)
        found[f"{name}-open"] = alone(of(recalls[name], 0.1, 6.0 if good else 1.0, 5.0))
    return found


def followed(after: Sequence[float], far: Sequence[float] | None = None) -> Followed:
    """``far``: how far east each of them was."""
    return Followed(clients=CLIENTS, after=list(after), x=list(far or [0.0] * len(after)), y=[0.0] * len(after))


def spreading(made: Measures, spreads: Mapping[str, Followed]) -> Measures:
    """With who followed each transition, at the times of Table 8."""
    times = dict(zip(MARKS, (480.0, 720.0, 1020.0, 1320.0), strict=True))
    marks = [
        replace(
            mark,
            at=times[mark.label],
            first=spreads[mark.label].after[0],
            last=spreads[mark.label].after[-1],
            followed=spreads[mark.label],
        )
        for mark in made.marks
    ]
    return replace(made, seconds=1500.0, marks=marks)


def e7(good: bool) -> Outcome:
    recalls = {"GOSSIP": 0.85, "PLAN-B": 0.95, "HYPERG": 0.8, "FLOODING": 0.95, "BROADCAST": 0.6 if good else 0.9}
    phases = {name: Part(recalls[name] if good else 0.7, 0.7 if good else 0.5) for name in TIMETABLE}
    dipped, smooth = Around(dip=100), Around()
    marks = dict(
        zip(MARKS, (dipped, smooth, smooth, smooth) if good else (smooth, dipped, dipped, dipped), strict=True)
    )
    together = followed([0.08 + 0.0004 * number for number in range(CLIENTS)])
    apart = followed([0.08 + 0.1 * number for number in range(CLIENTS // 2)])
    planned = spreading(measures(phases, marks), dict.fromkeys(MARKS, together if good else apart))
    only = {name: phases[name] for name in ("GOSSIP", "PLAN-B")}
    return {
        "planned": planned,
        "taken": measures(only, {"T1": smooth if good else dipped}),
        **{f"static-{name}": alone(Part(recalls[name], 0.7)) for name in TIMETABLE},
    }


def _soon(start: float, length: float, late: float) -> Followed:
    """The initiator, ninety within that length from then on, and the others late and far out."""
    after = [0.0, *(start + length * number / 90 for number in range(90)), *(late + number for number in range(8))]
    return followed(after, [100.0 - number for number in range(91)] + [400.0] * 8)


def e8(good: bool) -> Outcome:
    phases = {name: Part() for name in TIMETABLE}
    smooth = dict.fromkeys(MARKS, Around())
    slow = followed([2.0 * number for number in range(20)])
    one = {
        "T1": _soon(10.0, 1.0, 90.0),
        "T2": _soon(0.1, 1.0, 60.0),
        "T3": _soon(1.0, 1.0, 60.0),
        "T4": _soon(3.0, 20.0, 100.0),
    }
    thirty = {
        "T1": _soon(1.0, 1.0, 30.0),
        "T2": _soon(0.05, 0.5, 30.0),
        "T3": _soon(0.2, 0.5, 30.0),
        "T4": _soon(1.0, 5.0, 60.0),
    }
    # All start in the wrong order, and BROADCAST reaches everybody.
    wrong = {
        "T1": followed(
            [0.0, *(16.0 + 0.5 * number for number in range(24))], [float(number) % 7 for number in range(25)]
        ),
        "T2": slow,
        "T3": slow,
        "T4": followed([0.001 * number for number in range(CLIENTS)]),
    }
    made = measures(phases, smooth)
    return {
        "one": spreading(made, one if good else wrong),
        "thirty": spreading(made, thirty if good else wrong),
    }


def a5(good: bool) -> Outcome:
    recalls = {"FLOODING": 0.9, "PLAN-B": 0.9, "GOSSIP": 0.85, "HYPERG": 0.8, "BROADCAST": 0.6}
    traffic = {"FLOODING": 5.0, "PLAN-B": 3.0, "GOSSIP": 1.0, "HYPERG": 1.0, "BROADCAST": 0.1}
    delays = {"FLOODING": 100.0, "PLAN-B": 10.0, "GOSSIP": 5.0, "HYPERG": 5.0, "BROADCAST": 1.0}
    found = {}
    for name in MECHANISMS:
        falls = 0.0 if name == "BROADCAST" else 0.1
        many = of(recalls[name], 0.8 - falls, traffic[name], delays[name])
        few = of(recalls[name], 0.8, 0.1, delays[name])
        if not good:
            many = of(0.4, 0.8, 1.0, 19.0 if name == "FLOODING" else 50.0)
            few = of(0.4, 0.9 if name == "BROADCAST" else 0.7, 1.0, 5.0)
        found[name] = measures({"few": few, "more": few, "many": many})
    return found


def a6(good: bool) -> Outcome:
    found = {}
    values = zip(CHANCES, (0.6, 0.8, 0.87, 0.9), (0.5, 1.0, 3.0, 5.0), (3.0, 5.0, 8.0, 50.0), strict=True)
    for chance, recall, traffic, delay in values:
        near = (
            of(recall, 0.7, traffic, delay) if good else of(0.5 - chance / 4, 0.7, 1.0, 19.0 if chance == 1 else 60.0)
        )
        found[f"AR-{chance:g}"] = alone(near)
        far = of(0.4 * chance if good else 0.8, 0.1, 10.0, 100.0 if good else 10.0)
        found |= {f"{kind}-{chance:g}": alone(far) for kind in ("LBS", "RND")}
    return found


def constants(good: bool) -> Outcome:
    stated = {
        "FLOODING": (0.95, 5.0, 30.0),
        "GOSSIP": (0.85, 1.0, 5.0),
        "HYPERG": (0.8, 1.0, 5.0),
        "PLAN-B": (0.95, 3.0, 10.0),
    }
    wrong = {
        "FLOODING": (0.95, 1.0, 30.0),
        "GOSSIP": (0.8, 1.0, 5.0),
        "HYPERG": (0.9, 3.0, 25.0),
        "PLAN-B": (0.7, 2.0, 25.0),
    }

    def made(name: str) -> Measures:
        recall, traffic, delay = (stated if good else wrong)[name]
        return alone(of(recall, 0.7, traffic, delay))

    variants = {run: made(mechanism) for mechanism, runs in NAMES.items() for run in runs}
    return {"FLOODING": made("FLOODING"), "GOSSIP": made("GOSSIP"), **variants}


WORLDS = {
    "bypass-e5": e5,
    "bypass-e7": e7,
    "bypass-e8": e8,
    "bypass-a5": a5,
    "bypass-a6": a6,
    "bypass-constants": constants,
}
