"""Every check can come out either way: on a world that is as the documents say, and on one that is not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from tests.experiment import (
    adhoc_worlds,
    coexistence_worlds,
    contextcast_worlds,
    future_worlds,
    hybrid_worlds,
    past_worlds,
    steam_worlds,
    thyme_worlds,
)
from tests.experiment.synthetic import Around, measures
from tests.experiment.synthetic import Part as Of

from nearcast.experiment import adaptive_planning, partial_transitions
from nearcast.experiment.adhoc.crowd import SECONDS
from nearcast.experiment.catalogue import EXPERIMENTS
from nearcast.experiment.checks import Outcome, judge
from nearcast.experiment.experiment import Experiment
from nearcast.experiment.measures import Measures, Rate
from nearcast.experiment.self_transitions import FACTORS
from nearcast.experiment.total_transitions import SCHEMES

BY_NAME = {each.name: each for each in EXPERIMENTS}
MARKS = ("T1", "T2", "T3", "T4")


def e1(good: bool) -> Outcome:
    stated = {"RADIAL": 0.98, "STE": 1.0, "GRID": 0.7, "EGRID": 1.0, "RADIAL again": 0.98}
    off = 0.0 if good else -0.15
    share = 0.25 if good else 0.8
    phases = {
        name: Of(recall + off, 0.9 + off, below_one=share, p25=0.95 if good else 0.85)
        for name, recall in stated.items()
    }
    context = {"download context": 1.0, "upload context": 1.0}
    loud, quiet = Around(bursts=context), Around(bursts={})
    marks = dict(zip(MARKS, (quiet, loud, loud, quiet) if good else (loud, quiet, quiet, loud), strict=True))
    statics = {
        f"static-{scheme['kind']}": measures({phase: Of(stated[phase], 0.9) for phase in SCHEMES})
        for scheme in SCHEMES.values()
    }
    return {"transitions": measures(phases, marks), **statics}


def around(dips: Mapping[str, int], **rest: Any) -> dict[str, Around]:
    return {mark: Around(dip=dips.get(mark, 0), **rest) for mark in MARKS}


def e2(good: bool) -> Outcome:
    phases = {name: Of() for name in SCHEMES}
    everywhere = dict.fromkeys(MARKS, 300)
    upload = Of(rates={"upload context": 0.025, "upload event": 0.975})
    wasteful = Of(rates={"upload context": 0.2, "upload event": 0.8, "download event": 1.0})
    transfer = around({"T3": 100} if good else {"T1": 100, "T2": 100})
    transfer["T4"] = Around(first_second=0.85 if good else 0.5)
    lost = {} if good else everywhere
    return {
        "AR-transfer": measures(phases, transfer, whole=upload if good else wasteful),
        "LBS-transfer": measures(phases, around(lost)),
        "AR-none": measures(phases, around(everywhere if good else {}), whole=upload),
        "LBS-none": measures(phases, around({})),
        "AR-lossless": measures(phases, around(lost), doubled=0 if good else 1),
        "LBS-lossless": measures(phases, around(lost), doubled=0 if good else 1),
    }


def e3(good: bool) -> Outcome:
    phases = {name: Of(1.0 if good else 0.9, 0.1 * number if good else 0.5) for number, name in enumerate(FACTORS, 1)}
    dips = {"T1": 200, "T2": 200, "T3": 200}
    return {
        "AR-plain": measures(phases, around(dips if good else {})),
        "LBS-plain": measures(phases, around({} if good else dips)),
        "AR-lossless": measures(phases, around({} if good else dict.fromkeys(MARKS, 200)), doubled=0 if good else 7),
    }


def e4(good: bool) -> Outcome:
    found = {}
    for city, recall in (("DA", 0.9), ("MA", 0.88)):
        for suffix, extended in (("", False), ("-extended", True)):
            of = Of(0.99 if extended else recall, 0.6 if extended else 0.9, {"download": 2.0 if extended else 1.0})
            if not good:
                of = Of(0.7, 0.9, {"download": 1.0})
            found[f"{city}-multi{suffix}"] = measures({"all": of}, whole=of)
            partial = of if good else Of(0.5, 0.7, {"download": 3.0})
            found[f"{city}-partial{suffix}"] = measures({"all": partial}, whole=partial)
    return found


def a1(good: bool) -> Outcome:
    stated = {"RADIAL": (0.98, 1.0), "STE": (0.75, 1.5), "GRID": (0.15, 4.0)}
    wrong = {"RADIAL": (0.9, 1.0), "STE": (0.9, 1.0), "GRID": (0.5, 1.0)}
    found: dict[str, Measures] = {}
    for scheme, (precision, traffic) in (stated if good else wrong).items():
        of = Of(1.0, precision, {"download event": traffic})
        found |= {f"{scheme}-{kind}": measures({"all": of}, whole=of) for kind in ("AR", "LBS", "RND")}
    return found


def a2(good: bool) -> Outcome:
    alphas = (0.5, 1.0, 1.5, 2.0, 2.5)
    recalls = (0.98, 0.985, 0.995, 1.0, 1.0) if good else (1.0, 0.9, 0.9, 0.9, 0.8)
    precisions = (0.9, 0.8, 0.75, 0.7, 0.6) if good else (0.5, 0.6, 0.6, 0.7, 0.8)
    values = zip(alphas, recalls, precisions, strict=True)
    return {f"alpha-{alpha:g}": measures({"all": Of(recall, precision)}) for alpha, recall, precision in values}


def a3(good: bool) -> Outcome:
    factors = (2, 5, 10, 20)
    grids = dict(zip(factors, (0.9, 0.7, 0.4, 0.1) if good else (0.8, 0.9, 0.9, 0.9), strict=True))
    precisions = dict(zip(factors, (0.08, 0.216, 0.373, 0.528) if good else (0.3, 0.3, 0.2, 0.1), strict=True))
    found = {f"GRID-{factor}": measures({"all": Of(recall)}) for factor, recall in grids.items()}
    for factor, precision in precisions.items():
        found[f"EGRID-{factor}"] = measures({"all": Of(1.0 if good else 0.9, precision)})
        found[f"even-EGRID-{factor}"] = measures({"all": Of(1.0, precision)})
    return {**found, "even-GRID-5": measures({"all": Of(0.7 if good else 0.5)})}


def a4(good: bool) -> Outcome:
    recalls = {
        "RADIAL": (1.0, 0.99, 0.98, 0.965, 0.95) if good else (0.9, 0.95, 0.9, 1.0, 1.0),
        "STE": (1.0,) * 5 if good else (0.9,) * 5,
        "GRID": (0.7,) * 5 if good else (0.7, 0.7, 0.6, 0.5, 0.4),
        "EGRID": (1.0,) * 5 if good else (1.0, 1.0, 0.9, 0.8, 0.7),
    }
    found = {}
    for scheme, values in recalls.items():
        told = {"download context": 0.0 if good else 0.1, "upload context": 0.3 if good else 0.6}
        for interval, recall in zip((1, 3, 5, 7, 9), values, strict=True):
            found[f"{scheme}-{interval}s"] = measures({"all": Of(recall, rates=told)})
    return found


def lcn(good: bool) -> Outcome:
    names = ("LPS", "RGRID", "GRID", "RGRID again", "LPS again")
    updates = {"LPS": 1.0, "RGRID": 0.1, "GRID": 0.05} if good else {"LPS": 1.0, "RGRID": 2.0, "GRID": 2.0}
    phases = {
        name: Of(
            (0.6 if name == "GRID" else 1.0) if good else 0.95,
            {"LPS": 1.0, "RGR": 0.3, "GRI": 0.5}[name[:3]] if good else 0.6,
            {"upload context": updates.get(name, 1.0)},
            (100.0 if name.startswith("LPS") else 25.0) if good else 60.0,
            quartiles=(0.25, 0.35) if good else (0.05, 0.9),
            multicast=0.9 if good else 0.1,
        )
        for name in names
    }
    down, up = {"download context": 1.0}, {"upload context": 1.0}
    if good:
        marks = {
            "T1": Around(bursts=down),
            "T2": Around(),
            "T3": Around(bursts=down | up),
            "T4": Around(dip=400, bursts=up),
        }
    else:
        marks = {
            "T1": Around(bursts=up, dip=200),
            "T2": Around(dip=200),
            "T3": Around(first_second=0.2),
            "T4": Around(bursts=down),
        }
    everywhere = dict.fromkeys(MARKS, 400)
    return {
        "transfer": measures(phases, marks, operations=100.0 if good else 25.0),
        "none": measures(phases, around(everywhere if good else {})),
        "lossless": measures(phases, around({} if good else everywhere), doubled=0 if good else 3),
    }


def adaptive(good: bool) -> Outcome:
    def day(megabytes: int, recall: float) -> Measures:
        made = measures({"all": Of(recall)})
        rates = {"download event": Rate(1, megabytes * 1_000_000, 1.0)}
        return msgspec.structs.replace(made, whole=msgspec.structs.replace(made.whole, rates=rates))

    others = {name: day(10, 0.97) for name in (*adaptive_planning.STATIC, *adaptive_planning.RULES)}
    too_coarse = {adaptive_planning.TOO_COARSE: day(5, 0.92 if good else 0.96)}
    return others | too_coarse | {adaptive_planning.ADAPTIVE: day(8, 0.97) if good else day(11, 0.94)}


WORLDS = {
    "lcn": lcn,
    "bypass-e1": e1,
    "bypass-e2": e2,
    "bypass-e3": e3,
    "bypass-e4": e4,
    "bypass-a1": a1,
    "bypass-a2": a2,
    "bypass-a3": a3,
    "bypass-a4": a4,
    "adaptive": adaptive,
    **hybrid_worlds.WORLDS,
    **adhoc_worlds.WORLDS,
    **coexistence_worlds.WORLDS,
    **steam_worlds.WORLDS,
    **thyme_worlds.WORLDS,
    **contextcast_worlds.WORLDS,
    **past_worlds.WORLDS,
    **future_worlds.WORLDS,
}
OF_DOCUMENTS = [each for each in EXPERIMENTS if each.document != "nearcast"]
every_check = pytest.mark.parametrize(
    ("experiment", "number"),
    [(each, number) for each in EXPERIMENTS for number in range(len(each.checks))],
    ids=[check.id for each in EXPERIMENTS for check in each.checks],
)


@every_check
def test_a_world_as_the_documents_say_reproduces_them(
    experiment: Experiment, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partial_transitions, "agreement", lambda _one, _other: 1.0)
    result = judge(experiment.checks[number], [WORLDS[experiment.name](good=True)])
    assert result.verdict in ("reproduced", "not checkable"), result.why
    assert "not met" not in result.why


@every_check
def test_another_world_deviates(experiment: Experiment, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partial_transitions, "agreement", lambda _one, _other: 0.5)
    result = judge(experiment.checks[number], [WORLDS[experiment.name](good=False)])
    assert result.verdict == ("not checkable" if experiment.checks[number].not_checkable else "deviates"), result
    assert [part.name for part in result.parts if part.holds] == [], "a part that holds in both worlds shows nothing"


@every_check
def test_no_verdict_without_its_runs(experiment: Experiment, number: int) -> None:
    assert judge(experiment.checks[number], [{}]).verdict == "not run"


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda each: each.name)
def test_checks_and_figures_speak_of_runs_that_there_are(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partial_transitions, "agreement", lambda _one, _other: 1.0)
    runs = {run.name for run in experiment.all_runs(True)}
    assert runs == {run.name for run in experiment.all_runs(False)}
    for drawing in experiment.drawings:
        assert set(drawing.runs) <= runs
    made = WORLDS[experiment.name](good=True)
    needed = {run for run in made if run in runs}
    assert all(judge(check, [{run: made[run] for run in needed}]).verdict != "not run" for check in experiment.checks)


def test_names_are_those_of_the_contract() -> None:
    numbers = {"e": (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11), "a": (1, 2, 3, 4, 5, 6)}
    bypass = [f"bypass-{kind}{number}" for kind, known in numbers.items() for number in known]
    steam = [f"steam-st{number}" for number in (1, 2, 3, 4, 5)]
    thyme = [f"thyme-th{number}" for number in range(1, 6)]
    contextcast = [f"contextcast-e{number}" for number in range(1, 14)]
    contextcast += ["contextcast-calculated", "contextcast-e16", "contextcast-e18"]
    assert [each.name for each in OF_DOCUMENTS] == ["lcn", *bypass, "bypass-constants", *steam, *contextcast, *thyme]
    assert [check.id for check in BY_NAME["lcn"].checks][:5] == ["L1", "L2", "L3", "L4", "L5"]
    ids = [check.id for each in EXPERIMENTS for check in each.checks]
    assert len(ids) == len(set(ids))


LENGTHS = {
    "lcn": {1800.0},
    # Runs in which there is a radio and nothing changes are shorter (adhoc/crowd.py says why).
    "bypass-e5": {SECONDS},
    "bypass-e6": {SECONDS},
    "bypass-e7": {1500.0, 492.0, SECONDS},
    "bypass-e10": {SECONDS},
    "bypass-a6": {SECONDS},
    "bypass-constants": {SECONDS},
}


def test_quick_runs_are_short_and_full_ones_as_long_as_the_documents() -> None:
    for each in (each for each in OF_DOCUMENTS if each.runs(True)):
        assert max(float(run.scenario.run.duration) for run in each.runs(True)) <= 150.0
        lengths = {float(run.scenario.run.duration) for run in each.runs(False) if not run.name.startswith("even-")}
        assert lengths == LENGTHS.get(each.name, {1500.0})


@pytest.mark.parametrize("name", ["bypass-e6", "bypass-e10", "bypass-e11", "bypass-a6", "bypass-constants"])
def test_figures_say_what_they_measure(name: str) -> None:
    made = WORLDS[name](good=True)
    # The titles of boxes say it: recall and precision have no unit.
    drawings = [each for each in BY_NAME[name].drawings if each.name != "recall-and-precision"]
    unnamed = [each.name for each in drawings if not all(axis.get_ylabel() for axis in each.draw([made]).axes)]
    assert unnamed == []
