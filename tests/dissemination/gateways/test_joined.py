"""Gateways over the ad hoc mechanisms of the house, beside the cloud and the radio for local events: the mode "gateway"."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dissemination.gateways.town import DeafAtTimes, DeafSpreading, GatewayTown, Options
from tests.dissemination.gateways.troubles import Trouble, nobody_is_missed, people, troubles
from tests.effort import examples

from nearcast.dissemination.adhoc.registry import MECHANISMS
from nearcast.dissemination.gateways.client import GatewayClient
from nearcast.dissemination.gateways.count import Density, Share
from nearcast.dissemination.gateways.registry import SELECTIONS
from nearcast.dissemination.gateways.settings import GatewaySettings
from nearcast.dissemination.gateways.spreading import UNICAST
from nearcast.transition.specification import NULL, MechanismSpec

of = MechanismSpec.of
DKC = GatewaySettings(of("DKC-LEACH"), count=Share(0.2))
LINE = [(60.0 * number, 0.0) for number in range(6)]
"""Everybody hears but the next."""


def town_of(mechanism: MechanismSpec, settings: GatewaySettings = DKC, **more: object) -> GatewayTown:
    addressed = replace(settings, addressed=mechanism.name == UNICAST)
    town = GatewayTown(LINE, Options(addressed, mechanism=mechanism, **more))  # type: ignore[arg-type]
    town.join_all()
    return town


@pytest.mark.parametrize(
    ("mechanism", "reached"), [(of("BROADCAST"), {0, 1, 2}), (of("FLOODING"), set(range(6))), (of("UNICAST"), {1, 2})]
)
def test_the_mechanism_says_who_hears_a_gateway(mechanism: MechanismSpec, reached: set[int]) -> None:
    town = town_of(mechanism, replace(DKC, acknowledged=False))
    town.publish(0, "e1")
    town.after(2.0)
    assert set(town.paths("e1")) == {f"c{node}" for node in reached}
    assert town.paths("e1")["c1"] == "cloud"
    assert {town.paths("e1")[f"c{node}"] for node in reached - {1}} == {"gateway"}
    hops = {row[2]: row[6] for row in town.rows["notifications"] if row[1] == "e1"}
    assert hops["c2"] == 3
    if mechanism.name == "FLOODING":
        assert hops["c5"] == 6, "no geofence: whom it is for, the broker has decided"


def test_who_runs_no_mechanism_passes_nothing_on_and_nobody_is_missed() -> None:
    town = town_of(NULL)
    town.publish(0, "e1")
    town.after(2.0)
    assert town.got("e1") == {f"c{node}": 1 for node in range(1, 6)}
    assert set(town.paths("e1").values()) == {"cloud"}
    assert town.statistics().missed == 4


def test_what_came_by_radio_first_is_acknowledged_and_passed_on_all_the_same() -> None:
    town = town_of(of("FLOODING"), local=of("FLOODING"))
    for number in range(5):
        town.publish(0, f"e{number}")
        town.after(2.0)
        assert town.got(f"e{number}") == {f"c{node}": 1 for node in range(1, 6)}
        assert {town.paths(f"e{number}")[f"c{node}"] for node in range(1, 6)} == {"wifi"}
    statistics = town.statistics()
    assert (statistics.acknowledged, statistics.missed) == (20, 0)
    # By its own memory each way has seen every event, once.
    spread = [town.component(node, DeafSpreading).statistics() for node in range(6)]
    assert sum(each.forwarded + each.published for each in spread) == 30
    assert town.component(0, GatewayClient).statistics().acknowledged == 0, (
        "it hears what it has published, and is no member"
    )


def test_who_hears_what_is_not_for_it_says_nothing_whichever_way_it_came_first() -> None:
    town = town_of(of("FLOODING"), local=of("FLOODING"))
    [held] = town.lives["c3"][-1].held
    held.cancel()
    town.after(0.5)
    for number in range(3):
        town.publish(0, f"e{number}")
        town.after(2.0)
    rows = [(row[1], row[3], row[4]) for row in town.rows["notifications"] if row[2] == "c3"]
    assert rows == [
        (f"e{n}", path, what) for n in range(3) for path, what in (("wifi", "unwanted"), ("gateway", "duplicate"))
    ]
    assert town.component(3, GatewayClient).statistics().acknowledged == 0
    assert town.statistics().missed == 0


def test_two_ways_that_run_the_same_mechanism_do_not_take_each_others_frames_for_copies() -> None:
    town = town_of(of("FLOODING"), local=of("FLOODING"))
    town.publish(0, "e1")
    town.after(2.0)
    for node in range(6):
        host = town.hosts[node].host
        assert host is not None
        carriers = [part for part in host.components if isinstance(part, DeafAtTimes)]
        assert [part.settings.name for part in carriers] == ["lc", "gw"]
        # A frame of each neighbour, one of which was the first; the publisher and the gateway have heard of no first one.
        neighbours = 1 if node in (0, 5) else 2
        assert carriers[0].statistics().copies == neighbours - (node != 0)
        assert carriers[1].statistics().copies == neighbours - (node != 1)


@pytest.mark.parametrize("selection", sorted(SELECTIONS))
@pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
@examples(3)
@given(
    places=people,
    happening=troubles,
    unheard=st.sampled_from([0.0, 0.2, 0.7]),
    lost=st.sampled_from([0.0, 0.3]),
    count=st.sampled_from([Share(0.1), Share(0.4), Density(0.9)]),
    local=st.sampled_from([None, of("GOSSIP"), of("FLOODING")]),
    silent=st.sets(st.integers(1, 11), max_size=2),
    seed=st.integers(0, 999),
)
def test_nobody_with_coverage_is_missed_and_nobody_is_told_twice(
    selection: str,
    mechanism: str,
    places: list[tuple[int, int]],
    happening: list[Trouble],
    unheard: float,
    lost: float,
    count: Share | Density,
    local: MechanismSpec | None,
    silent: set[int],
    seed: int,
) -> None:
    options = Options(
        GatewaySettings(of(selection), count=count, addressed=mechanism == UNICAST),
        acknowledgements_lost=lost,
        silent=frozenset(f"c{node}" for node in silent),
        mechanism=of(mechanism),
        local=local,
        unheard=unheard,
        seed=seed,
    )
    nobody_is_missed(options, places, happening, events=4)
