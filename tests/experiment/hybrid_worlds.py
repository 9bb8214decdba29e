"""Outcomes of the experiments of hybrid modes and of gateways, as the documents state them, and others."""

from __future__ import annotations

import msgspec
from tests.experiment.synthetic import Part as Of
from tests.experiment.synthetic import measures

from nearcast.experiment.checks import Outcome
from nearcast.experiment.gatewaying import CANDIDATES, DELIVERIES, FAIRNESS, GATEWAYS, MOST_DELIVERIES
from nearcast.experiment.hybrid.gateways import ACKNOWLEDGED, DENSITY, MECHANISMS, SELECTIONS, WITHOUT, name_of
from nearcast.experiment.hybrid.modes import ELSEWHERE, MODES, VARIANTS, WORKLOADS
from nearcast.experiment.measures import Measures


def _all(of: Of) -> Measures:
    return measures({"all": of}, whole=of)


def e6(good: bool) -> Outcome:
    def mode(recall: float, download: float, *, precision: float = 0.95, delay: float = 0.2) -> Measures:
        return _all(Of(recall, precision, {"download event": download, "upload event": 10.0}, delay=delay))

    found: dict[str, Measures] = {}
    for name in MODES:
        found |= {f"{name}-{kind}": mode(0.98, 100.0, delay=0.2 if good else 0.1) for kind in WORKLOADS}
    cloud = 0.98 if good else 0.999
    found["CLOUD-AR"] = mode(cloud, 100.0, delay=0.2 if good else 0.1)
    found["AD-HOC-AR"] = mode(0.85 if good else 0.5, 0.0, precision=0.7 if good else 0.3)
    found["AD-HOC-LBS"] = mode(0.2 if good else 0.9, 0.0)
    found["OFFLOAD-AR"] = mode(0.8 if good else 0.99, 0.0 if good else 10.0)
    found["AUGMENT-AR"] = mode(0.99 if good else 0.9, 100.0 if good else 50.0)
    share = 25.0 if good else 120.0
    found |= {f"GATEWAY-{kind}": mode(0.99 if good else 0.9, share) for kind in WORKLOADS}
    found |= {name: mode(0.99 if good else 0.8, share) for name in VARIANTS}
    if not good:
        found |= {f"{name}-{kind}": mode(0.7, 100.0) for name in ("OFFLOAD", "AUGMENT") for kind in ELSEWHERE}
    found["CLOUD-streets"] = mode(0.98, 50.0)
    found["GATEWAY-streets"] = mode(0.98, 20.0 if good else 60.0)
    return found


def e10(good: bool) -> Outcome:
    def with_gateways(recall: float, download: float, **numbers: float) -> Measures:
        made = _all(Of(recall, 0.8, {"download event": download, "upload event": 10.0}))
        return msgspec.structs.replace(made, numbers=numbers)

    found = {WITHOUT: _all(Of(0.99, 0.9, {"download event": 100.0, "upload event": 10.0}))}
    fairness = (
        {"DKC-LEACH": 0.8, "SKC-LEACH": 0.85, "CS-WCA": 0.85}
        if good
        else {"DKC-LEACH": 0.9, "SKC-LEACH": 0.7, "CS-WCA": 0.4}
    )
    for selection in SELECTIONS:
        for mechanism in MECHANISMS:
            chosen = 5.0 if mechanism == "GOSSIP" else 8.0 if selection == "CS-WCA" else 10.0
            recall = 0.97 if good and selection == "CS-WCA" else 0.98 if good or selection != "CS-WCA" else 0.99
            download = {"GOSSIP": 36.0, "BROADCAST": 50.0, "UNICAST": 55.0}[mechanism]
            numbers = {
                GATEWAYS: chosen if good else 20.0,
                CANDIDATES: 25.0,
                FAIRNESS: fairness[selection],
                DELIVERIES: 2.5,
                MOST_DELIVERIES: 4.0 if good else 1.1,
            }
            found[name_of(selection, mechanism)] = with_gateways(recall, download if good else 110.0, **numbers)
    for name, deliveries in ((ACKNOWLEDGED, 2.5), (DENSITY, 1.5 if good else 2.5)):
        found[name] = with_gateways(0.99 if good else 0.9, 50.0 if good else 120.0, **{DELIVERIES: deliveries})
    return found


WORLDS = {"bypass-e6": e6, "bypass-e10": e10}
