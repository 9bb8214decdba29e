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
from nearcast.crowdstore.objects import CrowdSubscription, Metadata, ObjectKey, Publication, SubscriptionKey
from nearcast.crowdstore.publish_local.mechanism import PublishLocalStorage
from nearcast.crowdstore.storage import DONE, Done, Failure, Outcome
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
        here = [
            key for key, thing in crowd.things.items() if thing.withdrawn is None and crowd.world.hosts[key.owner].up
        ]
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
        """What may be heard at most: also of what was withdrawn shortly before, while some had not heard that, or ran another mechanism."""
        return {
            (wanted, published)
            for wanted, wish in self.crowd.wishes.items()
            for published, thing in self.crowd.things.items()
            if wish.frame.contains(thing.metadata.published)
            and wish.formula.accepts(thing.metadata.tags)
            and (thing.forgotten is None or wish.made < thing.forgotten or self._unsettled(wish.made))
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


@BOTH_WAYS
@pytest.mark.parametrize("seed", [1, 2])
def test_with_losses_and_hosts_that_come_and_go_nothing_is_doubled_and_little_missing(
    first: MechanismSpec, then: MechanismSpec, seed: int
) -> None:
    """No notification is sent again (THYME 6.3), and this radio does not repeat frames either: over two hops one in ten is lost."""
    crowd = Choosers(grid(5, 3), first, seed=seed, network=lossy(0.05, seed), remembering=True)
    match = Match(crowd, seed)
    crowd.run(20)
    hosts = list(crowd.world.hosts.values())
    for target in (then, first):
        match.goes_on(10, 1.0)
        away = match.random.sample(hosts, 3)
        for host in away:
            host.fail()
        match.exchange(target)
        match.goes_on(20, 0.5)
        for host in away:
            host.join()
        match.exchanges.append(crowd.simulation.now())
        crowd.run(60)
        assert crowd.running() == {target.name}, "who was away has followed"
    crowd.run(20)
    heard, certain = crowd.heard_of(), match.certain()
    assert set(heard) <= match.possible()
    assert max(heard.values()) == 1
    assert len(certain - set(heard)) <= 0.12 * len(certain)
    assert all(store.statistics().under_way == 0 for store in crowd.stores.values())


@BOTH_WAYS
def test_a_download_under_way_is_carried_on_by_the_other_mechanism(first: MechanismSpec, then: MechanismSpec) -> None:
    crowd = Choosers(grid(5, 3), first)
    crowd.run(15)
    content = bytes(range(256)) * 2_000
    photo = crowd.publish("n0", "film", "goal", content=content)
    crowd.run(10)
    crowd.download("n14", photo)
    crowd.run(0.05)
    assert not crowd.outcomes("download")
    crowd.choosers["n14"].initiate(then)
    crowd.run(60)
    assert crowd.running() == {then.name}
    assert [outcome.content == content for name, outcome in crowd.heard.outcomes if name == "download"] == [True]


@BOTH_WAYS
def test_a_download_of_what_is_nowhere_fails_clearly_after_the_exchange(
    first: MechanismSpec, then: MechanismSpec
) -> None:
    crowd = Choosers(grid(5, 3), first)
    crowd.run(15)
    photo = crowd.publish("n0", "photo", "goal")
    crowd.run(10)
    crowd.unpublish("n0", "photo")
    crowd.run(5)
    crowd.choosers["n7"].initiate(then)
    crowd.run(1)
    crowd.download("n14", photo)
    crowd.run(90)
    assert crowd.outcomes("download") == ["not found"]
    assert crowd.stores["n14"].statistics().under_way == 0


@pytest.mark.parametrize(("first", "then"), [(CELLS, LOCAL)], ids=["DCS to PL/SG"])
def test_an_object_whose_owner_has_gone_comes_from_a_copy_after_the_exchange(
    first: MechanismSpec, then: MechanismSpec
) -> None:
    crowd = Choosers([*grid(5, 3), (21.0, 21.0)], first)
    crowd.run(15)
    photo = crowd.publish("n0", "photo", "goal", content=b"pixels")
    crowd.run(10)
    crowd.world.hosts["n0"].fail()
    crowd.choosers["n7"].initiate(then)
    crowd.run(40)
    crowd.download("n14", photo)
    crowd.run(40)
    assert [outcome.content for name, outcome in crowd.heard.outcomes if name == "download"] == [b"pixels"]


@BOTH_WAYS
@pytest.mark.parametrize("count", [250])
def test_however_much_was_told_before_nothing_that_was_published_meanwhile_is_missed(
    first: MechanismSpec, then: MechanismSpec, count: int
) -> None:
    """The past is told in batches, the oldest first: a subscription that is told to others anew must not end with the first."""
    crowd = Choosers(grid(3, 1), first if first == LOCAL else cells(3, 1))
    crowd.run(15)
    key = crowd.subscribe("n2", "goal")
    crowd.run(5)
    for number in range(count):
        crowd.publish("n0", f"o{number:03}", "goal")
        crowd.run(0.05)
    crowd.run(5)
    assert crowd.stores["n2"].nucleus.told(key) == count
    crowd.choosers["n0"].initiate(then if then == LOCAL else cells(3, 1))
    for number in range(10):
        crowd.publish("n0", f"p{number}", "goal")
        crowd.run(0.2)
    crowd.run(90)
    assert crowd.stores["n2"].nucleus.told(key) == count + 10
    assert max(crowd.heard_of().values()) == 1


def test_the_past_is_still_told_in_batches_after_an_exchange() -> None:
    crowd = Choosers(grid(3, 1), cells(3, 1, batch=5))
    crowd.run(15)
    for number in range(20):
        crowd.publish("n0", f"o{number:02}", "goal")
    crowd.run(5)
    key = crowd.subscribe("n2", "goal")
    crowd.run(2)
    told = crowd.stores["n2"].nucleus.told
    assert told(key) == 5
    crowd.publish("n1", "live", "goal")
    crowd.run(2)
    assert told(key) == 6
    crowd.choosers["n1"].initiate(MechanismSpec.of("PL/SG", batch=5))
    crowd.run(40)
    assert told(key) == 6, "nobody asked for more"
    crowd.stores["n2"].more(key)
    crowd.run(2)
    assert told(key) == 11


def test_who_missed_both_exchanges_brings_nothing_back_that_was_withdrawn_meanwhile() -> None:
    crowd = Choosers(grid(5, 3), CELLS)
    crowd.run(15)
    photo = crowd.publish("n0", "photo", "goal")
    crowd.run(5)
    keepers = [name for name, store in crowd.stores.items() if _keeps(crowd, name, photo)]
    home = next(name for name in keepers if name != "n0")
    there = grid(5, 3)[int(home[1:])]
    number = int(home[1:])
    crowd.world.motion.put(number, 5_000.0, 0.0)  # out of reach, and still of that mechanism
    crowd.choosers["n7" if home != "n7" else "n8"].initiate(LOCAL)
    crowd.run(20)
    crowd.unpublish("n0", "photo")
    crowd.run(30)
    crowd.choosers["n7" if home != "n7" else "n8"].initiate(CELLS)
    crowd.run(5)
    crowd.world.motion.put(number, *there)
    crowd.run(60)
    assert crowd.running() == {"DCS"}
    assert not [name for name in crowd.stores if _keeps(crowd, name, photo)]
    crowd.subscribe("n4", "goal")
    crowd.run(10)
    assert not crowd.heard.notified


def _keeps(crowd: Choosers, name: str, metadata: Metadata) -> bool:
    storage = crowd.stores[name]._proxy.active
    return isinstance(storage, DataCentricStorage) and storage.desk.state.indexed(metadata.key) is not None


def test_a_host_alone_with_the_old_mechanism_follows_whom_it_meets() -> None:
    crowd = Choosers([*grid(4, 1), (2_000.0, 20.0)], LOCAL)
    crowd.run(15)
    crowd.choosers["n0"].initiate(cells(4, 1))
    crowd.run(20)
    crowd.publish("n4", "far away", "goal")
    crowd.subscribe("n4", "save")
    crowd.publish("n1", "meanwhile", "save")
    crowd.subscribe("n1", "goal")
    crowd.run(20)
    assert crowd.running() == {"PL/SG", "DCS"}
    assert not crowd.heard.notified
    crowd.world.motion.put(4, 100.0, 20.0)
    crowd.run(60)
    assert crowd.running() == {"DCS"}
    assert {key.name for _, key in crowd.heard_of()} == {"far away", "meanwhile"}
    assert len(crowd.heard.notified) == 2


def test_the_area_can_be_cut_into_other_cells_while_the_crowd_runs() -> None:
    crowd = Choosers(grid(4, 2), cells(4, 2))
    match = Match(crowd, 5)
    crowd.run(15)
    match.goes_on(15, 1.0)
    larger = MechanismSpec.of("DCS", **{**dict(cells(4, 2).parameters), "side": 80.0})
    match.exchange(larger)
    match.goes_on(15, 0.3)
    crowd.run(60)
    assert {store.running for store in crowd.stores.values()} == {larger}
    all_is_well(match)


def test_copies_that_were_kept_for_others_before_two_exchanges_still_go_with_their_object() -> None:
    two = cells(2, 1)
    crowd = Choosers([(10, 10), (20, 20), (25, 25), (60, 20)], two)
    crowd.run(40)
    kept = crowd.publish("n0", "photo", "goal")
    own = crowd.publish("n3", "film", "goal")
    crowd.run(5)
    crowd.download("n1", own)
    crowd.run(10)
    assert {*crowd.stores["n1"].nucleus.held} == {kept.key, own.key}
    for mechanism, wait in ((LOCAL, 60), (two, 80)):
        crowd.choosers["n0"].initiate(mechanism)
        crowd.run(wait)
    copies = _cells_of(crowd, "n1")._copies
    assert copies._size == kept.size
    crowd.unpublish("n0", "photo")
    crowd.unpublish("n3", "film")
    crowd.run(60)
    # The copy that n1 has made for itself stays with it.
    assert {name: [*store.nucleus.held] for name, store in crowd.stores.items() if store.nucleus.held} == {
        "n1": [own.key]
    }
    assert copies._size == 0
    assert not crowd.stores["n1"].nucleus.entrusted


def _cells_of(crowd: Choosers, host: str) -> DataCentricStorage:
    storage = crowd.stores[host]._proxy.active
    assert isinstance(storage, DataCentricStorage)
    return storage


def test_by_the_rule_a_crowd_goes_over_when_it_grows_and_back_when_it_shrinks() -> None:
    rule = Rule(large=CELLS, grown=9, shrunk=6, restless=9.0, calm=9.0, period=10.0, settling=5.0)
    crowd = Choosers(grid(5, 3), LOCAL, rule, remembering=True)
    match = Match(crowd, 3)
    hosts = list(crowd.world.hosts.values())
    others = hosts[:5] + hosts[10:]  # the middle row stays
    for host in others:
        host.leave()
    crowd.run(60)
    assert crowd.running() == {"PL/SG"}
    match.goes_on(10, 1.0)
    grows = crowd.simulation.now()
    for host in others:
        host.join()
        crowd.run(1)
    match.goes_on(30, 1.0)
    crowd.run(60)
    assert crowd.running() == {"DCS"}
    match.goes_on(10, 1.0)
    for host in others:
        host.leave()
    match.goes_on(30, 1.0)
    crowd.run(120)
    assert crowd.running() == {"PL/SG"}
    assert sum(chooser.statistics().initiated for chooser in crowd.choosers.values()) <= 4, "not to and fro"
    heard = crowd.heard_of()
    there = {f"n{number}" for number in range(5, 10)}
    steady = {
        pair for pair in match.certain() if {key.owner for key in pair} <= there and not _over(crowd, pair, grows)
    }
    assert set(heard) >= steady, "of those who were there all the time"
    assert max(heard.values()) == 1


def _over(crowd: Choosers, pair: tuple[SubscriptionKey, ObjectKey], since: Instant) -> bool:
    """Whether one of them was ended after the crowd had begun to change, so that it is no matter of certainty."""
    ends = (crowd.wishes[pair[0]].ended, crowd.things[pair[1]].withdrawn)
    return any(end is not None and end > since for end in ends)


def test_a_crowd_that_comes_and_goes_takes_the_mechanism_that_bears_it() -> None:
    rule = Rule(large=CELLS, grown=100, shrunk=50, period=10.0, settling=5.0)
    crowd = Choosers(grid(5, 3), LOCAL, rule)
    crowd.run(60)
    assert crowd.running() == {"PL/SG"}
    hosts = list(crowd.world.hosts.values())
    for _ in range(8):
        for host in hosts[::3]:
            host.fail()
            host.join()
        crowd.run(10)
    assert crowd.running() == {"DCS"}
    crowd.run(90)
    assert crowd.running() == {"PL/SG"}, "it has calmed down"


def test_what_was_withdrawn_while_it_waited_to_be_tried_again_is_asked_of_no_other_mechanism(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crowd = Choosers(grid(2, 1), LOCAL)
    crowd.run(30)
    asked: list[object] = []

    def in_vain(_storage: object, _thing: object, done: Done) -> None:
        crowd.simulation.at(crowd.simulation.now(), lambda _: done(Outcome(Failure.TIMED_OUT)))

    def spied(_storage: object, thing: Publication | CrowdSubscription, done: Done) -> None:
        asked.append(thing.key)
        in_vain(_storage, thing, lambda _: done(DONE))

    for name in ("publish", "subscribe"):
        monkeypatch.setattr(DataCentricStorage, name, in_vain)
        monkeypatch.setattr(PublishLocalStorage, name, spied)
    crowd.choosers["n0"].initiate(CELLS)
    crowd.run(10)
    stays = crowd.publish("n0", "stays", "goal")
    crowd.publish("n0", "photo", "goal")
    wish, ended = crowd.subscribe("n0", "goal"), crowd.subscribe("n0", "goal")
    crowd.run(1)
    crowd.unpublish("n0", "photo")
    crowd.unsubscribe("n0", ended)
    crowd.choosers["n1"].initiate(LOCAL)
    crowd.run(30)
    assert crowd.running() == {"PL/SG"}
    assert asked == [stays.key, wish]
    assert {each.statistics().under_way for each in crowd.stores.values()} == {0}
    assert all(outcome.ok for _, outcome in crowd.heard.outcomes)


def test_a_rule_with_a_mechanism_that_cannot_be_is_refused_before_the_crowd_has_grown() -> None:
    with pytest.raises(InvalidPlan, match="south"):
        Choosers(grid(2, 1), LOCAL, Rule(large=MechanismSpec("DCS")))


def test_what_is_withdrawn_before_its_owner_is_a_member_of_a_cell_is_never_told() -> None:
    crowd = Choosers(grid(3, 1), cells(3, 1))
    crowd.run(12)
    crowd.world.hosts["n2"].fail()
    crowd.world.hosts["n2"].join()
    crowd.publish("n2", "mistake", "goal")
    key = crowd.subscribe("n2", "goal")
    crowd.unpublish("n2", "mistake")
    crowd.unsubscribe("n2", key)
    crowd.run(20)
    crowd.subscribe("n0", "goal")
    crowd.publish("n1", "photo", "goal")
    crowd.run(10)
    assert [key.name for _, key in crowd.heard.notified] == ["photo"]
    assert {outcome.failure for _, outcome in crowd.heard.outcomes} == {None}
    assert len(crowd.heard.outcomes) == 6
