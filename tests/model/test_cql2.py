from __future__ import annotations

import json
import time
import tracemalloc
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import cql2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.strategies import predicates, properties

from nearcast.errors import InvalidArea, InvalidInput, InvalidPosition, InvalidPredicate, InvalidTime, InvalidValue
from nearcast.model.area import Box, Circle, Polygon
from nearcast.model.cql2 import parse, parse_addressing
from nearcast.model.cql2_bounds import DEEPEST, LONGEST_TEXT
from nearcast.model.evaluation import evaluate
from nearcast.model.geometry import Point
from nearcast.model.predicate import (
    And,
    Arithmetic,
    Comparison,
    Constant,
    DistanceDecreases,
    Function,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Predicate,
    Property,
    Spatial,
    TagTest,
    Temporal,
    Under,
)
from nearcast.model.predicate_text import to_text
from nearcast.model.temporal import CONTEXTCAST_RELATIONS, CQL2_RELATIONS, WITH_TOLERANCE, TemporalPredicate
from nearcast.model.time import instant
from nearcast.model.values import Path

A = Property("a")
T1, T2 = "2026-11-15T10:15:00Z", "2026-11-15T11:15:00Z"
I1, I2 = instant(T1), instant(T2)
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


def eq(name: str, value: Any) -> Comparison:
    return Comparison("=", Property(name), Literal(value))


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("a = 3", eq("a", 3)),
        ("a = 3.0", eq("a", 3)),
        ("a = 3.5", eq("a", 3.5)),
        ("a = -3", eq("a", -3)),
        ("a != 'it''s'", Comparison("<>", A, Literal("it's"))),
        ("3 <= a", Comparison(">=", A, Literal(3))),
        ("3 < a", Comparison(">", A, Literal(3))),
        ("'x' = a", eq("a", "x")),
        ("a = b", Comparison("=", A, Property("b"))),
        ("2 < 3", Constant(True)),
        ("'x' < 3", Constant(None)),
        ("flag", eq("flag", True)),
        ("NOT flag", Not(eq("flag", True))),
        ("TRUE", Constant(True)),
        ('"my attr" = 1', eq("my attr", 1)),
        ("a.b = 1", eq("a.b", 1)),
        ("a = 1 AND b = 2 OR c = 3", Or((And((eq("a", 1), eq("b", 2))), eq("c", 3)))),
        ("a IS NULL", IsNull(A)),
        ("a IS NOT NULL", Not(IsNull(A))),
        ("NULL IS NULL", Constant(True)),
        ("3 IS NULL", Constant(False)),
        ("a IN (1, 2.0, 'x')", In(A, frozenset({Literal(1), Literal(2), Literal("x")}))),
        ("a NOT IN (1)", Not(In(A, frozenset({Literal(1)})))),
        ("a IN (1, b)", Or((eq("a", 1), Comparison("=", A, Property("b"))))),
        ("1 IN (1, 2)", Or((Constant(True), Constant(False)))),
        ("a BETWEEN 1 AND 3", And((Comparison(">=", A, Literal(1)), Comparison("<=", A, Literal(3))))),
        ("a LIKE 'x%'", Like(A, "x%")),
        ("CASEI(a) LIKE casei('X%')", Like(Function("casei", A), "x%")),
        ("ACCENTI(a) = accenti('é')", Comparison("=", Function("accenti", A), Literal("e"))),
        ("a + 2 * 3 < 8", Comparison("<", Arithmetic("+", A, Literal(6)), Literal(8))),
        ("a > DATE('2026-01-01')", Comparison(">", A, Literal(NEW_YEAR))),
        ("a > TIMESTAMP('2026-01-01T00:00:00Z')", Comparison(">", A, Literal(NEW_YEAR))),
        ("under(a, '/v/car')", Under("a", Path(("v", "car")))),
        ("UNDER(a, '/')", Under("a", Path(()))),
        ("S_WITHIN(a, BBOX(1, 2, 3, 4))", Spatial("s_within", "a", Box(1, 2, 3, 4))),
        ("S_WITHIN(a, BBOX(1, 2, 0, 3, 4, 9))", Spatial("s_within", "a", Box(1, 2, 3, 4))),
        ("S_CONTAINS(BBOX(1, 2, 3, 4), a)", Spatial("s_within", "a", Box(1, 2, 3, 4))),
        ("S_INTERSECTS(a, POINT(8 49))", Spatial("s_intersects", "a", Point(lat=49, lon=8))),
        (
            "S_DISJOINT(a, POLYGON((0 0, 1 0, 1 1, 0 0)))",
            Spatial("s_disjoint", "a", Polygon(((((0, 0), (1, 0), (1, 1), (0, 0)),),))),
        ),
        ("s_dwithin(a, POINT(8 49), 500)", Spatial("s_within", "a", Circle(500, Point(lat=49, lon=8)))),
        ("T_AFTER(a, DATE('2026-01-01'))", Temporal("t_after", "a", NEW_YEAR, NEW_YEAR)),
        ("T_AFTER(DATE('2026-01-01'), a)", Temporal("t_before", "a", NEW_YEAR, NEW_YEAR)),
        ("T_DURING(a, INTERVAL('2026-01-01', '..'))", Temporal("t_during", "a", NEW_YEAR, None)),
        ("T_DURING(a, INTERVAL('..', '2026-01-01T00:00:00Z'))", Temporal("t_during", "a", None, NEW_YEAR)),
        ("A_CONTAINS(tags, ('x', 'y'))", TagTest("a_contains", "tags", frozenset({"x", "y"}))),
        ("A_CONTAINS(tags, 'x')", TagTest("a_contains", "tags", frozenset({"x"}))),
        ("tagged('x')", TagTest("a_contains", "tags", frozenset({"x"}))),
        ("tagged('x', 'y')", TagTest("a_contains", "tags", frozenset({"x", "y"}))),
        ("DISTANCE_DECREASES()", DistanceDecreases()),
        ("distance_decreases(p)", DistanceDecreases("p")),
    ],
)
def test_text_and_json_read_the_same(text: str, predicate: Predicate) -> None:
    assert parse(text) == predicate
    tree = cql2.parse_text(text).to_json()
    if isinstance(tree, dict):
        assert parse(tree) == predicate
        assert parse(json.dumps(tree)) == predicate


@given(predicates, properties())
def test_what_is_written_means_the_same_when_read_again(predicate: Predicate, given_properties: dict[str, Any]) -> None:
    again = parse(to_text(predicate))
    assert evaluate(again, given_properties) is evaluate(predicate, given_properties)
    assert parse(to_text(again)) == again


def test_json_keeps_integers_exact() -> None:
    tree = {"op": "=", "args": [{"property": "a"}, 9007199254740993]}
    assert parse(tree) == eq("a", 9007199254740993)
    assert parse({"op": "in", "args": [{"property": "a"}, []]}) == Constant(False)
    assert parse({"op": "a_equals", "args": [{"property": "tags"}, []]}) == TagTest("a_equals", "tags", frozenset())


def test_recent_parses_are_remembered() -> None:
    assert parse("remembered = 1") is parse("remembered = 1")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a =", "cannot be read at line 1, column 4, where it ends: expected an attribute, a value or a condition"),
        ("a == 3", "cannot be read at line 1, column 4, near '= 3'"),
        (
            "a = 3\nAND b = 3 garbage",
            "cannot be read at line 2, column 11, near 'garbage': expected an operator, AND, OR or the end",
        ),
        ("a = 'open", 'column 5, near "\'open"'),
        ("", "the filter is empty; leave it out, or write TRUE"),
        ("  ", "the filter is empty"),
        ("((a = 1)", "never closes the parenthesis that it opens at line 1, column 1"),
        ("a = 1)", "closes a parenthesis at line 1, column 6 that it never opened"),
        ("a = 9007199254740993", "9007199254740993 at line 1, column 5 has too many digits for CQL2 text"),
        ("a = 1e400", "the number 1e400 at line 1, column 5 is too large; numbers are finite"),
        ("a = " + "9" * 400, "is too large"),
        ("a = NULL", "nothing compares with NULL; write 'attribute IS NULL'"),
        ("a IN (1, NULL)", "nothing compares with NULL"),
        ("a = 9999999999" + " * 9999999999" * 60, "is no finite number"),
        ("S_WITHIN(a, POINT EMPTY)", "cannot be read: A position must contain two or more elements"),
        ("a = 1 / 0", "1 / 0 is no finite number"),
        ("a = 'x' + 1", "+ calculates with numbers"),
        ("a = CASEI(b) + 1", "+ calculates with numbers"),
        ("CASEI(3) = 'x'", "CASEI takes a text, not 3"),
        ("undr(a, '/x')", "unknown function or operator 'undr' (did you mean under?); known: a_containedby"),
        ("a = S_BUFFER(b)", "unknown function or operator 's_buffer'"),
        ("nonsense(a)", "unknown function or operator 'nonsense'; known: "),
        ("a = (b = 3)", "= is a condition, not a value; combine conditions with AND, OR and NOT"),
        ("3", "holds 3.0 where a condition such as severity >= 3 belongs"),
        ("a + 1", "unknown function or operator '+'"),
        ("a = POINT(1 2)", "a geometry does not compare; use S_WITHIN"),
        ("a = INTERVAL('2026-01-01', '..')", "an interval does not compare; use T_DURING"),
        ("a = (1, 2)", "a list does not compare; use IN"),
        ("a LIKE b", "LIKE needs an attribute on the left and a text on the right"),
        ("a LIKE 3", "LIKE needs an attribute on the left"),
        ("'x' LIKE 'x'", "LIKE needs an attribute on the left"),
        ("under(a)", "UNDER takes 2 arguments, not 1"),
        ("under('/a', a)", "under needs an attribute and a path"),
        ("tagged()", "tagged needs at least one tag"),
        ("tagged(3)", "needs tags, which are non-empty texts"),
        ("A_CONTAINS(tags, (1, 2))", "A_CONTAINS needs tags"),
        ("A_CONTAINS(tags, other)", "A_CONTAINS needs an attribute and a list of tags"),
        ("distance_decreases(3)", "distance_decreases takes nothing, or the attribute that holds a position"),
        ("S_WITHIN(a, 'x')", "S_WITHIN needs POINT, POLYGON, MULTIPOLYGON or BBOX, not 'x'"),
        ("S_WITHIN(a, LINESTRING(0 0, 1 1))", "S_WITHIN needs POINT, POLYGON, MULTIPOLYGON or BBOX, not LineString"),
        ("S_WITHIN(a, b)", "S_WITHIN needs an attribute and a geometry"),
        ("S_WITHIN(POINT(1 2), POINT(1 2))", "S_WITHIN needs an attribute and a geometry"),
        (
            "S_CROSSES(a, BBOX(0, 0, 1, 1))",
            "S_CROSSES never holds for a position, which is a point; use one of S_WITHIN",
        ),
        ("S_OVERLAPS(a, BBOX(0, 0, 1, 1))", "S_OVERLAPS never holds"),
        ("S_DWITHIN(a, BBOX(0, 0, 1, 1), 5)", "S_DWITHIN needs an attribute, a point and metres"),
        ("S_DWITHIN(a, POINT(0 0), b)", "S_DWITHIN needs an attribute, a point and metres"),
        ("S_DWITHIN(a, POINT(0 0))", "S_DWITHIN takes 3 arguments, not 2"),
        ("T_AFTER(a, 5)", "T_AFTER needs TIMESTAMP('...'), DATE('...') or INTERVAL('...', '...') of constants"),
        ("T_AFTER(a, INTERVAL(b, '..'))", "T_AFTER needs TIMESTAMP('...')"),
        ("T_AFTER(a, b)", "T_AFTER needs an attribute and an instant or interval"),
        ("T_AFTER(a, INTERVAL('2027-01-01', '2026-01-01'))", "before its start 2027-01-01"),
        ("before(time, '2026-01-01', '2026-01-02')", "belongs into the addressing of an event"),
    ],
)
def test_a_filter_that_cannot_be_is_refused_with_advice(text: str, says: str) -> None:
    with pytest.raises(InvalidPredicate) as error:
        parse(text)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("tree", "says"),
    [
        ({"a": 1}, "holds {'a': 1} where a condition"),
        ({"op": "and"}, "and needs a list of arguments under 'args'"),
        ({"op": "and", "args": [{"op": "or", "args": [3]}]}, "holds 3 where a condition"),
        ({"op": "and", "args": []}, "AND needs at least one condition"),
        ({"op": "=", "args": [{"property": "a"}]}, "= takes 2 arguments, not 1"),
        ({"op": "=", "args": [{"property": ""}, 1]}, "a property has a non-empty name"),
        ({"op": "=", "args": [{"property": "a"}, float("inf")]}, "inf is no number to compare with"),
        ({"op": "=", "args": [{"property": "a"}, {"x": 1}]}, "holds {'x': 1} where a value belongs"),
        ({"op": "in", "args": [{"property": "a"}, 3]}, "IN needs a list of values, not 3"),
        ({"op": "s_within", "args": [{"property": "a"}, {"bbox": [1]}]}, "BBOX needs west, south, east and north"),
        ({"op": "s_within", "args": [{"property": "a"}, {"type": "Point"}]}, "a Point needs longitude and latitude"),
        (
            {"op": "t_after", "args": [{"property": "a"}, {"interval": ["..", "..", ".."]}]},
            "an interval has a start and an end",
        ),
        ({"op": "=", "args": [{"property": "a"}, 10**5000]}, "holds a number that is too large"),
        ("{not json", "begins like JSON but is none"),
        (3, "CQL2 text or a JSON object, not int"),
    ],
)
def test_json_that_cannot_be_is_refused_with_advice(tree: Any, says: str) -> None:
    with pytest.raises(InvalidPredicate) as error:
        parse(tree)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("S_WITHIN(a, POLYGON((0 0, 1 0, 1 1)))", InvalidArea),
        ("S_WITHIN(a, POLYGON((0 0, 1 1, 1 0, 0 1, 0 0)))", InvalidArea),
        ("S_WITHIN(a, BBOX(0, 2, 1, 1))", InvalidArea),
        ("S_WITHIN(a, BBOX(0, 0, 1, 91))", InvalidPosition),
        ("S_WITHIN(a, POINT(181 0))", InvalidPosition),
        ("S_DWITHIN(a, POINT(0 0), -1)", InvalidPosition),
        ("a > TIMESTAMP('yesterday')", InvalidTime),
        ("a > DATE('2026-02-30')", InvalidTime),
        ("under(a, 'vehicle')", InvalidValue),
    ],
)
def test_errors_in_places_times_and_paths_say_what_they_are(text: str, error: type[InvalidInput]) -> None:
    with pytest.raises(error):
        parse(text)


class TestBounds:
    def test_long_texts_are_refused_with_the_bound(self) -> None:
        with pytest.raises(
            InvalidPredicate, match=f"has {LONGEST_TEXT + 1} characters; at most {LONGEST_TEXT} are read"
        ):
            parse("a" * (LONGEST_TEXT + 1))

    @pytest.mark.parametrize(
        "text",
        [
            "NOT " * 5000 + "a",
            "a = 1" + " + 1" * 10000,
            "a = " + "-" * 20000 + "b",
            "a" + " = 1" * 5000,
            "a" + " LIKE 'x'" * 5000,
            "a" + " IN (1)" * 5000,
            "casei(" * 5000 + "a" + ")" * 5000 + " = 'x'",
            "a BETWEEN " + "1 + " * 5000 + "1 AND 2",
            "(NOT NOT NOT NOT NOT NOT " * 30 + "a" + ")" * 30,
            "f(1, 2) + " * 5000 + "1 = a",
        ],
    )
    def test_deep_nesting_is_refused_with_the_bound(self, text: str) -> None:
        with pytest.raises(InvalidPredicate, match=f"nests more than {DEEPEST} terms in each other at line 1, column"):
            parse(text)

    @pytest.mark.parametrize(
        "text",
        [
            "(" * 30,
            "(" * 5000 + "a = 1" + ")" * 5000,
            "NOT (" * 5000 + "a" + ")" * 5000,
            "(" * 30 + "a ==" + ")" * 30,
            "a IN " + "(" * 30 + "1" + ", 2)" * 30,
            "(" * 12 + " AND ".join(["a = 1"] * 3000) + " ==" + ")" * 12,
            "S_WITHIN(p, POLYGON" + "(" * 40 + "0 0" + ")" * 40 + ")",
        ],
    )
    def test_what_would_keep_the_parser_busy_is_refused_at_once(self, text: str) -> None:
        start = time.process_time()
        with pytest.raises(
            InvalidPredicate,
            match=r"parentheses within parentheses at line 1, column \d+ \(more than 524288 steps to read\)",
        ):
            parse(text)
        assert time.process_time() - start < 20.0, "what it guards against takes years, and the machine may be slow"

    def test_deep_json_is_refused_with_the_bound(self) -> None:
        tree: Any = {"property": "a"}
        for _ in range(5000):
            tree = {"op": "not", "args": [tree]}
        with pytest.raises(InvalidPredicate, match=f"nests more than {DEEPEST} terms in each other; write it flatter"):
            parse(tree)
        with pytest.raises(InvalidPredicate, match="too deeply"):
            parse('{"op":"not","args":[' * 100_000)
        with pytest.raises(InvalidPredicate, match="more than 200000 parts"):
            parse({"op": "in", "args": [{"property": "a"}, [1] * 200_001]})

    def test_what_is_long_but_flat_is_read(self) -> None:
        assert len(parse(" OR ".join(f"a = {n} AND b = -{n}" for n in range(1500))).terms) == 1500  # type: ignore[union-attr]
        assert len(parse("a IN (" + ", ".join(str(-n) for n in range(5000)) + ")").values) == 5000  # type: ignore[union-attr]
        ring = ", ".join(f"{n / 1000} {-n / 1000}" for n in range(2000))
        assert isinstance(parse(f"S_WITHIN(p, POLYGON(({ring}, 2 1, 0 0)))"), Spatial)
        assert isinstance(parse("NOT (" * 12 + "a = 1" + ")" * 12), Not)

    def test_what_stands_in_quotes_does_not_nest(self) -> None:
        assert parse("a = '((((" + "(" * 100 + "'") == eq("a", "(" * 104)
        assert parse('"((" = 1') == eq("((", 1)

    @given(st.text(alphabet="()'\",=+-<>a1 .\n\\andotr", max_size=60))
    def test_any_text_is_read_or_refused(self, text: str) -> None:
        with suppress(InvalidInput):
            parse(text)


class TestAddressing:
    def test_constraints_and_the_temporal_predicate_are_taken_apart(self) -> None:
        predicate, when = parse_addressing(
            f"under(t, '/v') AND overlaps(time, TIMESTAMP('{T1}'), TIMESTAMP('{T2}')) AND a = 1"
        )
        assert predicate == And((Under("t", Path(("v",))), eq("a", 1)))
        assert when == TemporalPredicate("overlaps", I1, I2)

    def test_each_part_may_be_alone(self) -> None:
        assert parse_addressing("a = 1") == (eq("a", 1), None)
        assert parse_addressing(f"before(time, '{T1}', '{T2}')") == (None, TemporalPredicate("before", I1, I2))
        assert parse_addressing("T_AFTER(at, DATE('2026-01-01'))")[1] is None, "only time is reserved"

    @pytest.mark.parametrize("relation", CONTEXTCAST_RELATIONS)
    def test_all_predicates_of_contextcast(self, relation: str) -> None:
        z, tolerance = (300_000_000, ", '5m'") if relation in WITH_TOLERANCE else (0, "")
        expected = (None, TemporalPredicate(relation, I1, I2, z))
        assert parse_addressing(f"{relation}(time, TIMESTAMP('{T1}'), TIMESTAMP('{T2}'){tolerance})") == expected
        assert parse_addressing(f"{relation.upper()}(time, '{T1}', '{T2}'{tolerance})") == expected
        assert parse_addressing(f"{relation}(time, INTERVAL('{T1}', '{T2}'){tolerance})") == expected

    @pytest.mark.parametrize("relation", sorted(CQL2_RELATIONS))
    def test_all_relations_of_cql2(self, relation: str) -> None:
        assert parse_addressing(f"{relation}(time, INTERVAL('{T1}', '{T2}'))") == (
            None,
            TemporalPredicate(relation, I1, I2),
        )
        assert parse_addressing(f"{relation}(time, TIMESTAMP('{T1}'))") == (None, TemporalPredicate(relation, I1, I1))

    def test_the_property_is_brought_to_the_left(self) -> None:
        assert parse_addressing(f"T_BEFORE(TIMESTAMP('{T1}'), time)") == (None, TemporalPredicate("t_after", I1, I1))

    def test_open_bounds_dates_and_bounds_relative_to_now(self) -> None:
        assert parse_addressing(f"during(time, '..', '{T2}')")[1] == TemporalPredicate("during", None, I2)
        assert parse_addressing(f"T_DURING(time, INTERVAL('{T1}', '..'))")[1] == TemporalPredicate("t_during", I1, None)
        assert parse_addressing("before(time, DATE('2026-01-01'), '2026-01-02')")[1] == TemporalPredicate(
            "before", instant("2026-01-01T00:00:00Z"), instant("2026-01-02T00:00:00Z")
        )
        hour = 3_600_000_000
        assert parse_addressing("overlaps(time, '-2h', 'now')", now=I1)[1] == TemporalPredicate(
            "overlaps", I1 - 2 * hour, I1
        )
        assert parse_addressing("overlaps(time, '2026-01-01', 'now')", now=I1)[1] == TemporalPredicate(
            "overlaps", instant("2026-01-01T00:00:00Z"), I1
        )

    def test_json(self) -> None:
        tree = {"op": "AND", "args": [{"op": "before", "args": [{"property": "time"}, T1, T2]}, {"property": "flag"}]}
        assert parse_addressing(tree) == (eq("flag", True), TemporalPredicate("before", I1, I2))

    def test_json_intervals_have_two_ends(self) -> None:
        for ends in (3, ["..", "..", ".."]):
            with pytest.raises(InvalidPredicate, match="before: an interval has a start and an end"):
                parse_addressing({"op": "before", "args": [{"property": "time"}, {"interval": ends}]})

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            (f"a = 1 OR before(time, '{T1}', '{T2}')", "joined to the rest by AND, outside of OR and NOT"),
            (f"NOT before(time, '{T1}', '{T2}')", "outside of OR and NOT"),
            (f"NOT T_AFTER(time, TIMESTAMP('{T1}'))", "outside of OR and NOT"),
            (f"time > TIMESTAMP('{T1}')", "time is the validity of the receiver's context"),
            (
                f"before(time, '{T1}', '{T2}') AND after(time, '{T1}', '{T2}')",
                "two temporal predicates on time; send two events",
            ),
            (f"before(at, '{T1}', '{T2}')", "before speaks of the property time: before(time, a, b)"),
            ("before(time)", "before takes time, two bounds and perhaps a tolerance"),
            ("T_AFTER(time, other)", "T_AFTER on time needs constants: T_AFTER(time, INTERVAL(a, b))"),
            (f"meets(time, '{T1}', '{T2}', 5)", "the tolerance is a duration such as '5m', not 5"),
            ("before(time, '-2h', 'now')", "'-2h' is relative, but what 'now' is has not been said"),
            ("before(time, 3, 4)", "BEFORE needs TIMESTAMP"),
            ("a =", "cannot be read at line 1"),
        ],
    )
    def test_anything_else_about_time_is_refused_with_advice(self, text: str, says: str) -> None:
        with pytest.raises(InvalidPredicate) as error:
            parse_addressing(text)
        assert says in str(error.value)

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            (f"before(time, '{T2}', '{T1}')", "before its start"),
            (f"meets(time, '{T1}', '{T2}')", "needs a tolerance"),
            (f"meets(time, '{T1}', '{T2}', '-5m')", "not negative"),
            (f"meets(time, '{T1}', '{T2}', 'soon')", "'soon' is not a duration"),
            (f"before(time, '{T1}', '{T2}', '5m')", "before takes no tolerance"),
            (f"before(time, 'then', '{T2}')", "'thenT00:00:00Z' is not an RFC 3339 instant"),
        ],
    )
    def test_times_that_cannot_be_are_refused(self, text: str, says: str) -> None:
        with pytest.raises(InvalidTime, match=says):
            parse_addressing(text)


def test_what_is_remembered_of_filters_does_not_fill_the_memory() -> None:
    tracemalloc.start()
    try:
        for number in range(600):
            parse(" AND ".join(f"a{each} = '{number} {each}'" for each in range(100)))
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size < 15_000_000  # each of them takes 40 kB


def test_a_pattern_is_not_longer_than_it_may_be() -> None:
    assert parse(f"name LIKE '{'a' * 1_024}'") == Like(Property("name"), "a" * 1_024)
    with pytest.raises(InvalidPredicate, match="at most 1024 characters, not 1025"):
        parse(f"name LIKE '{'a' * 1_025}'")
