"""How often and how long clients were gateways, counted by hand."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.worlds import CLIENTS, Row, as_table

from nearcast.metrics import jain_index, selection_fairness, utilisation


def choice(gateway: str, time: int, members: int = 1) -> Row:
    row = {"event": f"e{time}", "gateway": gateway, "time": time, "members": members}
    return {**row, "candidates": members + 1, "selection": "DKC-LEACH"}


def by_client(table: Any) -> dict[str, tuple[int, ...]]:
    return {row.pop("client"): tuple(row.values()) for row in table.to_pylist()}


def test_how_often_how_long_and_for_whom() -> None:
    rows = [choice("ada", 0, 3), choice("bob", 5, 0), choice("ada", 9, 2), choice("ada", 25, 1), choice("ada", 31, 0)]
    found = by_client(utilisation(as_table("gateways", rows, pieces=2), CLIENTS, pause=10))
    assert found == {"ada": (4, 3, 6, 9 + 6), "bob": (1, 0, 0, 0), "cäcilie": (0, 0, 0, 0), "dan": (0, 0, 0, 0)}


@given(
    st.lists(st.tuples(st.sampled_from([*CLIENTS, "stranger"]), st.integers(0, 60), st.integers(0, 4)), max_size=30),
    st.integers(1, 3),
    st.booleans(),
)
def test_it_is_what_counting_says(choices: list[tuple[str, int, int]], pieces: int, plain: bool) -> None:
    table = as_table("gateways", [choice(*each) for each in choices], pieces=pieces, plain=plain)
    found = by_client(utilisation(table, CLIENTS, pause=7))
    for client in CLIENTS:
        own = sorted((time, members) for who, time, members in choices if who == client)
        gaps = [after - before for (before, _), (after, _) in pairwise(own)]
        expected = (len(own), sum(m > 0 for _, m in own), sum(m for _, m in own), sum(g for g in gaps if g <= 7))
        assert found[client] == expected
    assert selection_fairness(table, CLIENTS) == jain_index([found[client][0] for client in CLIENTS])


def test_who_was_never_chosen_counts_for_fairness() -> None:
    table = as_table("gateways", [choice("ada", 1), choice("bob", 2)])
    assert selection_fairness(table, CLIENTS) == pytest.approx(0.5)
    assert selection_fairness(as_table("gateways", []), CLIENTS) is None
