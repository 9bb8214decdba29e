"""Schemes by name and parameters, and the null scheme."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.filtering.halves import TERRITORY, Ears, place

from nearcast.errors import InvalidScheme
from nearcast.filtering.broker_half import BrokerHalf
from nearcast.filtering.client_half import ClientHalf, Surroundings
from nearcast.filtering.context import ClientContext
from nearcast.filtering.grid import PrivateGridClient
from nearcast.filtering.messages import AssignmentRequest, FromClient
from nearcast.filtering.parameters import Egrid, Radial
from nearcast.filtering.policies import Distance, EveryFix, Frequency, Hybrid
from nearcast.filtering.registry import SCHEMES, client_halves, scheme_of
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.subscription import Subscription
from nearcast.runtime.ports import Fix
from nearcast.transition.null import is_null, null_of
from nearcast.transition.specification import MechanismSpec, Scalar

of = MechanismSpec.of
HERE = Fix(7, place(10, 20), 0.0, 1.0, 90.0)
EVENT = Event("e", "news", 0, place=place(0, 0))


@pytest.mark.parametrize("name", SCHEMES)
def test_every_scheme_has_two_halves_that_understand_each_other(name: str) -> None:
    said: list[FromClient] = []
    ears = Ears()
    surroundings = Surroundings(said.append, lambda: HERE, lambda: 125.0)
    client, broker = client_halves(TERRITORY, surroundings)(of(name)), ears.make(of(name))
    assert not is_null(client)
    broker.adopt("ada", ClientContext())
    broker.subscribe("ada", Subscription("news", area=Circle(125.0)))
    client.moved(HERE)
    assert broker.hear("ada", said[-1])
    assert broker.knows_place("ada")
    for _, answer in ears.said:
        client.receive(answer)
    assert broker.receivers(EVENT, client.channel()) == ["ada"]
    said.clear()
    client.moved(replace(HERE, time=8))
    # Others have been told what they need; that is, in MULTI, the channel of the market.
    assert len(said) == (name in ("RADIAL", "LPS", "STE"))


def test_names_of_the_lcn_paper_are_presets_that_can_be_changed() -> None:
    assert scheme_of(of("LPS")) == scheme_of(of("RADIAL"))
    assert scheme_of(of("RGRID")) == Egrid(cover="circle", remember_location=False)
    assert scheme_of(of("RGRID", cover="box", factor=7)) == Egrid(cover="box", remember_location=False, factor=7)


def test_update_policies_are_chosen_by_name() -> None:
    policies = [Radial(update=name).policy() for name in ("fix", "distance", "frequency", "hybrid")]
    assert [type(policy) for policy in policies] == [EveryFix, Distance, Frequency, Hybrid]


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("radial", {}, "no filter scheme 'radial'; there are RADIAL, LPS, STE"),
        ("RADIAL", {"alpha": 1.0}, "RADIAL: .*unknown field `alpha`; its parameters are update, distance, seconds"),
        ("RADIAL", {"update": "never"}, "update"),
        ("RADIAL", {"distance": 0.0}, "> 0.* at `.*distance`"),
        ("RADIAL", {"seconds": -1}, "> 0.* at `.*seconds`"),
        ("STE", {"alpha": -0.5}, ">= 0.* at `.*alpha`"),
        ("STE", {"angle": 90.0}, "<= 60.* at `.*angle`"),
        ("STE", {"angle": -1.0}, ">= 0.* at `.*angle`"),
        ("GRID", {"factor": 0}, ">= 1.* at `.*factor`"),
        ("GRID", {"factor": 2.5}, "`int`"),
        ("GRID", {"factor": True}, "`int`, got `bool`"),
        ("GRID", {"resolution": 3}, ">= 4.* at `.*resolution`"),
        ("GRID", {"resolution": 16}, "<= 15.* at `.*resolution`"),
        ("GRID", {"margin": 5.0}, "unknown field `margin`"),
        ("EGRID", {"margin": -1.0}, ">= 0.* at `.*margin`"),
        ("EGRID", {"cover": "hull"}, "cover"),
        ("ATTRACT", {"extension": -1.0}, ">= 0.* at `.*extension`"),
        ("MULTI", {"extension": "far"}, "`float`, got `str`"),
        ("MULTI", {"catch_all": True}, "unknown field `catch_all`"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_place_and_the_reason(
    name: str, parameters: dict[str, Scalar], message: str
) -> None:
    with pytest.raises(InvalidScheme, match=message):
        Ears().make(of(name, **parameters))


def test_bounds_are_included_where_they_make_sense() -> None:
    for spec in (of("STE", alpha=0, angle=0), of("GRID", factor=1), of("EGRID", margin=0, resolution=15)):
        assert isinstance(Ears().make(spec), BrokerHalf)


def test_private_clients_are_made_when_asked_for() -> None:
    surroundings = Surroundings(lambda _: None, lambda: None, lambda: 0.0)
    made = [client_halves(TERRITORY, surroundings)(of("GRID", private=private)) for private in (True, False)]
    assert [isinstance(half, PrivateGridClient) for half in made] == [True, False]


def test_calls_on_the_null_broker_half_do_nothing_and_keep_nothing() -> None:
    null: BrokerHalf = null_of(BrokerHalf)
    null.adopt("ada", ClientContext())
    null.subscribe("ada", Subscription("news"))
    assert null.hear("ada", AssignmentRequest(0, 49.0, 8.0)) is False
    null.unsubscribe("ada", "")
    null.greet(["ada"])
    null.members_joined(["ada"])
    null.members_left(["ada"])
    null.start_mechanism()
    null.bootstrap()
    null.stop_mechanism()
    assert null.receivers(EVENT, None) == []
    assert null.receivers(EVENT, "5:1,1") == []
    assert null.knows_place("ada") is False
    null.forget("ada")
    assert not hasattr(null, "contexts")


def test_calls_on_the_null_client_half_do_nothing() -> None:
    null: ClientHalf = null_of(ClientHalf)
    null.moved(HERE)
    null.receive(Ears().said)  # type: ignore[arg-type]  # whatever it is
    null.bootstrap()
    assert null.piggyback() is None
    assert null.channel() is None
    assert null.place(HERE.position) is HERE.position
