"""Old schemes that go on for those whom the new one does not know well enough."""

from __future__ import annotations

from tests.filtering.halves import Ears, of, place

from nearcast.filtering.broker_half import BrokerHalf
from nearcast.filtering.context import ClientContext
from nearcast.filtering.overlap import Overlaps
from nearcast.model.event import Event
from nearcast.model.subscription import Subscription


def half_with(*clients: str) -> BrokerHalf:
    half = Ears().make(of("RADIAL"))
    for client in clients:
        half.adopt(client, ClientContext({"": Subscription("news")}, 1, position=place(0, 0)))
    return half


EVENT = Event("e", "news", 0)


def test_clients_are_served_until_they_have_arrived_in_the_new_scheme() -> None:
    overlaps = Overlaps()
    overlaps.begin(half_with("ada", "bob"), clock=3, until=100)
    assert sorted(overlaps.receivers(EVENT, None)) == ["ada", "bob"]
    overlaps.arrived("ada", 2)  # it speaks, but of an older plan
    assert overlaps.serve("ada")
    overlaps.arrived("ada", 3)
    assert (overlaps.serve("ada"), overlaps.serve("bob")) == (False, True)
    assert overlaps.receivers(EVENT, None) == ["bob"]
    overlaps.arrived("bob", 4)
    assert len(overlaps) == 0


def test_they_are_served_no_longer_than_agreed() -> None:
    overlaps = Overlaps()
    overlaps.begin(half_with("ada"), clock=1, until=100)
    overlaps.expire(99)
    assert overlaps.receivers(EVENT, None) == ["ada"]
    overlaps.expire(100)
    assert (len(overlaps), overlaps.receivers(EVENT, None)) == (0, [])


def test_who_is_in_several_is_found_once() -> None:
    overlaps = Overlaps()
    overlaps.begin(half_with("ada", "bob"), clock=1, until=100)
    overlaps.begin(half_with("bob", "cem"), clock=2, until=200)
    assert sorted(overlaps.receivers(EVENT, None)) == ["ada", "bob", "cem"]
    assert len(overlaps.halves_of("bob")) == 2
    overlaps.arrived("bob", 1)
    assert len(overlaps.halves_of("bob")) == 1
    overlaps.forget(["bob", "ada"])
    assert len(overlaps) == 1
    assert overlaps.receivers(EVENT, None) == ["cem"]
