"""A replay names the receivers that moving and matching in turns would name."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracle.strategies import BEGINNING, WORLDS, World, attributes, subscriptions, topics

from nearcast.errors import HistoryNeeded
from nearcast.matching.events import EventBatch
from nearcast.matching.matcher import Matcher
from nearcast.matching.open_cases import asks_direction
from nearcast.matching.replay import ReplayMatcher
from nearcast.matching.replaying import Moves
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription

CLIENTS = ("ada", "bob", "cyd", "dot")
in_every_world = pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)


def moves_of(world: World, moves: list[tuple[int, int]], before: list[int]) -> Moves:
    points = [world.points[place] for _, place in moves]
    return Moves(
        np.array([client for client, _ in moves], np.int32),
        np.array([point.lat for point in points], np.float64),
        np.array([point.lon for point in points], np.float64),
        np.array(before, np.int64),
    )


@in_every_world
@given(data=st.data())
def test_what_a_replay_finds_is_what_moving_and_matching_in_turns_finds(world: World, data: st.DataObject) -> None:
    held = [
        (client, subscription)
        for client in CLIENTS
        for subscription in data.draw(st.lists(subscriptions(world), max_size=2))
        if not asks_direction(subscription.where)
    ]
    place = st.integers(0, len(world.points) - 1)
    moves = data.draw(st.lists(st.tuples(st.integers(0, len(CLIENTS) - 1), place), max_size=12))
    count = data.draw(st.integers(1, 8))
    before = sorted(data.draw(st.lists(st.integers(0, len(moves)), min_size=count, max_size=count)))
    events = [
        Event(
            str(number),
            data.draw(topics),
            BEGINNING + number,
            data.draw(attributes(world)),
            place=data.draw(st.one_of(st.none(), st.sampled_from(world.points))),
        )
        for number in range(count)
    ]
    replaying, in_turns = ReplayMatcher(), Matcher()
    for matcher in (replaying, in_turns):
        matcher.add_clients(CLIENTS)
        for client, subscription in held:
            matcher.subscribe(client, subscription)

    found = [set(names) for names in replaying.replay(moves_of(world, moves, before), EventBatch.of(events))]

    expected, made = [], 0
    for event, upto in zip(events, before, strict=True):
        for who, number in moves[made:upto]:
            point = world.points[number]
            in_turns.move(CLIENTS[who], point.lat, point.lon)
        made = upto
        expected.append(set(in_turns.match(event)))
    assert found == expected
    for who, number in moves[made:]:
        in_turns.move(CLIENTS[who], world.points[number].lat, world.points[number].lon)
    afterwards = Event("afterwards", "a/b", BEGINNING, place=world.points[0])
    assert set(replaying.match(afterwards)) == set(in_turns.match(afterwards)), "moves after the last event count too"


def test_thousands_of_moves_among_events_make_the_grid_grow() -> None:
    random = np.random.default_rng(1)
    clients, moves, events = 3_000, 20_000, 2_000
    lat, lon = random.uniform(49, 50, moves), random.uniform(8, 9, moves)
    numbers = random.integers(0, clients, moves).astype(np.int32)
    before = np.sort(random.integers(0, moves, events))
    batch = EventBatch(
        published=np.arange(events),
        lat=random.uniform(49, 50, events),
        lon=random.uniform(8, 9, events),
        topics=("a",),
        topic=np.zeros(events, np.int32),
    )
    matcher = ReplayMatcher()
    matcher.subscribe_many(matcher.add_clients([str(i) for i in range(clients)]), Subscription(area=Circle(2_000.0)))
    found = matcher.replay(Moves(numbers, lat, lon, before), batch)
    for k in range(0, events, 97):
        last = dict(zip(numbers[: before[k]].tolist(), range(int(before[k])), strict=True))
        event = Point(float(batch.lat[k]), float(batch.lon[k]))
        near = {c for c, i in last.items() if Circle(2_000.0, event).covers(Point(float(lat[i]), float(lon[i])))}
        assert {int(name) for name in found[k]} == near


def test_events_that_depend_on_where_clients_are_afterwards_are_refused() -> None:
    event = Event("e", "a", 0, reach=Circle(10.0, Point(0.0, 0.0)))
    with pytest.raises(HistoryNeeded, match="in turns"):
        ReplayMatcher().replay(
            Moves(np.zeros(0, np.int32), np.zeros(0), np.zeros(0), np.zeros(1, np.int64)), EventBatch.of([event])
        )
