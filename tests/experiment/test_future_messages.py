"""E16 and E18 on small overlays, against what can be counted by hand."""

from __future__ import annotations

from random import Random

from nearcast.experiment.contextcast.future import delay, load, reached_by
from nearcast.experiment.contextcast.history import hops, setup
from nearcast.experiment.contextcast.waiting import Overlay

ROUTERS = 40


def test_real_routers_keep_a_message_exactly_where_it_is_counted() -> None:
    """E16 counts ways in the tree; here all components run."""
    overlay = Overlay(3, ROUTERS, nodes=6, devices=1)
    random = Random(1)
    for trial in range(4):
        source = random.choice(overlay.setup.names)
        message = overlay.publish(trial, source)
        overlay.run(2)
        assert overlay.holding(message) == {source}
        present = random.sample(sorted(overlay.devices), trial)
        for node in present:
            overlay.devices[node][0].meet(trial)
        overlay.run(20)
        assert overlay.holding(message) == reached_by(overlay.setup, source, present)
        assert all(message in overlay.devices[node][0].got for node in present)


def test_the_ways_to_some_nodes_are_those_between_them() -> None:
    town = setup(3, ROUTERS)
    source, node = town.names[5], town.names[20]
    assert len(reached_by(town, source, [node])) == hops(town.spanning, source, node) + 1
    assert reached_by(town, source, []) == {source}


def test_the_fewer_are_there_the_more_is_saved() -> None:
    numbers = [load(1, absent=absent, messages=10, routers=400) for absent in (0.0, 0.5, 0.9, 1.0)]
    assert [each["saved"] for each in numbers] == sorted(each["saved"] for each in numbers)
    assert (numbers[0]["saved"], numbers[0]["reached"], numbers[-1]["saved"]) == (0.0, 1.0, 1.0)
    assert numbers[1]["saved on a chain"] < 0.1 < numbers[1]["saved"]
    assert numbers[2]["reached"] >= numbers[2]["addressed"] > 0


def test_nobody_waits_longer_than_a_round_trip_and_later_ones_not_at_all() -> None:
    numbers = delay(2, routers=ROUTERS, trials=3)
    assert 0.5 < numbers["longest"] <= 1.0
    assert numbers["mean"] < numbers["longest"]
    assert numbers["sent for later ones"] == 0
    assert 0 < numbers["until handed over, later ones"] < numbers["until handed over"]
