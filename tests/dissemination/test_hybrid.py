"""Which events go which way (BYPASS.KOM 4.3.2, Table 7)."""

from typing import Any

import pytest

from nearcast.dissemination.carrier import Carrier
from nearcast.dissemination.cloud_messages import Subscribe, SubscribeReachable, SubscriptionMessage
from nearcast.dissemination.hybrid import HybridEvents
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.records.writer import RecordWriter
from nearcast.runtime.host import Host
from nearcast.runtime.links import SENT
from nearcast.runtime.messages import encoded
from nearcast.runtime.observers import Observers
from nearcast.scenario.reading import parse
from nearcast.scenario.simulation import RecordedRun

HERE = Point(49.8728, 8.6512)


class Noted(Carrier):
    def __init__(self) -> None:
        self.carried: list[tuple[str, bool]] = []

    def start(self, host: Host) -> None:
        raise NotImplementedError

    def carry(self, event: Event, *, local: bool) -> None:
        self.carried.append((event.id, local))


@pytest.mark.parametrize(
    ("mode", "ad_hoc", "cloud"),
    [
        ("offload", ["local"], ["elsewhere", "nowhere"]),
        ("augment", ["local"], ["local", "elsewhere", "nowhere"]),
        ("gateway", ["local"], ["local", "elsewhere", "nowhere"]),
        ("adhoc", ["local", "elsewhere", "nowhere"], []),
        ("cloud", [], ["local", "elsewhere", "nowhere"]),
        ("broadcast", ["local", "elsewhere", "nowhere"], []),
        ("both", ["local", "elsewhere", "nowhere"], ["local", "elsewhere", "nowhere"]),
    ],
)
def test_the_table(mode: str, ad_hoc: list[str], cloud: list[str]) -> None:
    by_radio, by_broker = Noted(), Noted()
    service = HybridEvents(mode, ad_hoc=[by_radio], cloud=[by_broker])
    service.publish(Event("local", "t", 0, place=HERE), local=True)
    service.publish(Event("elsewhere", "t", 0, place=HERE))
    service.publish(Event("nowhere", "t", 0))
    assert [name for name, _ in by_radio.carried] == ad_hoc
    assert [name for name, _ in by_broker.carried] == cloud
    assert all(local == (name == "local") for name, local in by_radio.carried + by_broker.carried)


SMALL = """
[run]
duration = "10 s"
[clients]
number = 15
[world]
kind = "plain"
width = "150 m"
height = "150 m"
[mobility]
model = "standing"
[[workload]]
kind = "{workload}"
"""


def ran(mode: str, workload: str = "AR", more: str = "") -> dict[str, Any]:
    rows: list[tuple[Any, ...]] = []
    observers = Observers()
    observers.analyze("notifications", lambda *row: rows.append(row))
    scenario = parse(f'delivery.mechanism = "{mode}"\n{more}\n' + SMALL.format(workload=workload))
    run = RecordedRun(scenario, 1, observers, RecordWriter(None))
    run.begin()
    run.advance(10.0)
    sent: dict[tuple[str, str], int] = {}
    for network in run.assembly.networks:
        for row in network.traffic():
            if row.direction == SENT:
                sent[row.interface, row.kind] = sent.get((row.interface, row.kind), 0) + row.messages
    paths = {(path, outcome) for _, _, _, path, outcome, *_ in rows}
    delivered = [(event, client) for _, event, client, _, outcome, *_ in rows if outcome == "delivered"]
    return {"sent": sent, "paths": paths, "delivered": delivered}


def test_offloading_sends_no_local_event_to_the_cloud() -> None:
    found = ran("offload")
    assert found["sent"]["wifi", "ad hoc event"] > 150
    assert ("cellular", "event") not in found["sent"]
    assert {path for path, _ in found["paths"]} == {"wifi"}
    elsewhere = ran("offload", "RND")
    assert elsewhere["sent"]["cellular", "event"] >= 140
    assert ("wifi", "ad hoc event") not in elsewhere["sent"]


def test_augmenting_brings_every_event_once_whichever_way_is_faster() -> None:
    found = ran("augment")
    assert found["sent"]["cellular", "event"] >= 140
    assert found["sent"]["wifi", "ad hoc event"] > 150
    assert len(found["delivered"]) == len(set(found["delivered"]))
    assert ("wifi", "delivered") in found["paths"]
    assert ("cloud", "duplicate") in found["paths"]
    cloud = ran("cloud")
    assert set(cloud["delivered"]) <= set(found["delivered"])


def test_by_way_of_gateways_the_same_events_come_over_fewer_cellular_messages() -> None:
    found, augmented = ran("gateway"), ran("augment")
    assert set(found["delivered"]) == set(augmented["delivered"])
    assert len(found["delivered"]) == len(set(found["delivered"]))
    assert {path for path, _ in found["paths"]} == {"wifi", "cloud", "gateway"}
    # Of up to fourteen receivers of an event, two fifths are gateways, and one of them may have nobody to serve.
    told = found["sent"]["cellular", "relay"] + found["sent"]["cellular", "event"]
    assert 0 < found["sent"]["cellular", "relay"] < told < 0.6 * augmented["sent"]["cellular", "event"]
    elsewhere = ran("gateway", "RND")
    assert {path for path, _ in elsewhere["paths"]} == {"cloud", "gateway"}, "only local events go by the other way"


def test_in_hybrid_modes_the_cloud_is_told_of_two_addresses() -> None:
    told = {mode: ran(mode)["sent"] for mode in ("cloud", "offload", "augment", "gateway")}
    for mode, address in (("cloud", 0), ("offload", 15), ("augment", 15), ("gateway", 0)):
        assert told[mode].get(("cellular", "subscription 2"), 0) == address
        assert told[mode].get(("cellular", "subscription"), 0) == 15 - address
    assert told["gateway"]["cellular", "gateway registration"] == 15
    content = SubscriptionMessage("s", "AR", 125.0, None, True)
    plain, reachable = encoded(Subscribe(content)), encoded(SubscribeReachable(content, local="client-12"))
    assert len(reachable) - len(plain) == len("client-12") + 1 + len(" 2")


def test_a_broadcast_is_what_it_was() -> None:
    found = ran("broadcast", more='[adhoc.mechanism]\nkind = "FLOODING"')
    assert 140 <= found["sent"]["wifi", "ad hoc event"] <= 150, "nobody sends anything on"
