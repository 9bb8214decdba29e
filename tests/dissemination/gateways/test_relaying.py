"""Events by way of gateways: who gets what from whom, and what is said (BYPASS.KOM 4.3.4)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.dissemination.gateways.town import GatewayTown, OneHop, Options

from nearcast.dissemination.gateways.client import GatewayClient
from nearcast.dissemination.gateways.count import Share
from nearcast.dissemination.gateways.messages import Acknowledgement, Registration, Relay
from nearcast.dissemination.gateways.settings import GatewaySettings
from nearcast.dissemination.wire import EventMessage
from nearcast.errors import InvalidInput, TransitionFailed
from nearcast.metrics import jain_index
from nearcast.runtime.messages import PORT_BYTES, encoded
from nearcast.transition.specification import NULL, MechanismSpec

of = MechanismSpec.of
DKC = GatewaySettings(of("DKC-LEACH"), count=Share(0.2))
TOGETHER = [(10.0 * number, 0.0) for number in range(6)]
"""All of them hear each other."""


def town_of(settings: GatewaySettings, people: list[tuple[float, float]] | None = None, **more: object) -> GatewayTown:
    town = GatewayTown(people or TOGETHER, Options(settings, **more))  # type: ignore[arg-type]
    town.join_all()
    return town


def test_one_gateway_passes_an_event_on_to_all_others() -> None:
    town = town_of(DKC)
    town.publish(0, "e1")
    town.after(3.0)
    assert town.got("e1") == {f"c{number}": 1 for number in range(1, 6)}
    assert town.paths("e1") == {"c1": "cloud", **{f"c{number}": "gateway" for number in (2, 3, 4, 5)}, "c0": "gateway"}
    assert town.sent("relay")[0] == 1
    assert town.sent("event")[0] == 1  # from its publisher
    hops = {row[2]: row[6] for row in town.rows["notifications"] if row[1] == "e1"}
    assert hops == {"c0": 3, "c1": 2, "c2": 3, "c3": 3, "c4": 3, "c5": 3}


def test_the_records_say_who_was_chosen_and_for_how_many() -> None:
    town = town_of(replace(DKC, count=Share(0.4)))
    town.publish(0, "e1")
    town.after(3.0)
    assert [(row[1], row[2], row[4], row[5]) for row in town.rows["gateways"]] == [
        ("e1", gateway, 5, "DKC-LEACH") for gateway in ("c1", "c2")
    ]
    assert sum(row[3] for row in town.rows["gateways"]) == 3
    statistics = town.statistics()
    assert (statistics.events, statistics.gateways, statistics.members) == (1, 2, 3)
    # c1 is nearest to nobody: it got the event directly.
    assert (town.sent("relay")[0], statistics.directly) == (1, 1)


def test_addresses_go_along_only_where_each_member_is_sent_to() -> None:
    sizes = {}
    for addressed in (False, True):
        town = town_of(replace(DKC, addressed=addressed))
        town.publish(0, "e1")
        town.after(3.0)
        assert set(town.got("e1")) == {"c1", "c2", "c3", "c4", "c5"}
        targets = town.component(1, OneHop).spread_to
        assert targets == [("c2", "c3", "c4", "c5") if addressed else None]
        sizes[addressed] = town.sent("relay")[1]
        # Who is not sent to hears nothing.
        assert ("c0" in town.paths("e1")) is not addressed
    assert sizes[True] == sizes[False] + 4 * len("\xa3c2".encode("latin-1"))


def test_how_gateways_reach_others_may_change_at_any_time_and_in_some_places_only() -> None:
    town = town_of(DKC)
    town.handing_over.addressed = lambda gateway: gateway in ("c2", "c3")
    for number in range(3):  # c1, c2 and c3 take turns
        town.publish(0, f"e{number}")
        town.after(2.0)
    assert [town.component(node, OneHop).spread_to[0] is None for node in (1, 2, 3)] == [True, False, False]
    town.handing_over.settings = replace(DKC, count=Share(0.4))
    town.publish(0, "more")
    town.after(2.0)
    assert sum(row[1] == "more" for row in town.rows["gateways"]) == 2
    assert all(len(town.got(name)) == 5 for name in ("e0", "e1", "e2", "more"))


def test_without_a_mechanism_everybody_is_told_directly() -> None:
    town = town_of(replace(DKC, selection=NULL))
    town.publish(0, "e1")
    town.after(2.0)
    assert set(town.paths("e1").values()) == {"cloud"}
    assert len(town.got("e1")) == 5
    assert town.sent("relay")[0] == 0
    assert town.statistics().directly == 5
    assert town.rows["gateways"] == []


def test_an_algorithm_is_exchanged_without_a_word_to_any_client() -> None:
    town = town_of(DKC)
    specs = [of("SKC-LEACH"), of("CS-WCA"), of("DKC-LEACH", cover=True), of("SKC-LEACH", battery=1.0), of("DKC-LEACH")]
    for number, spec in enumerate(specs):
        town.publish(0, f"e{number}")
        town.after(3.0)
        before, services = len(town.rows["messages"]), dict(town.proxy().active.services)
        in_flight = town.cellular.in_flight + town.radio.in_flight
        rounds = town.proxy().active.rounds
        town.exchange(spec)
        assert town.proxy().active.services == services
        assert town.proxy().active.rounds == rounds == number + 1
        assert len(town.rows["messages"]) == before
        assert town.cellular.in_flight + town.radio.in_flight == in_flight
    assert sum(service.times for service in town.proxy().active.services.values()) == len(town.rows["gateways"])
    assert [row[4] for row in town.rows["transitions"] if row[2] == "gateways"] == ["DKC-LEACH", *map(str, specs)]


def test_one_algorithm_goes_on_where_another_has_stopped() -> None:
    town = town_of(DKC)
    for number in range(5):  # one of five each time: an epoch, whichever algorithm
        town.publish(0, f"e{number}")
        town.after(2.0)
        if number == 2:
            town.exchange(of("DKC-LEACH", cover=True))
    assert sorted(row[2] for row in town.rows["gateways"]) == ["c1", "c2", "c3", "c4", "c5"]


def test_what_does_not_exist_leaves_everything_as_it_was() -> None:
    town = town_of(DKC)
    with pytest.raises(TransitionFailed, match="no gateway selection 'CDS'"):
        town.exchange(of("CDS"))
    town.publish(0, "e1")
    town.after(2.0)
    assert len(town.got("e1")) == 5


def test_who_has_not_registered_is_told_directly_and_serves_nobody() -> None:
    town = town_of(replace(DKC, count=Share(1.0)), without=frozenset({"c1", "c2"}))
    town.publish(0, "e1")
    town.after(3.0)
    assert len(town.got("e1")) == 5
    assert {row[2] for row in town.rows["gateways"]} == {"c3", "c4", "c5"}
    assert {town.paths("e1")[client] for client in ("c1", "c2")} == {"cloud"}
    assert town.statistics().registered == 4


def test_where_only_some_filter_schemes_have_gateways_others_are_told_directly() -> None:
    town = town_of(replace(DKC, schemes=frozenset({"ATTRACT"})))
    town.publish(0, "e1")
    town.after(2.0)
    assert len(town.got("e1")) == 5
    assert town.sent("relay")[0] == 0


def test_members_that_are_known_to_be_out_of_reach_are_told_at_once() -> None:
    town = town_of(replace(DKC, reach=80.0), [*TOGETHER, (600.0, 0.0)])
    town.publish(0, "e1")
    town.after(0.5)
    assert town.paths("e1")["c6"] == "cloud"
    assert len(town.got("e1")) == 6
    town.after(3.0)
    assert town.statistics().missed == 0


def test_positions_that_are_too_old_are_no_reason_to_be_served_together() -> None:
    town = town_of(replace(DKC, oldest=0.01))
    town.publish(0, "e1")
    town.after(3.0)
    assert len(town.got("e1")) == 5
    assert town.sent("relay")[0] == 0


def test_the_broker_learns_of_batteries_and_spares_those_that_are_low() -> None:
    batteries = (1.0, 0.9, 0.9, 0.9, 0.1, 0.1)
    town = town_of(replace(DKC, selection=of("DKC-LEACH", battery=1.0)), batteries=batteries)
    for number in range(60):
        town.publish(0, f"e{number}")
        town.after(1.0)
    times = {client: service.times for client, service in town.proxy().active.services.items()}
    assert min(times[client] for client in ("c1", "c2", "c3")) > 4 * max(times[client] for client in ("c4", "c5")) > 0


def test_rotation_is_fair_and_registration_is_all_it_costs() -> None:
    town = town_of(DKC)
    for number in range(20):
        town.publish(0, f"e{number}")
        town.after(1.5)
    turns = [sum(row[2] == f"c{node}" for row in town.rows["gateways"]) for node in range(1, 6)]
    assert jain_index(turns) == 1.0
    # Everybody once when it starts, and again every 5 s.
    assert town.sent("gateway registration")[0] == 6 * (1 + 32 // 5)
    assert town.sent("gateway registered")[0] == 6 * (1 + 32 // 5)


def test_a_broker_that_has_failed_tells_directly_until_it_knows_who_can_be_a_gateway() -> None:
    town = town_of(DKC)
    town.broker.fail()
    town.after(0.2)
    town.broker.join()
    town.after(12.0)
    town.publish(0, "e1")
    town.after(3.0)
    assert town.got("e1") == {f"c{number}": 1 for number in range(1, 6)}
    assert town.sent("relay")[0] == 1


def test_who_has_left_is_forgotten() -> None:
    town = town_of(DKC)
    town.publish(0, "e1")
    town.after(2.0)
    town.hosts[5].leave()
    town.after(1.0)
    assert town.statistics().registered == 5
    assert "c5" not in town.proxy().active.services


def test_a_registration_that_comes_after_the_goodbye_is_not_kept_for_ever() -> None:
    town = town_of(DKC)
    town.hosts[5].leave()
    town.after(1.0)
    town.handing_over._receive("c5", Registration("c5", anew=False))  # cellular links do not keep the order
    town.after(DKC.renewed - 5.0)
    assert town.statistics().registered == 6
    town.after(DKC.renewed / 3 + 5.0)
    assert town.statistics().registered == 5, "the others have registered again"
    assert "c5" not in town.handing_over._renewed


def test_a_registration_that_lapses_spares_nobody_the_answer() -> None:
    """It says no more than that no gateway is to serve the client from now on."""
    town = town_of(replace(DKC, renewed=1.5, deadline=3.5), acknowledgements_lost=1.0)
    town.after(3.2)
    assert town.statistics().registered == 6, "every five seconds, in this town"
    town.publish(0, "e1")
    town.after(3.0)
    assert (town.statistics().registered, town.statistics().waiting) == (0, 1)
    town.after(1.0)
    assert (town.statistics().missed, town.statistics().waiting) == (4, 0)


def test_who_wants_nothing_any_more_says_nothing_any_more() -> None:
    town = town_of(DKC)
    for lives in town.lives.values():
        for held in lives[-1].held:
            held.cancel()
    said = town.sent("gateway registration")[0]
    town.after(20.0)
    assert town.sent("gateway registration")[0] == said


def test_what_it_costs() -> None:
    """What gateways/messages.py says."""
    header, client = 28 + PORT_BYTES, "client-12"
    event = EventMessage(f"{client}/345", "AR", 10**15, client, 49.1, 8.1, bytes(128), local=True)
    assert header + len(encoded(event)) == 225
    assert header + len(encoded(Relay(event))) == 225 + 8
    assert len(encoded(Relay(event, (client,) * 3))) == len(encoded(Relay(event))) + 3 * 10
    for number in (1, 2, 10, 15):
        assert header + len(encoded(Acknowledgement((event.id,) * number))) == 35 + 14 * number


def test_what_comes_within_a_window_is_acknowledged_at_once() -> None:
    town = town_of(DKC)
    for number in range(10):
        town.publish(0, f"e{number}")
        town.after(0.02)  # not all at once: frames would collide
    town.after(3.0)
    for node in range(1, 6):
        statistics = town.component(node, GatewayClient).statistics()
        assert (statistics.acknowledgements, statistics.acknowledged + statistics.relayed) == (1, 10)
    # The publisher, who overhears all of it and does not want its own, has nothing to say.
    assert town.component(0, GatewayClient).statistics().acknowledged == 0
    assert town.statistics().acknowledged == town.statistics().members == 40


@pytest.mark.parametrize(
    "wrong",
    [
        {"window": 1.0, "deadline": 0.5},
        {"doubt": -1.0},
        {"most": 1},
        {"reach": -1.0},
        {"oldest": 0.0},
        {"renewed": 0.0},
    ],
)
def test_settings_that_cannot_be(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        GatewaySettings(**wrong)  # type: ignore[arg-type]
