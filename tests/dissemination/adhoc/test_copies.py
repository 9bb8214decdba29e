"""Copies that a host does not need are counted by the radio and never come up: nothing else may change by that."""

from random import Random
from typing import Any

import pytest
from tests.dissemination.adhoc.test_flooding import OnAir
from tests.dissemination.adhoc.village import of, scattered

from nearcast.dissemination.wire import message_of
from nearcast.runtime.simulation.radio.network import RadioNetwork
from nearcast.transition.specification import NULL, MechanismSpec

MECHANISMS = [of("FLOODING"), of("GOSSIP", p=0.7), of("HYPERG"), of("PLAN-B"), of("BROADCAST")]


def everything(mechanism: MechanismSpec, targets: list[MechanismSpec]) -> dict[str, Any]:
    """All that can be seen of a lively afternoon: events, exchanges, hosts that fail and return."""
    messages: list[tuple[Any, ...]] = []
    village = OnAir(scattered(Random(3), 30, 220.0), mechanism)
    village.network.messages = lambda *row: messages.append(row)
    random = Random(8)
    for number in range(90):
        node = random.randrange(30)
        if number % 30 == 17:
            village.world.hosts[f"h{node}"].fail()
        if village.world.hosts[f"h{node}"].up:
            village.publish(node, f"e{number}")
            if number % 20 == 11:
                village.adhoc(node).initiate(targets[number % len(targets)])
            if number % 20 == 5:
                village.exchange(node, targets[number % len(targets)])
        village.after(0.03)
        village.join(*range(30))
    village.after(1.0)
    return {
        "notifications": village.rows["notifications"],
        "transitions": village.rows["transitions"],
        "messages": messages,
        "traffic": list(village.network.traffic()),
        "statistics": [village.adhoc(node).statistics() for node in range(30)],
        "air": village.network.statistics(),
    }


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_everything_is_the_same_with_and_without(mechanism: MechanismSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    targets = [*MECHANISMS, NULL]
    found = everything(mechanism, targets)
    assert found["messages"]
    monkeypatch.setattr(RadioNetwork, "repeater", lambda *_: None)
    monkeypatch.setattr(RadioNetwork, "once", lambda *_: None)
    without = everything(mechanism, targets)
    for what, rows in without.items():
        assert found[what] == rows, what


@pytest.mark.parametrize("mechanism", [of("FLOODING"), of("GOSSIP")], ids=str)
def test_of_most_events_a_host_sees_one_copy_only(mechanism: MechanismSpec) -> None:
    village = OnAir(scattered(Random(3), 30, 150.0), mechanism)
    for number in range(20):
        village.publish(number, f"e{number}")
        village.after(0.1)
    village.after(1.0)
    unread = sum(village.adhoc(node)._endpoint.unread for node in range(30))
    assert unread == village.total("copies") > 1_000


def test_whoever_runs_something_else_is_heard_whatever_is_known() -> None:
    """A copy with another mark is news, though its event is not."""
    village = OnAir([(0.0, 0.0), (30.0, 0.0), (60.0, 0.0)], of("FLOODING", hesitation=0.0))
    village.publish(0, "e")
    village.after(0.5)
    village.adhoc(2).initiate(of("GOSSIP", p=1.0))
    village.adhoc(2).disseminate(message_of(village.event(0, "e"), local=True))
    village.after(0.5)
    assert {str(village.adhoc(node).running) for node in range(3)} == {"GOSSIP(p=1.0)"}
