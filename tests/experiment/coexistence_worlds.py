"""Outcomes of E9 and E11 that never took place: as the document says, and otherwise."""

from __future__ import annotations

import msgspec
from tests.experiment.synthetic import Part as Of
from tests.experiment.synthetic import measures

from nearcast.experiment.checks import Outcome
from nearcast.experiment.coexistence import ad_hoc, density
from nearcast.experiment.measures import Measures
from nearcast.experiment.plans import CITIES


def _with(of: Of, **numbers: float) -> Measures:
    named = {name.replace("_", " "): value for name, value in numbers.items()}
    return msgspec.structs.replace(measures({"all": of}, whole=of), numbers=named)


def e9(good: bool) -> Outcome:
    found: dict[str, Measures] = {}
    for kind in ad_hoc.KINDS:
        for way in ad_hoc.WAYS:
            local = good and kind == "AR" and way != "cloud"
            found[f"{kind}-{way}"] = _with(
                Of(
                    0.9 if way == "cx-without-cloud" and good else (0.95 if way == "cx" else 0.99),
                    0.9 if good and way == "cx" else 0.98,
                ),
                delay=150.0 if local else (200.0 if good else 240.0 if way == "cloud" else 270.0),
                delay_inside=20.0 if local else 200.0,
                coordination_share=0.0005 if good else 0.002,
                cellular_upload={"cloud": 10.0, "cx": 10.0, "cx-without-cloud": 7.0 if good else 10.0}[way],
                cellular_download={"cloud": 100.0, "cx": 120.0 if good else 90.0}.get(way, 90.0),
            )
    return found


def e11(good: bool) -> Outcome:
    def run(threshold: int, *, calm: bool = False, healing: bool = False) -> Measures:
        worse = 0.0 if good else 0.03 * threshold + 0.1 * healing
        # Where points switch more often, central coordination costs more, and otherwise less.
        switches = 12.0 - threshold
        central = 1.0 + 0.05 * switches if good else 0.08 * threshold
        return _with(
            Of(0.95 - worse, 0.9 - worse),
            exchanges_at_points=1.0 if good else 0.9,
            share_at_points=0.35 if good else 0.1,
            brief=0.5 if good else 0.1,
            switches_a_minute=(0.5 if calm and good else 1.0) * switches,
            points_never_crowded=1.0 if good else 23.0,
            coordination=(1.0 if good else 0.1 * threshold) if healing else central,
            coordination_share=0.0005 if good else 0.002,
            agreeing=0.98 if good else 0.8 if healing else 1.0,
            recall_inside=0.99 - worse,
            delay_inside=10.0 if good else 10.0 + threshold + 5.0 * healing,
        )

    found: dict[str, Measures] = {}
    for city in CITIES:
        found |= {density._central(city, each): run(each) for each in density.THRESHOLDS}
        found |= {density._healing(city, each): run(each, healing=True) for each in density.HEALING}
        found |= {density._calm(city, each): run(each, calm=True) for each in density.HEALING}
    return found


WORLDS = {"bypass-e9": e9, "bypass-e11": e11}
