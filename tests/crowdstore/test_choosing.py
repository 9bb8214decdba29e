"""A crowd changes its mechanism as a whole, by its size and restlessness, and nothing is lost or doubled by that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from tests.crowdstore import toys
from tests.crowdstore.crowd import Crowd, grid

from nearcast.crowdstore.census import Count
from nearcast.crowdstore.choosing import Choosing, Rule
from nearcast.errors import InvalidPlan
from nearcast.runtime.host import Component
from nearcast.transition.specification import MechanismSpec

RULE = Rule(small=toys.LOCAL, large=toys.KEPT, grown=12, shrunk=6, restless=0.3, calm=0.1, period=10.0, settling=3.0)
PL_SG = MechanismSpec("PL/SG")
NEAR = 10.0
"""Metres between hosts of which each hears all others."""


class Choosers(Crowd):
    def __init__(
        self, places: Sequence[tuple[float, float]], mechanism: MechanismSpec = toys.LOCAL, rule: Rule | None = RULE
    ) -> None:
        self.choosers: dict[str, Choosing] = {}
        self._rule = rule
        super().__init__(places, mechanism, further=self._choosing)

    def _choosing(self, name: str) -> Sequence[Component]:
        self.choosers[name] = Choosing(self._rule)
        return [self.choosers[name]]

    def running(self) -> set[str]:
        return {str(self.stores[name].running) for name, host in self.world.hosts.items() if host.up}


@pytest.fixture(autouse=True)
def _toys(monkeypatch: pytest.MonkeyPatch) -> None:
    toys.known(monkeypatch)


def test_a_rule_changes_above_one_threshold_and_back_below_another() -> None:
    for size, turnover, running, wanted in (
        (13, 0.0, toys.LOCAL, toys.KEPT),
        (11, 0.0, toys.LOCAL, toys.LOCAL),
        (11, 0.0, toys.KEPT, toys.KEPT),
        (5, 0.0, toys.KEPT, toys.LOCAL),
        (5, None, toys.KEPT, toys.KEPT),
        (5, 0.06, toys.LOCAL, toys.KEPT),
        (5, 0.04, toys.LOCAL, toys.LOCAL),
        (5, 0.04, toys.KEPT, toys.KEPT),
    ):
        assert RULE.wanted(running, Count(size, turnover)) == wanted, (size, turnover, running)


def test_a_rule_without_hysteresis_is_refused() -> None:
    for wrong in ({"grown": 3.0, "shrunk": 4.0}, {"rounds": 0}, {"beat": 10.0}, {"calm": 0.9}, {"settling": 0.0}):
        with pytest.raises(InvalidPlan):
            Rule(large=toys.KEPT, **wrong)


def test_a_crowd_that_grows_changes_and_one_that_shrinks_changes_back() -> None:
    crowd = Choosers(grid(5, 4, NEAR))
    hosts = list(crowd.world.hosts.values())
    for host in hosts[4:]:
        host.leave()
    crowd.run(60)
    assert crowd.running() == {"TOY LOCAL"}, "four are few"
    for host in hosts[4:]:
        host.join()
    crowd.run(60)
    assert crowd.running() == {"TOY KEPT"}, "twenty are many"
    for host in hosts[4:]:
        host.leave()
    crowd.run(90)
    assert crowd.running() == {"TOY LOCAL"}


def test_an_exchange_spreads_over_many_hops() -> None:
    crowd = Choosers([(100.0 * number, 0.0) for number in range(12)], rule=None)
    crowd.run(5)
    crowd.choosers["n0"].initiate(toys.KEPT)
    crowd.run(15)
    assert crowd.running() == {"TOY KEPT"}
    sizes = [chooser.statistics().size for chooser in crowd.choosers.values()]
    crowd.run(35)
    sizes = [chooser.statistics().size for chooser in crowd.choosers.values()]
    assert len(set(sizes)) == 1, "all have counted the same, over eleven hops"


def test_who_was_away_follows_when_it_is_back() -> None:
    crowd = Choosers(grid(3, 1, NEAR), rule=None)
    crowd.run(3)
    crowd.world.hosts["n2"].leave()
    crowd.choosers["n0"].initiate(toys.KEPT)
    crowd.run(10)
    crowd.world.hosts["n2"].join()
    crowd.run(10)
    assert crowd.running() == {"TOY KEPT"}


def test_a_mechanism_that_nobody_has_is_neither_initiated_nor_followed() -> None:
    crowd = Choosers(grid(2, 1, NEAR), rule=None)
    crowd.run(3)
    with pytest.raises(InvalidPlan):
        crowd.choosers["n0"].initiate(MechanismSpec("NONSENSE"))
    assert crowd.running() == {"TOY LOCAL"}


@pytest.mark.parametrize(
    ("first", "second"),
    [(toys.LOCAL, toys.KEPT), (toys.KEPT, toys.LOCAL), (PL_SG, toys.KEPT), (toys.KEPT, PL_SG)],
    ids=str,
)
def test_nothing_is_lost_or_doubled_while_mechanisms_are_exchanged(first: MechanismSpec, second: MechanismSpec) -> None:
    crowd = Choosers(grid(4, 2, NEAR), first, rule=None)
    crowd.run(3)
    crowd.subscribe("n1", "goal")
    crowd.publish("n2", "a", "goal")
    crowd.run(2)
    for then in (second, first):
        crowd.choosers["n0"].initiate(then)
        # In the middle of it, some have changed and some have not.
        for number in range(8):
            crowd.publish(f"n{number}", f"{then} {number}", "goal")
            crowd.subscribe(f"n{7 - number}", "goal & !save")
            crowd.run(0.3)
        crowd.unpublish("n2", f"{then} 2")
        crowd.run(20)
        assert crowd.running() == {str(then)}
    crowd.run(10)
    heard = Counter(crowd.heard.notified)
    withdrawn = {key for key, thing in crowd.things.items() if thing.withdrawn is not None}
    expected = {each for each in crowd.expected() if each[1] not in withdrawn}
    assert set(heard) >= expected
    assert all(count == 1 for count in heard.values())
    operations = Counter(operation for operation, outcome in crowd.heard.outcomes if outcome.ok)
    assert operations == {"publish": 17, "subscribe": 17, "unpublish": 2}, "each ends, once"


def test_an_object_whose_owner_has_gone_is_still_served_after_the_exchange() -> None:
    crowd = Choosers(grid(4, 1, NEAR), toys.KEPT, rule=None)
    crowd.run(3)
    metadata = crowd.publish("n0", "photo", "goal", content=b"pixels")
    crowd.run(2)
    crowd.world.hosts["n0"].fail()
    crowd.choosers["n1"].initiate(toys.LOCAL)
    crowd.run(15)
    crowd.download("n3", metadata)
    crowd.run(5)
    assert [outcome.content for name, outcome in crowd.heard.outcomes if name == "download"] == [b"pixels"]
