"""Downloads, and the past in batches; who hears of what is in ``tests/crowdstore/test_oracle.py``."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.crowdstore.crowd import Crowd
from tests.crowdstore.lossy import connected
from tests.effort import examples

from nearcast.crowdstore.storage import Failure
from nearcast.transition.specification import MechanismSpec

PLSG = MechanismSpec("PL/SG")


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
