"""The matcher names exactly the receivers that ``model.delivery`` defines, whatever happened before."""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.strategies import WORLDS, World, scripts
from tests.oracle.twins import Twins

from nearcast.model.area import Circle, Rectangle
from nearcast.model.geometry import Point, distance
from nearcast.model.subscription import Subscription

in_every_world = pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)


@in_every_world
@given(data=st.data())
@settings(max_examples=300)
def test_every_answer_is_that_of_the_definition(world: World, data: st.DataObject) -> None:
    Twins().run(data.draw(scripts(world)))


@pytest.mark.slow
@pytest.mark.skipif(
    os.environ.get("HYPOTHESIS_PROFILE") != "thorough", reason="takes half an hour: HYPOTHESIS_PROFILE=thorough"
)
@in_every_world
@given(data=st.data())
@settings(max_examples=2_500)
def test_every_answer_is_that_of_the_definition_also_after_long_histories(world: World, data: st.DataObject) -> None:
    Twins().run(data.draw(scripts(world, size=60)))


@pytest.mark.parametrize("spot", [Point(49.8728, 8.6512), Point(0.0, -180.0), Point(90.0, 0.0)], ids=str)
def test_a_hot_cell_fills_empties_and_fills_again(spot: Point) -> None:
    """Hundreds of clients on one spot share one bucket; some leave, some return, some are removed for good."""
    rng = random.Random(2)
    beside = Point(spot.lat - 0.001, spot.lon + 0.001)
    exactly = distance(spot, beside)
    crowd = [f"fan {i}" for i in range(300)]
    twins = Twins()
    for i, client in enumerate(crowd):
        area = (Circle(exactly), Circle(0.0), Circle(exactly * 0.999), Rectangle(10.0, 10.0), None)[i % 5]
        twins.begin(
            client, spot, Subscription("a/#" if i % 7 else "b", area=area, where=None if i % 3 else "severity > 2")
        )

    def event(place: Point | None, reach: Circle | None = None) -> dict[str, object]:
        attributes = {"severity": rng.choice([1, 3])}
        return {"topic": "a/b", "place": place, "reach": reach, "attributes": attributes}

    for _ in range(3):
        twins.publish([event(spot), event(beside), event(None), event(spot, Circle(exactly, beside))], "columns")
        twins.move_many([(client, beside) for client in rng.sample(crowd, 150)])
        twins.publish([event(spot), event(beside)], "columns")
        for client in rng.sample(crowd, 40):
            twins.remove_client(client)
        twins.publish([event(spot), event(beside)], "columns")
        for client in crowd:
            if client not in twins.known:
                twins.begin(client, spot, Subscription("a/b", area=Circle(rng.choice([0.0, exactly]))))
        twins.move_many([(client, spot) for client in rng.sample(crowd, 200)])


def test_twins_hear_the_same_as_a_client_that_is_alone() -> None:
    """Guards the comparison itself: it would notice a matcher that forgets somebody."""
    twins = Twins()
    spot = Point(49.8728, 8.6512)
    twins.begin("ada", spot, Subscription("#", area=Circle(10.0)))
    twins.single.forget_position("ada")
    with pytest.raises(AssertionError):
        twins.publish([{"topic": "a", "place": spot}], "events")
