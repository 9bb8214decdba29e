"""Who hears of what is what the definition says: on random formulas, frames and crowds."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.crowdstore.crowd import Crowd
from tests.crowdstore.lossy import connected
from tests.effort import examples

from nearcast.crowdstore.storage import Failure
from nearcast.model.time import EVER, MICROSECONDS, TimeFrame
from nearcast.transition.specification import MechanismSpec

PLSG = MechanismSpec("PL/SG")
STEP = 2
FORMULAS = ("a", "!a", "a & b", "a | b", "a & !b", "(a | c) & !(b & c)", "!(a | b | c)")
TAGS = ("a", "b", "c", "d")

hosts = st.integers(0, 5).map("n{}".format)
bounds = st.integers(-4, 4) | st.none()
operations = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), hosts, st.frozensets(st.sampled_from(TAGS), min_size=1)),
        st.tuples(st.just("subscribe"), hosts, st.tuples(st.sampled_from(FORMULAS), bounds, bounds)),
        st.tuples(st.just("unpublish"), hosts, st.none()),
        st.tuples(st.just("unsubscribe"), hosts, st.none()),
    ),
    max_size=25,
)


def _frame(crowd: Crowd, since: int | None, until: int | None) -> TimeFrame:
    """Bounds at the very instants of operations: of this one, earlier and later ones."""
    now, step = crowd.simulation.now(), STEP * MICROSECONDS
    start = None if since is None else now + since * step
    end = None if until is None else now + until * step
    return EVER if start is not None and end is not None and end <= start else TimeFrame(start, end)


def _operate(crowd: Crowd, what: str, host: str, argument: object) -> None:
    if what == "publish":
        assert isinstance(argument, frozenset)
        crowd.publish(host, f"o{len(crowd.things)}", *sorted(argument))
    elif what == "subscribe":
        assert isinstance(argument, tuple)
        formula, since, until = argument
        crowd.subscribe(host, formula, _frame(crowd, since, until))
    elif what == "unpublish":
        for key, thing in crowd.things.items():
            if key.owner == host and thing.withdrawn is None:
                crowd.unpublish(host, key.name)
                return
    else:
        for wish, state in crowd.wishes.items():
            if wish.owner == host and state.ended is None:
                crowd.unsubscribe(host, wish)
                return


@examples(25)
@given(operations, st.randoms(use_true_random=False))
def test_everybody_hears_of_what_matches_once_and_of_nothing_else(
    script: list[tuple[str, str, object]], random: Random
) -> None:
    crowd = Crowd(connected(random, 6), PLSG, seed=random.randrange(1000))
    crowd.run(20)
    for what, host, argument in script:
        _operate(crowd, what, host, argument)
        crowd.run(STEP)
    crowd.run(5)
    assert len(crowd.heard.notified) == len({*crowd.heard.notified})
    assert {*crowd.heard.notified} == crowd.expected()
    assert all(outcome.ok for _, outcome in crowd.heard.outcomes)


@examples(15)
@given(st.integers(0, 40_000), st.randoms(use_true_random=False))
def test_downloads_give_what_was_published(size: int, random: Random) -> None:
    crowd = Crowd(connected(random, 6), PLSG, seed=random.randrange(1000))
    crowd.run(20)
    content = random.randbytes(size)
    metadata = crowd.publish("n0", "large", "t", content=content)
    for node in range(6):
        crowd.download(f"n{node}", metadata)
    crowd.run(30)
    downloads = [outcome for what, outcome in crowd.heard.outcomes if what == "download"]
    assert [outcome.content for outcome in downloads] == [content] * 6


def test_what_was_unpublished_cannot_be_downloaded() -> None:
    crowd = Crowd([(0.0, 0.0), (100.0, 0.0)], PLSG)
    crowd.run(20)
    metadata = crowd.publish("n0", "a", "t")
    crowd.unpublish("n0", "a")
    crowd.download("n1", metadata)
    crowd.download("n0", metadata)
    crowd.run(1)
    failures = [outcome.failure for what, outcome in crowd.heard.outcomes if what == "download"]
    assert failures == [Failure.NOT_FOUND, Failure.NOT_FOUND]


@pytest.mark.parametrize("batch", [1, 7, 100])
def test_the_past_comes_in_batches_on_request(batch: int) -> None:
    crowd = Crowd([(90.0 * x, 0.0) for x in range(4)], MechanismSpec.of("PL/SG", batch=batch))
    crowd.run(30)
    for number in range(20):
        crowd.publish("n0", f"a{number}", "t")
        crowd.publish("n3", f"b{number}", "t")
        crowd.run(0.1)
    key = crowd.subscribe("n3", "t")
    crowd.run(2)
    for round_ in range(1, 22):
        assert len(crowd.heard.notified) == 2 * min(20, batch * round_)
        crowd.stores["n3"].more(key)
        crowd.run(2)
    crowd.publish("n0", "new", "t")
    crowd.run(2)
    assert sorted(crowd.heard.notified) == sorted(crowd.expected())
    assert crowd.stores["n3"].statistics().duplicates == 0


def test_many_matches_travel_together() -> None:
    crowd = Crowd([(0.0, 0.0), (100.0, 0.0)], PLSG)
    crowd.run(20)
    for number in range(90):
        crowd.publish("n0", f"a{number}", "t")
    crowd.subscribe("n1", "t")
    crowd.run(2)
    assert len(crowd.heard.notified) == 90
    messages, size = crowd.network.links["n0"].books["sent", "crowd-notify"]
    assert messages <= size / 1_200 + 1
