"""Routes never lead in a circle, whatever is heard, lost and broken, in whatever order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.crowdstore.unicast.messages import INFINITE, LATEST
from nearcast.crowdstore.unicast.table import MOST_DESTINATIONS, Table

NAMES = "abcde"
HOLD = 45
SETTLING = 5

steps = st.lists(
    st.one_of(
        st.tuples(st.just("all"), st.sampled_from(NAMES), st.frozensets(st.sampled_from(NAMES))),
        st.tuples(st.just("news"), st.sampled_from(NAMES), st.frozensets(st.sampled_from(NAMES))),
        st.tuples(st.just("lose"), st.sampled_from(NAMES), st.frozensets(st.sampled_from(NAMES), max_size=2)),
        st.tuples(st.just("later"), st.sampled_from(NAMES), st.just(frozenset("a"))),
    ),
    max_size=120,
)


def _table(name: str, sequence: int = 0, *, renewals: bool = False) -> Table:
    return Table(name, sequence, 0, SETTLING, renewals=renewals)


def _circle(tables: dict[str, Table], destination: str) -> bool:
    for start in tables:
        seen: list[str] = []
        at = start
        while at != destination and at not in seen:
            seen.append(at)
            route = tables[at].usable(destination)
            if route is None:
                break
            at = route.next_hop
        if at in seen and at != seen[-1]:
            return True
    return False


@given(steps, st.booleans())
def test_no_loop_ever_forms_and_what_is_ahead_is_newer_or_nearer(
    script: list[tuple[str, str, frozenset[str]]], renewals: bool
) -> None:
    tables = {name: _table(name, renewals=renewals) for name in NAMES}
    now = 0
    for what, name, others in script:
        now += 1
        table = tables[name]
        if what == "later":
            now += HOLD // 2
            table.expire(now - HOLD, -1, now)
        elif what == "lose":
            table.lose(others - {name}, now)
        else:
            told = list(table.everything() if what == "all" else table.news(now))
            for other in sorted(others - {name}):
                tables[other].learn(name, told, now)
        for destination in NAMES:
            assert not _circle(tables, destination)
            for at in tables.values():
                route = at.usable(destination)
                if route is not None:
                    ahead = tables[route.next_hop].routes[destination]
                    assert (ahead.sequence, -ahead.metric) > (route.sequence, -route.metric)


def test_of_one_sequence_number_the_shorter_route_is_taken_and_of_two_the_newer() -> None:
    table = _table("a")
    table.learn("b", [("z", 3, 10)], 1)
    table.learn("c", [("z", 3, 10)], 2)
    route = table.routes["z"]
    assert (route.next_hop, route.metric) == ("b", 4)
    table.learn("c", [("z", 1, 10)], 3)
    assert (route.next_hop, route.metric) == ("c", 2)
    table.learn("d", [("z", 9, 12)], 4)
    assert (route.next_hop, route.metric, route.sequence) == ("d", 10, 12)
    table.learn("c", [("z", 1, 10)], 5)
    assert route.next_hop == "d"


def test_only_the_next_hop_can_say_that_a_route_is_broken() -> None:
    table = _table("a")
    table.learn("b", [("z", 1, 10)], 1)
    table.learn("c", [("z", INFINITE, 11)], 2)
    assert table.usable("z") is not None
    table.learn("b", [("z", INFINITE, 11)], 3)
    assert table.usable("z") is None
    assert ("z", INFINITE, 11) in list(table.news(3))
    table.learn("c", [("z", 1, 10)], 4)
    assert table.usable("z") is None, "older than the news that it is broken"
    table.learn("c", [("z", 1, 12)], 5)
    assert table.usable("z") is not None


def test_a_lost_neighbour_breaks_all_that_leads_through_it() -> None:
    table = _table("a")
    table.learn("b", [("b", 0, 4), ("y", 1, 6)], 1)
    table.learn("c", [("c", 0, 2)], 1)
    list(table.news(1))
    table.lose(["b"], 2)
    assert {*table.news(2)} == {("b", INFINITE, 5), ("y", INFINITE, 7)}
    assert table.usable("c") is not None


def test_new_destinations_are_told_at_once_longer_ways_when_they_have_settled_and_mere_renewals_in_turn() -> None:
    table = _table("a")
    list(table.news(0))
    table.learn("b", [("z", 1, 10)], 1)
    assert list(table.news(1)) == [("z", 2, 10)]
    table.learn("b", [("z", 1, 12)], 2)
    assert not table.changed
    table.learn("c", [("z", 5, 14)], 3)
    assert list(table.news(3 + SETTLING - 1)) == []
    assert table.due == 3 + SETTLING
    assert list(table.news(3 + SETTLING)) == [("z", 6, 14)]
    table.learn("c", [("z", 2, 16)], 20)
    table.learn("b", [("z", 5, 18)], 21)
    assert not table.changed, "it is as far away as others were told"


def test_where_renewals_are_told_too_only_another_length_has_to_settle() -> None:
    table = _table("a", renewals=True)
    list(table.news(0))
    table.learn("b", [("z", 1, 10)], 1)
    assert list(table.news(1)) == [("z", 2, 10)]
    table.learn("b", [("z", 1, 12)], 2)
    assert list(table.news(2)) == [("z", 2, 12)]
    table.learn("c", [("z", 5, 14)], 3)
    table.learn("b", [("z", 1, 14)], 4)
    assert list(table.news(4 + SETTLING - 1)) == []
    assert list(table.news(4 + SETTLING)) == [("z", 2, 14)]


def test_a_host_outdoes_what_others_say_of_its_earlier_life() -> None:
    table = _table("a", 4)
    for heard, outdone in ((8, 10), (11, 12), (LATEST, 12)):
        table.learn("b", [("a", INFINITE if heard % 2 else 3, heard)], 1)
        assert table.own.sequence == outdone
    assert table.usable("a") is None, "the way to oneself is none"


def test_what_is_not_renewed_breaks_and_is_forgotten_later() -> None:
    table = _table("a")
    table.learn("b", [("z", 1, 10)], 1)
    table.expire(1, 0, 2)
    assert table.usable("z") is not None
    table.expire(2, 0, 60)
    assert table.usable("z") is None
    table.expire(50, 60, 100)
    assert "z" in table.routes
    table.expire(50, 61, 100)
    assert "z" not in table.routes
    assert list(table.news(100)) == [("a", 0, 0)]


@pytest.mark.parametrize("odd", [("z", 3, 11), ("z", INFINITE, 10), ("z", INFINITE - 1, 10), ("z", INFINITE, 11)])
def test_what_makes_no_sense_is_not_learnt(odd: tuple[str, int, int]) -> None:
    table = _table("a")
    table.learn("b", [odd], 1)
    assert "z" not in table.routes


def test_there_is_an_end_to_the_destinations_that_a_table_takes() -> None:
    table = _table("a")
    table.learn("b", [(f"x{number}", 1, 2) for number in range(2 * MOST_DESTINATIONS)], 1)
    assert len(table.routes) == MOST_DESTINATIONS
