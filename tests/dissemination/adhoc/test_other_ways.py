"""What came another way first is news on the radio all the same: each way has a memory of its own, the inbox one of all."""

import pytest
from tests.dissemination.adhoc.village import AROUND, Village, chain, nowhere, of

from nearcast.dissemination.carrier import CarriedEvents
from nearcast.model.subscription import Subscription
from nearcast.runtime.recent import REMEMBERED, Recent
from nearcast.transition.specification import MechanismSpec

ELSEWHERE = Subscription("weather", id="other", no_local=True)


@pytest.mark.parametrize("mechanism", [of("FLOODING"), of("GOSSIP", p=1.0), of("PLAN-B"), of("HYPERG")], ids=str)
def test_it_is_sent_on_and_nobody_is_told_twice(mechanism: MechanismSpec) -> None:
    village = Village(nowhere(4), mechanism, edges=chain(4))
    village.after(0.5)
    event = village.event(0, "e")
    for node in (1, 2):
        village.host(node).component(CarriedEvents).inbox.receive(event, "cloud", 2)
    village.host(0).component(CarriedEvents).publish(event, local=True)
    village.after(1.0)
    assert village.senders("e") == [0, 1, 2, 3]
    assert village.reached("e") == {1, 2, 3}
    assert all(village.listener(node).got == ["e"] for node in (1, 2, 3))
    rows = [(client, path, outcome) for _, _, client, path, outcome, *_ in village.rows["notifications"]]
    assert rows.count(("h1", "wifi", "duplicate")) == rows.count(("h2", "wifi", "duplicate")) == 1


@pytest.mark.parametrize(("wanted", "senders"), [(AROUND, [0, 1, 2]), (ELSEWHERE, [0])])
def test_the_fence_asks_whether_it_is_wanted_not_whether_it_is_new(wanted: Subscription, senders: list[int]) -> None:
    village = Village(nowhere(3), of("FLOODING"), edges=chain(3), subscriptions=[wanted])
    event = village.event(0, "e")
    village.host(1).component(CarriedEvents).inbox.receive(event, "cloud", 2)
    village.host(0).component(CarriedEvents).publish(event, local=True)
    village.after(1.0)
    assert village.senders("e") == senders
    assert village.total("fenced") == (0 if wanted is AROUND else 1)


def test_who_gets_its_own_event_back_by_another_way_may_want_it() -> None:
    village = Village(nowhere(2), of("FLOODING"), edges=chain(2), subscriptions=[Subscription("news", id="all")])
    village.publish(0, "e")
    village.after(1.0)
    assert village.listener(0).got == [], "the echo is no news"
    village.host(0).component(CarriedEvents).inbox.receive(village.event(0, "e"), "cloud", 2)
    assert village.listener(0).got == ["e"]


def test_what_is_known_is_forgotten_after_a_minute_or_two() -> None:
    recent = Recent()
    assert recent.add("e", 5)
    assert not recent.add("e", REMEMBERED)
    assert recent.add("other", REMEMBERED + 5)
    assert "e" in recent
    assert not recent.add("e", 2 * REMEMBERED - 1)
    assert recent.add("later", 2 * REMEMBERED + 5)
    assert "e" not in recent
    assert "other" in recent
    assert recent.add("e", 2 * REMEMBERED + 6)
    assert recent.add("much later", 9 * REMEMBERED)
    assert len(recent) == 1
