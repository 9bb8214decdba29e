"""Real crowds go over from PL/SG to DCS and back while operations run, and nothing is lost or doubled by that.

What is promised is written down in ``certain``: of two things that have met in time, each notification comes, once.
"""

from __future__ import annotations

from random import Random

import pytest
from tests.crowdstore.crowd import grid
from tests.crowdstore.going_over import LOCAL, Choosers, cells
from tests.crowdstore.lossy import lossy

from nearcast.crowdstore.choosing import Rule
from nearcast.crowdstore.data_centric.mechanism import DataCentricStorage
from nearcast.crowdstore.objects import Metadata, ObjectKey, SubscriptionKey
from nearcast.errors import InvalidPlan
from nearcast.model.time import EVER, MICROSECONDS, Instant, TimeFrame
from nearcast.transition.specification import MechanismSpec

TAGS = ("goal", "save", "foul", "flag")
FORMULAS = ("goal", "save & !foul", "goal | flag", "!goal & (save | foul)", "flag & !save", "!save")
CELLS = cells(5, 3)
SETTLED = 40 * MICROSECONDS
"""After an exchange: by then the last has followed, and all have told what they have."""

MOMENT = 3 * MICROSECONDS
"""Within that, two things meet while nothing is exchanged."""

BOTH_WAYS = pytest.mark.parametrize(
    ("first", "then"), [(LOCAL, CELLS), (CELLS, LOCAL)], ids=["PL/SG to DCS and back", "DCS to PL/SG and back"]
)


class Match:
    """People in a stadium who do this and that, drawn at random."""

    def __init__(self, crowd: Choosers, seed: int) -> None:
        self.crowd = crowd
        self.random = Random(seed)
        self.exchanges: list[Instant] = []
        self._numbers = 0
        self._subscriptions: list[SubscriptionKey] = []

    def goes_on(self, steps: int, pause: float) -> None:
        for _ in range(steps):
            self._step()
            self.crowd.run(pause)

    def exchange(self, mechanism: MechanismSpec) -> None:
        self.exchanges.append(self.crowd.simulation.now())
        self.crowd.choosers[self._somebody()].initiate(mechanism)

    def _somebody(self) -> str:
        return self.random.choice([name for name, host in self.crowd.world.hosts.items() if host.up])

    def _step(self) -> None:
        crowd, random = self.crowd, self.random
        host, what, now = self._somebody(), random.random(), crowd.simulation.now()
        here = [key for key, thing in crowd.things.items() if thing.withdrawn is None and crowd.world.hosts[key.owner].up]
        ours = [key for key in self._subscriptions if crowd.world.hosts[key.owner].up]
        if what < 0.5 or not here:
            self._numbers += 1
            crowd.publish(host, f"o{self._numbers}", *random.sample(TAGS, random.randint(1, 2)))
        elif what < 0.8 or not ours:
            frame = random.choice([EVER, TimeFrame(now, None), TimeFrame(None, now)])
            self._subscriptions.append(crowd.subscribe(host, random.choice(FORMULAS), frame))
        elif what < 0.92:
            key = random.choice(here)
            crowd.unpublish(key.owner, key.name)
        else:
            ended = random.choice(ours)
            self._subscriptions.remove(ended)
            crowd.unsubscribe(ended.owner, ended)

    def certain(self) -> set[tuple[SubscriptionKey, ObjectKey]]:
        """Of what the oracle says: all but what was withdrawn, or wanted no more, before the crowd had settled."""
        return {pair for pair in self.crowd.expected() if self._met(*pair)}

    def _met(self, wanted: SubscriptionKey, published: ObjectKey) -> bool:
        wish, thing = self.crowd.wishes[wanted], self.crowd.things[published]
        both = max(wish.made, thing.metadata.published)
        over = [time for time in (wish.ended, thing.withdrawn) if time is not None]
        settled = [at + SETTLED for at in self.exchanges if at - MOMENT <= both < at + SETTLED]
        return not over or min(over) > max(settled, default=both + MOMENT)

    def possible(self) -> set[tuple[SubscriptionKey, ObjectKey]]:
        """What may be heard at most: also of what was withdrawn shortly before, while some still ran another mechanism."""
        return {
            (wanted, published)
            for wanted, wish in self.crowd.wishes.items()
            for published, thing in self.crowd.things.items()
            if wish.frame.contains(thing.metadata.published)
            and wish.formula.accepts(thing.metadata.tags)
            and (thing.withdrawn is None or wish.made < thing.withdrawn or self._unsettled(wish.made))
        }

    def _unsettled(self, at: Instant) -> bool:
        return any(exchange <= at < exchange + SETTLED for exchange in self.exchanges)


def all_is_well(match: Match) -> None:
    heard = match.crowd.heard_of()
    assert set(heard) >= match.certain()
    assert set(heard) <= match.possible()
    assert max(heard.values()) == 1
    assert {outcome.failure for _, outcome in match.crowd.heard.outcomes} == {None}, "each operation succeeds"
    assert all(store.statistics().under_way == 0 for store in match.crowd.stores.values())


@BOTH_WAYS
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_while_operations_run_a_crowd_goes_over_and_back_and_nothing_is_lost_or_doubled(
    first: MechanismSpec, then: MechanismSpec, seed: int
) -> None:
    crowd = Choosers(grid(5, 3), first, seed=seed)
    match = Match(crowd, seed)
    crowd.run(15)
    match.goes_on(15, 1.0)
    for target in (then, first):
        match.exchange(target)
        match.goes_on(25, 0.3)  # some have changed, some have not
        crowd.run(50)
        assert crowd.running() == {target.name}
        match.goes_on(5, 3.0)
    crowd.run(10)
    all_is_well(match)
