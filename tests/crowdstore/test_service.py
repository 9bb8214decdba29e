"""What the store does with what applications ask of it, whatever mechanism runs."""

from __future__ import annotations

from typing import Any

import pytest
from tests.crowdstore.crowd import Crowd, grid
from tests.crowdstore.data_centric.venue import dcs
from tests.crowdstore.going_over import LOCAL

from nearcast.crowdstore.bridge import withdrawal_in
from nearcast.crowdstore.objects import ObjectKey
from nearcast.crowdstore.service import NAME
from nearcast.crowdstore.storage import Failure, Outcome
from nearcast.errors import ConnectionFailed, InvalidEvent, InvalidPredicate
from nearcast.transition.specification import MechanismSpec

each_mechanism = pytest.mark.parametrize("mechanism", [LOCAL, dcs(3, 1)], ids=lambda spec: spec.name)
HALF = "\ud83d"
"""Of a character: such texts come out of JSON, and cannot be said to anybody."""


def _crowd(mechanism: MechanismSpec = LOCAL, **rest: Any) -> Crowd:
    crowd = Crowd(grid(3, 1), mechanism, **rest)
    crowd.run(25)
    return crowd


@pytest.mark.parametrize(
    "given",
    [
        {"name": HALF},
        {"name": ""},
        {"name": "ä" * (NAME // 2 + 1)},
        {"name": 5},
        {"tags": [HALF]},
        {"content": "text"},
        {"content": bytearray(b"this may still change")},
        {"summary": "text"},
    ],
)
def test_an_object_that_nobody_could_be_told_is_refused_and_changes_nothing(given: dict[str, Any]) -> None:
    store = _crowd().stores["n0"]
    with pytest.raises(InvalidEvent):
        store.publish(**{"name": "x", "content": b"", "tags": ["a"], **given})
    assert (store.statistics().published, store.statistics().under_way) == (0, 0)


@each_mechanism
def test_a_subscription_that_nobody_could_be_told_is_refused_and_changes_nothing(mechanism: MechanismSpec) -> None:
    store = _crowd(mechanism).stores["n0"]
    with pytest.raises(InvalidPredicate):
        store.subscribe(f'"{HALF}"', lambda _: None)
    assert (store.statistics().subscriptions, store.statistics().under_way) == (0, 0)


@each_mechanism
def test_of_the_longest_names_and_of_those_used_twice_bridges_hear_that_they_were_withdrawn(
    mechanism: MechanismSpec,
) -> None:
    crowd = _crowd(mechanism, notices=True)
    notices: list[bytes] = []
    crowd.stores["n2"].subscribe('"crowd:withdrawn"', lambda metadata: notices.append(metadata.summary))
    names = ["x" * NAME, "film"]
    crowd.publish("n0", "withdrawn film", "a")  # no notice, but called like one
    for name in names:
        crowd.publish("n0", name, "a")
        crowd.run(5)
        crowd.unpublish("n0", name)
    crowd.run(20)
    words = [withdrawal_in(notice) for notice in notices]
    assert sorted(word.key for word in words if word) == sorted(ObjectKey("n0", name) for name in names)


def test_whoever_asks_again_when_the_store_is_stopped_is_refused_and_all_others_are_told() -> None:
    crowd = _crowd()
    store, told = crowd.stores["n0"], list[Outcome]()

    def again(outcome: Outcome) -> None:
        told.append(outcome)
        store.publish("once more", b"", ["a"], done=again)

    for name in "pqr":
        store.publish(name, b"", ["a"], done=again)
    with pytest.raises(ConnectionFailed, match="stopped"):
        crowd.world.hosts["n0"].leave()
    assert told == [Outcome(Failure.STOPPED)] * 3
    assert ObjectKey("n0", "once more") not in store.nucleus.published
