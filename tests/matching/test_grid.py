"""The grid after any number of insertions, moves and removals: every entry is where it belongs, and nothing else is."""

from __future__ import annotations

import random

import numpy as np
import pytest

from nearcast.matching import Matcher
from nearcast.matching.columns import AROUND_CLIENT
from nearcast.matching.grid import (
    CAPACITY,
    CELLS_USED,
    COUNT,
    ENTRIES,
    HIGHEST_LEVEL,
    KEY,
    LOWEST_LEVEL,
    START,
    UNITS_PER_DEGREE,
    cell_key,
    level_of,
    stretch,
    to_x,
    to_y,
)
from nearcast.model.area import Box, Circle, Rectangle
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription


def assert_sound(matcher: Matcher) -> None:
    """Slots and indices are distinct, keys are those of the positions, counts add up, blocks do not overlap."""
    subscribers = matcher._subscribers
    grid, where, columns = subscribers.grid, subscribers.where, subscribers.columns
    placed = [
        item
        for number, client in enumerate(subscribers.ids)
        if client is not None
        for item in subscribers.items_of(number)
        if where[item, 0] >= 0
    ]
    assert len({(int(where[item, 0]), int(where[item, 1])) for item in placed}) == len(placed)
    occupied = grid.table[(grid.table[:, KEY] != -1) & (grid.table[:, COUNT] > 0)]
    assert int(occupied[:, COUNT].sum()) == len(placed) == int(grid.ledger[ENTRIES]) == int(grid.levels[:, 0].sum())
    assert int((grid.table[:, KEY] != -1).sum()) == int(grid.ledger[CELLS_USED])
    assert len(np.unique(grid.table[grid.table[:, KEY] != -1, KEY])) == int(grid.ledger[CELLS_USED])
    assert (occupied[:, COUNT] <= occupied[:, CAPACITY]).all()
    starts = occupied[np.argsort(occupied[:, START])]
    assert (starts[:-1, START] + starts[:-1, CAPACITY] <= starts[1:, START]).all()
    for item in placed:
        slot, index = where[item]
        assert 0 <= index < grid.table[slot, COUNT]
        if columns.kind[item] == AROUND_CLIENT:
            client = columns.client[item]
            x, y = to_x(float(columns.lon[client])), to_y(float(columns.lat[client]))
            key = int(grid.table[slot, KEY])
            assert key == cell_key(x, y, key >> 48)


def a_position(rng: random.Random) -> tuple[float, float]:
    kind = rng.random()
    if kind < 0.5:  # a busy quarter
        return 48.0 + rng.random() / 100, 11.0 + rng.random() / 100
    if kind < 0.7:  # one spot
        return 48.005, 11.005
    if kind < 0.8:
        return rng.choice([90.0, -90.0]), rng.uniform(-180, 180)
    return rng.uniform(-90, 90), rng.choice([rng.uniform(-180, 180), 180.0, -180.0, 179.99999999])


def test_every_entry_stays_where_it_belongs() -> None:
    rng = random.Random(8)
    matcher = Matcher()
    held: dict[str, set[str]] = {}
    areas = [Circle(0), Circle(30), Circle(150), Circle(5e4), Circle(2e7), Circle(3e7), Rectangle(300, 20), None]
    for step in range(4_000):
        client = f"c{rng.randrange(300)}"
        action = rng.random()
        if action < 0.5:
            matcher.move(client, *a_position(rng))
            held.setdefault(client, set())
        elif action < 0.75:
            name = rng.choice(["a", "b", "c"])
            area = rng.choice([*areas, Circle(100, Point(*a_position(rng))), Box(10, 40, 11, 48)])
            matcher.subscribe(client, Subscription(rng.choice(["#", "t"]), area=area, id=name))
            held.setdefault(client, set()).add(name)
        elif action < 0.9 and held.get(client):
            name = rng.choice(sorted(held[client]))
            matcher.unsubscribe(client, name)
            held[client].discard(name)
        elif action < 0.95 and client in held:
            matcher.forget_position(client)
        elif action < 0.97 and client in held:
            matcher.remove_client(client)
            del held[client]
        if step % 250 == 0:
            assert_sound(matcher)
    assert_sound(matcher)
    assert matcher.statistics().clients == len(held)
    assert matcher.statistics().subscriptions == sum(len(names) for names in held.values())
    for client in list(held):
        matcher.remove_client(client)
    assert_sound(matcher)
    assert matcher._subscribers.grid.ledger[ENTRIES] == 0
    assert matcher.statistics().filters == 0


def test_cells_that_were_left_do_not_pile_up() -> None:
    """A client that travels for ever leaves empty cells behind; the table is tidied, not enlarged."""
    matcher = Matcher()
    matcher.subscribe("ada", Subscription(area=Circle(10)))
    for step in range(5_000):
        matcher.move("ada", step * 0.01 - 20, 0.0)
    assert len(matcher._subscribers.grid.table) <= 256
    assert len(matcher._subscribers.grid.pool) < 10_000
    assert_sound(matcher)


def test_a_bucket_that_grew_and_shrank_gives_its_memory_back() -> None:
    matcher = Matcher()
    ids = [f"c{i}" for i in range(1_000)]
    numbers = matcher.add_clients(ids, np.zeros(1_000), np.zeros(1_000))
    matcher.subscribe_many(numbers, Subscription(area=Circle(10)))
    used = []
    for round_ in range(6):
        matcher.move_many(numbers, np.full(1_000, round_ + 1.0), np.zeros(1_000))
        used.append(int(matcher._subscribers.grid.ledger[0]))
        assert_sound(matcher)
    assert used[-1] == used[2]
    assert len(matcher.match(Event("e", "t", 0, place=Point(6, 0)))) == 1_000


@pytest.mark.parametrize("level", range(LOWEST_LEVEL, HIGHEST_LEVEL + 1))
def test_cells_are_half_open(level: int) -> None:
    size = 1 << level
    if level < 29:
        x, y = 3 * size, 2 * size
        shift = 1 << stretch((y + (1 << 30)) >> level, level)
        x = x // (size * shift) * size * shift
        key = cell_key(x, y, level)
        assert cell_key(x + size - 1, y + size - 1, level) == key
        assert cell_key(x - 1, y, level) != key
        assert cell_key(x, y - 1, level) != key
    assert cell_key(to_x(0.0), to_y(90.0), level) == cell_key(to_x(123.0), to_y(90.0), level), "a pole is one cell"
    assert cell_key(to_x(0.0), to_y(-90.0), level) == cell_key(to_x(-77.0), to_y(-90.0), level)


def test_the_antimeridian_has_one_longitude() -> None:
    assert to_x(-180.0) == to_x(180.0) == -(1 << 31)
    assert to_x(180.0 - 1e-9) == -(1 << 31), "rounded to the nearest unit"
    assert to_x(180.0 - 1 / UNITS_PER_DEGREE) == (1 << 31) - 1


def test_larger_radii_live_on_higher_levels() -> None:
    levels = [level_of(radius) for radius in (0, 1, 1 << 12, 1 << 16, 1 << 20, 1 << 30, (1 << 31) - 1)]
    assert levels == sorted(levels)
    assert levels[0] == LOWEST_LEVEL
    assert levels[-1] == HIGHEST_LEVEL
