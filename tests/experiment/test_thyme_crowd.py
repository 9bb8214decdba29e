"""The crowd of THYME's evaluation, in small: what is counted is what happened."""

from __future__ import annotations

import pytest

from nearcast.crowdstore.objects import Metadata, ObjectKey
from nearcast.experiment.thyme.book import MARGIN, Book, Thing, Wish
from nearcast.experiment.thyme.evaluation import evaluated
from nearcast.model.time import MICROSECONDS


def _thing(name: str, at: float, withdrawn: float | None = None) -> Thing:
    metadata = Metadata(ObjectKey("a", name), ("x",), round(at * MICROSECONDS), 1, b"")
    return Thing(metadata, None if withdrawn is None else round(withdrawn * MICROSECONDS))


def test_due_is_what_the_definition_says_without_what_is_a_matter_of_seconds() -> None:
    book = Book()
    for thing in (_thing("early", 10), _thing("gone", 20, 50), _thing("late", 200), _thing("closely", 20, 101)):
        book.things[thing.metadata.key] = thing
    second = MICROSECONDS
    book.wishes.append(Wish("b", "x", None, 100 * second, None, {ObjectKey("a", "late"): 201 * second}))
    book.wishes.append(
        Wish("b", "x", 100 * second, 100 * second, 150 * second, {ObjectKey("a", "early"): 130 * second})
    )
    book.wishes.append(Wish("c", "x", None, 100 * second))
    found = book.numbers(["b"])
    assert 5 * second == MARGIN
    assert found["notification due"] == 2  # early and late, of the first wish
    assert found["notification success"] == 0.5
    assert found["notification extra"] == 1
    assert found["notification latency"] == found["notification latency max"] == 1.0


@pytest.mark.parametrize("failing", [0.0, 0.4])
def test_a_small_crowd_is_measured_twice_alike(failing: float) -> None:
    found = evaluated(1, mechanism="PL/SG", nodes=16, share=0.1, failing=failing)
    assert found == evaluated(1, mechanism="PL/SG", nodes=16, share=0.1, failing=failing)
    assert found["publish success"] == 1.0
    assert found["notification extra"] == 0
    assert 0 < found["control bytes"] < found["bytes sent"]
    assert 0 < found["bytes forwarded"] < found["bytes sent"]
    if not failing:
        assert found["notification success"] > 0.9


def test_who_walks_changes_what_is_sent() -> None:
    standing, walking = (evaluated(1, mechanism="PL/SG", nodes=16, share=0.1, speed=speed) for speed in (0.0, 2.5))
    assert standing != walking
