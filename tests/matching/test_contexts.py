"""Contexts in columns say what the model says of each of them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from nearcast.errors import InvalidContext, InvalidInput, UnknownName
from nearcast.matching.contexts import ContextTable
from nearcast.model.area import Circle
from nearcast.model.cql2 import parse
from nearcast.model.delivery import addressed
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.history import History
from nearcast.model.values import OneOf, Path, Range, Subtree

VALUES: dict[str, list[Any]] = {
    "way": [
        Path.parse("/v/car"),
        Path.parse("/v"),
        Path.parse("/foot"),
        "/v/car",
        OneOf({Path.parse("/v"), Path.parse("/w")}),
        Subtree(Path.parse("/v")),
    ],
    "speed": [1, 2, 2.5, 3, True, "fast", Range(1, 3), OneOf({1, 3}), 2**53 + 1, -(2**53) - 1],
    "role": ["a", "b", "", True, OneOf({"a", "c"})],
    "groups": [frozenset(), frozenset({"a"})],
    "position": [Point(1, 1), Circle(1e5, Point(0, 0))],
}
ADDRESSING = [
    "under(way, '/v')", "NOT under(way, '/v')", "way = '/v/car'", "speed > 2", "NOT speed > 2", "speed = 2", "speed <> 1",
    "speed IN (1, 2)", "role = 'a'", "role <> 'a'", "role IS NULL", "NOT role IS NULL", "role LIKE 'a%'", "speed + 1 > 3",
    "speed = TRUE", "S_DWITHIN(position, POINT(1 1), 10)", "NOT S_DWITHIN(position, POINT(1 1), 10)", "position IS NULL",
    "S_WITHIN(position, POLYGON((0 0, 2 0, 2 2, 0 2, 0 0)))", "speed > 1 AND role = 'a'", "speed > 2 OR under(way, '/foot')",
    "(speed > 2 OR role = 'b') AND (under(way, '/v') OR role IS NULL)", "A_CONTAINS(groups, ('a', 'a'))", "speed < role",
    "unheard = 1", "unheard IS NULL", "speed = 9007199254740992", "TRUE", "FALSE",
]  # fmt: skip


def test_addressing_agrees_with_the_model_while_contexts_come_and_go() -> None:
    rng = random.Random(4)
    table, history = ContextTable(), History()
    clients = range(12)
    position: list[Point | None] = [rng.choice([None, Point(1, 1), Point(5, 5), Point(1.00005, 1)]) for _ in clients]
    for client in clients:
        history.moved(str(client), 0, position[client])
    messages = [Event("e", "t", 0, to=parse(text)) for text in ADDRESSING]
    lat = np.array([np.nan if p is None else p.lat for p in position])
    lon = np.array([np.nan if p is None else p.lon for p in position])
    for now in range(1, 150):
        client, name = rng.choice(clients), rng.choice(["x", "y"])
        if name in table.contexts(client) and rng.random() < 0.4:
            table.deregister(client, name)
            history.deregistered(str(client), now, name)
        else:
            attributes = {key: rng.choice(values) for key, values in VALUES.items() if rng.random() < 0.6}
            table.register(client, name, attributes)
            history.registered(str(client), now, name, attributes)
        if now % 5:
            continue
        some = np.array(sorted(rng.sample(clients, 9)), np.int32)
        for message in messages:
            got = table.addressed(message.conjuncts, some, lat[some], lon[some]).tolist()
            expected = [addressed(message, history.client(str(client)), now) for client in some.tolist()]
            assert got == expected, message.to
    assert len(table) == sum(len(table.contexts(client)) for client in clients)


def test_rows_of_contexts_that_went_are_used_again() -> None:
    table = ContextTable()
    for round_ in range(5):
        for client in range(10):
            table.register(client, "c", {"a": round_})
        assert len(table) == 10
        for client in range(10):
            table.forget(client)
        assert len(table) == 0
    assert len(table._columns.contexts) == 11
    table.register(3, "c", {"b": 1})
    assert table.contexts(3) == {"c": {"b": 1}}
    nobody = np.array([np.nan])
    assert not table.addressed(((parse("a IS NOT NULL"),),), np.array([3], np.int32), nobody, nobody).any()


@pytest.mark.parametrize(
    ("name", "attributes"), [("", {}), ("c", {"": 1}), ("c", {"a": float("nan")}), ("c", {"a": ...})]
)
def test_a_bad_context_is_refused_and_nothing_is_registered(name: str, attributes: dict[str, Any]) -> None:
    table = ContextTable()
    with pytest.raises(InvalidInput):
        table.register(1, name, attributes)
    assert len(table) == 0
    assert table.contexts(1) == {}
    assert not table._of_client


def test_what_is_not_registered_cannot_be_deregistered() -> None:
    table = ContextTable()
    table.register(1, "c", {})
    with pytest.raises(UnknownName):
        table.deregister(1, "d")
    with pytest.raises(UnknownName):
        table.deregister(2, "c")
    with pytest.raises(InvalidContext):
        table.register(2, "", {})
    assert len(table) == 1
