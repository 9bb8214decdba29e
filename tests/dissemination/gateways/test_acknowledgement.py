"""With acknowledgement nobody who has coverage is missed, whatever becomes of gateways; and nobody is told twice."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dissemination.cloud_town import QUICK
from tests.dissemination.gateways.town import GatewayTown, Options
from tests.dissemination.gateways.troubles import Trouble, nobody_is_missed, people, troubles
from tests.effort import examples

from nearcast.dissemination.gateways.client import GatewayClient
from nearcast.dissemination.gateways.count import Density, Share
from nearcast.dissemination.gateways.settings import GatewaySettings
from nearcast.runtime.simulation.cellular_profile import BYPASS, CellularProfile, Outage
from nearcast.transition.specification import NULL, MechanismSpec

of = MechanismSpec.of
DKC = GatewaySettings(of("DKC-LEACH"), count=Share(0.2))
HALF = [(10.0 * number, 0.0) for number in range(4)] + [(300.0 + 10.0 * number, 0.0) for number in range(4)]
"""Two groups that do not hear each other."""


def town_of(
    settings: GatewaySettings = DKC, people: list[tuple[float, float]] | None = None, **more: object
) -> GatewayTown:
    town = GatewayTown(people or HALF, Options(settings, **more))  # type: ignore[arg-type]
    town.join_all()
    return town


def test_without_acknowledgement_members_out_of_reach_are_missed() -> None:
    town = town_of(replace(DKC, acknowledged=False, count=Share(0.1)))
    town.publish(0, "e1")
    town.after(5.0)
    assert set(town.got("e1")) == {"c1", "c2", "c3"}
    assert town.sent("got")[0] == 0


def test_with_acknowledgement_they_are_told_directly_after_the_deadline() -> None:
    town = town_of(replace(DKC, count=Share(0.1)))
    town.publish(0, "e1")
    town.after(0.9)
    assert set(town.got("e1")) == {"c1", "c2", "c3"}
    town.after(0.5)  # the event to the broker, the deadline of a second, and down
    assert town.got("e1") == {f"c{number}": 1 for number in range(1, 8)}
    assert {town.paths("e1")[f"c{number}"] for number in (4, 5, 6, 7)} == {"cloud"}
    assert town.statistics().missed == 4


def test_who_was_missed_again_and_again_is_told_directly_for_a_while_and_then_gets_another_chance() -> None:
    town = town_of(replace(DKC, count=Share(0.1), doubt=10.0))
    for number in range(3):
        assert town.statistics().doubtful == 0
        town.publish(0, f"e{number}")
        town.after(2.0)
    # The first two gateways reach those beside them, the third one is over there: to the others it is a matter of chance.
    assert town.statistics().doubtful == 4
    town.publish(0, "soon")
    town.after(0.5)
    assert len(town.got("soon")) == 7, "without waiting for the deadline"
    town.after(10.0)
    assert town.statistics().doubtful == 0
    missed = town.statistics().missed
    town.publish(0, "again")
    town.after(2.0)
    assert len(town.got("again")) == 7
    assert town.statistics().missed > missed


def test_whoever_was_reached_once_is_trusted_again() -> None:
    town = town_of(replace(DKC, count=Share(0.1)), [(10.0 * number, 0.0) for number in range(8)])
    town.world.motion.put(7, 1_000.0, 0.0)
    for number in range(2):
        town.publish(0, f"e{number}")
        town.after(1.5)
    town.world.motion.put(7, 70.0, 0.0)
    town.publish(0, "near")
    town.after(1.5)
    assert town.paths("near")["c7"] == "gateway"
    town.world.motion.put(7, 1_000.0, 0.0)
    for number in range(2):
        town.publish(0, f"far{number}")
        town.after(1.5)
    assert town.statistics().missed == 4
    assert town.statistics().doubtful == 0


@pytest.mark.parametrize("when", [0.0, 0.15, 0.19, 0.205, 0.3])
def test_a_gateway_that_fails_takes_nothing_with_it(when: float) -> None:
    people = [(10.0 * number, 0.0) for number in range(6)]
    town = town_of(DKC, people)
    town.publish(0, "e1")
    town.at(when, town.hosts[1].fail)  # the first one to be chosen
    town.after(3.0)
    assert town.got("e1").keys() >= {"c2", "c3", "c4", "c5"}
    assert set(town.got("e1").values()) == {1}


def test_a_gateway_that_passes_nothing_on_is_soon_none_any_more() -> None:
    people = [(10.0 * number, 0.0) for number in range(6)]
    town = town_of(replace(DKC, doubt=60.0), people, silent=frozenset({"c1", "c3"}))
    for number in range(40):
        town.publish(0, f"e{number}")
        town.after(1.5)
        assert town.got(f"e{number}") == {f"c{node}": 1 for node in range(1, 6)}
    chosen = [row[2] for row in town.rows["gateways"]]
    assert (chosen.count("c1"), chosen.count("c3")) == (3, 3)
    assert chosen[-20:].count("c2") + chosen[-20:].count("c4") + chosen[-20:].count("c5") == 20


@pytest.mark.parametrize("leaves", [True, False], ids=["goodbye", "started anew"])
def test_nothing_is_held_against_a_gateway_that_has_gone(leaves: bool) -> None:
    """Its failure would be kept for ever: the broker forgets each client once."""
    town = town_of(DKC, [(10.0 * number, 0.0) for number in range(6)], silent=frozenset({"c1"}))
    town.publish(0, "e1")
    town.after(0.3)
    if leaves:
        town.hosts[1].leave()
    else:
        town.hosts[1].fail()
        town.hosts[1].join()
    town.after(3.0)
    assert town.statistics().missed == 4
    assert "c1" not in town.handing_over._expected._silent._failures


def test_if_all_acknowledgements_are_lost_everything_is_sent_and_nothing_seen_twice() -> None:
    town = town_of(replace(DKC, doubt=0.0), [(10.0 * number, 0.0) for number in range(6)], acknowledgements_lost=1.0)
    for number in range(5):
        town.publish(0, f"e{number}")
        town.after(2.0)
        assert town.got(f"e{number}") == {f"c{node}": 1 for node in range(1, 6)}
    assert town.statistics().missed == 20
    assert town.statistics().acknowledged == 0
    assert {row[4] for row in town.rows["notifications"]} == {"delivered", "duplicate", "unwanted"}


def test_who_hears_of_no_wish_for_acknowledgements_is_told_all_the_same() -> None:
    # The answer to its registration is lost; the registration was not, and so others may serve it.
    profile = CellularProfile(uplink=QUICK, downlink=QUICK, outages=(Outage(0.15, 0.5, frozenset({"c3"})),))
    town = town_of(DKC, [(10.0 * number, 0.0) for number in range(6)], profile=profile)
    assert town.component(3, GatewayClient)._window is None
    town.publish(0, "e1")
    town.after(2.0)
    assert town.got("e1") == {f"c{node}": 1 for node in range(1, 6)}
    assert town.statistics().missed == 1


def test_an_algorithm_that_is_exchanged_meanwhile_loses_nothing() -> None:
    town = town_of(replace(DKC, count=Share(0.1)))
    for number, spec in enumerate([of("CS-WCA"), NULL, of("SKC-LEACH"), of("DKC-LEACH")]):
        town.publish(0, f"e{number}")
        town.at(0.15, lambda spec=spec: town.exchange(spec))  # type: ignore[misc]
        town.after(3.0)
        assert town.got(f"e{number}") == {f"c{node}": 1 for node in range(1, 8)}


def test_who_was_started_anew_is_not_told_what_it_had_got_in_its_former_life() -> None:
    town = town_of(replace(DKC, deadline=2.0), [(10.0 * number, 0.0) for number in range(6)])
    town.publish(0, "e1")
    town.after(0.25)
    assert "c4" in town.got("e1")
    town.hosts[4].fail()  # before it could acknowledge
    town.after(0.2)
    town.hosts[4].join()
    town.after(4.0)
    assert town.got("e1")["c4"] == 1


def test_it_costs_less_than_to_tell_everybody() -> None:
    people = [(15.0 * (number % 5), 15.0 * (number // 5)) for number in range(20)]
    sizes = {}
    for name, settings in {"directly": replace(DKC, selection=NULL), "gateways": DKC}.items():
        town = town_of(settings, people, profile=BYPASS)
        for number in range(100):
            town.publish(number % 20, f"e{number}", bytes(128))
            town.after(0.05)
        town.after(3.0)
        assert all(len(town.got(f"e{number}")) == 19 for number in range(100))
        rows = [row for row in town.rows["messages"] if row[3] in ("event", "relay", "got")]
        sizes[name] = sum(row[6] for row in rows if row[2] == "cellular" and (row[4] == "broker" or row[3] == "got"))
    # 0.27: four relays instead of 19 events, and the acknowledgements of the other 15.
    assert sizes["gateways"] < 0.3 * sizes["directly"]


@pytest.mark.parametrize("selection", [of("DKC-LEACH"), of("SKC-LEACH"), of("CS-WCA")], ids=str)
def test_who_walks_out_of_range_unseen_is_told_all_the_same(selection: MechanismSpec) -> None:
    town = town_of(replace(DKC, selection=selection), [(10.0 * number, 0.0) for number in range(8)])
    for number in range(8):
        # Between its last report and the event: the broker believes it where it was.
        town.world.motion.put(number, 1_000.0 + 200.0 * number, 0.0)
        town.publish(0, f"e{number}")
        town.after(2.0)
        assert town.got(f"e{number}") == {f"c{node}": 1 for node in range(1, 8)}


settings = st.builds(
    GatewaySettings,
    selection=st.sampled_from([of("DKC-LEACH"), of("SKC-LEACH"), of("CS-WCA"), of("DKC-LEACH", cover=True)]),
    count=st.sampled_from([Share(0.1), Share(0.2), Share(0.4), Density(0.9)]),
    addressed=st.booleans(),
    reach=st.sampled_from([None, 88.0]),
    doubt=st.sampled_from([0.0, 1.0]),
)


@examples(60)
@given(
    people,
    troubles,
    settings,
    st.sampled_from([0.0, 0.3, 1.0]),
    st.sets(st.integers(1, 11), max_size=3),
    st.integers(0, 999),
)
def test_nobody_with_coverage_is_missed_and_nobody_is_told_twice(
    places: list[tuple[int, int]],
    happening: list[Trouble],
    how: GatewaySettings,
    lost: float,
    silent: set[int],
    seed: int,
) -> None:
    options = Options(
        how,
        acknowledgements_lost=lost,
        silent=frozenset(f"c{node}" for node in silent),
        seed=seed,
    )
    nobody_is_missed(options, places, happening, events=5)
