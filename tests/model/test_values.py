from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.errors import InvalidPredicate, InvalidValue
from nearcast.model.area import Box, Circle
from nearcast.model.cql2 import parse
from nearcast.model.evaluation import evaluate
from nearcast.model.geometry import Point
from nearcast.model.predicate import Comparison, Custom, Literal, Property
from nearcast.model.values import (
    AttributeType,
    OneOf,
    Path,
    Range,
    Subtree,
    attribute_type,
    checked_value,
    register_type,
    type_of,
    unregister_type,
)

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (3, "integer"),
        (True, "boolean"),
        (3.5, "float"),
        ("x", "string"),
        (NOON, "instant"),
        (Point(49.0, 8.0), "point"),
        (Path.parse("/a"), "path"),
        (frozenset({"x"}), "tags"),
        (OneOf([1, 2]), "integer"),
        (Subtree(Path(())), "path"),
        (Range(1.5, 2), "float"),
        (Range(NOON, NOON), "instant"),
        (Box(0, 0, 1, 1), "point"),
    ],
)
def test_every_value_has_a_type_and_passes_its_check(value: object, name: str) -> None:
    assert type_of(value).name == name
    assert checked_value("a", value) == value
    assert attribute_type(name).name == name


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (float("nan"), "attribute 'speed' cannot be nan: a float is finite; leave the attribute out"),
        (float("inf"), "attribute 'speed' cannot be inf: a float is finite"),
        (2**63, "an integer has 64 bits; use a float or a string"),
        (datetime(2026, 1, 1), "an instant has a time zone; use datetime(..., tzinfo=UTC)"),  # noqa: DTZ001
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2))), "between the years 1 and 9999"),
        ({"", "x"}, "tags are non-empty strings"),
        ({1}, "tags are non-empty strings"),
        ("\ud800", "valid Unicode"),
        (None, "no attribute type has values of the Python type NoneType; known types: boolean, integer"),
        ([1], "Python type list"),
        (Circle(5), "is relative; a coarse position is absolute, use area.anchored(at)"),
    ],
)
def test_a_value_outside_its_domain_is_refused_with_advice(value: object, says: str) -> None:
    with pytest.raises(InvalidValue) as error:
        checked_value("speed", value)
    assert says in str(error.value)
    assert "'speed'" in str(error.value)


def test_an_attribute_needs_a_name() -> None:
    with pytest.raises(InvalidValue, match="non-empty name, not ''"):
        checked_value("", 1)


def test_an_unknown_type_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        InvalidValue,
        match="unknown attribute type 'colour'; known: boolean, integer, float, string, instant, point, path, tags",
    ):
        attribute_type("colour")


def test_instants_are_kept_in_utc() -> None:
    kept = checked_value("at", datetime(2026, 11, 15, 13, tzinfo=timezone(timedelta(hours=1))))
    assert kept == NOON
    assert isinstance(kept, datetime)
    assert kept.tzinfo is UTC


def test_a_set_becomes_a_tag_set() -> None:
    assert checked_value("tags", {"x", "y"}) == frozenset({"x", "y"})


class TestPath:
    def test_reads_and_writes(self) -> None:
        assert Path.parse("/vehicle/motorized/car").segments == ("vehicle", "motorized", "car")
        assert str(Path.parse("/vehicle/car")) == "/vehicle/car"
        assert str(Path.parse("/")) == "/"

    def test_is_under_itself_and_its_ancestors_only(self) -> None:
        car = Path.parse("/vehicle/car")
        assert car.is_under(car)
        assert car.is_under(Path.parse("/vehicle"))
        assert car.is_under(Path.parse("/"))
        assert not Path.parse("/vehicle").is_under(car)
        assert not Path.parse("/vehicle/cargo").is_under(car)

    @given(st.lists(st.text(min_size=1).filter(lambda s: "/" not in s and "\0" not in s)))
    def test_survives_text(self, segments: list[str]) -> None:
        path = Path(tuple(segments))
        assert Path.parse(str(path)) == path

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("vehicle", "begins with '/'"),
            ("", "begins with '/'"),
            ("/a//b", "empty segment"),
            ("/a/", "empty segment"),
            ("/a\0", "no segment"),
        ],
    )
    def test_refuses_what_is_none(self, text: str, says: str) -> None:
        with pytest.raises(InvalidValue, match=says):
            Path.parse(text)

    def test_refuses_segments_that_are_no_tuple(self) -> None:
        with pytest.raises(InvalidValue, match=r"use Path\.parse"):
            Path("/a")  # type: ignore[arg-type]


class TestCoarseValues:
    def test_one_of_needs_values_of_one_type(self) -> None:
        with pytest.raises(InvalidValue, match="at least one value and takes at most 1024, not 0"):
            OneOf([])
        with pytest.raises(InvalidValue, match="of one type, not of integer, string"):
            OneOf([1, "x"])
        with pytest.raises(InvalidValue, match="not of boolean, integer"):
            OneOf([1, True])
        with pytest.raises(InvalidValue, match="plain values"):
            OneOf([Range(1, 2)])
        with pytest.raises(InvalidValue, match=r"Path\.parse"):
            Subtree("/v")  # type: ignore[arg-type]

    def test_one_of_truth_values_is_not_one_of_numbers(self) -> None:
        assert OneOf([True]) != OneOf([1])
        assert OneOf([1, 2]) == OneOf([2, 1, 1])

    def test_a_range_has_two_ends_of_one_kind_in_order(self) -> None:
        with pytest.raises(InvalidValue, match="ends at 1, before its start 2"):
            Range(2, 1)
        with pytest.raises(InvalidValue, match="two values of one type"):
            Range(1, NOON)
        with pytest.raises(InvalidValue, match="two numbers or two instants, not at 'a'"):
            Range("a", "b")  # type: ignore[arg-type]
        with pytest.raises(InvalidValue, match="finite"):
            Range(1, float("inf"))
        assert Range(1, 1.5).high == 1.5


@dataclass(frozen=True, order=True)
class Version:
    major: int
    minor: int


def _version(value: Version) -> Version:
    if value.major < 0:
        raise ValueError("versions are not negative")
    return value


def _parsed(text: str) -> Version:
    return Version(*map(int, text.split(".")))


@pytest.fixture
def version_type() -> Iterator[None]:
    register_type(
        AttributeType(
            "version",
            Version,
            _version,
            {
                "=": lambda value, text: value == _parsed(text),
                "<": lambda value, text: value < _parsed(text),
                "compatible_with": lambda value, text: value.major == _parsed(text).major,
            },
        ),
    )
    yield
    unregister_type("version")


@pytest.mark.usefixtures("version_type")
class TestPlugInTypes:
    def test_a_new_type_is_usable_by_its_domain(self) -> None:
        assert checked_value("v", Version(1, 2)) == Version(1, 2)
        assert type_of(OneOf([Version(1, 2)])).name == "version"
        with pytest.raises(InvalidValue, match=r"attribute 'v' cannot be .*: versions are not negative"):
            checked_value("v", Version(-1, 0))

    def test_and_by_its_operators_from_filters(self) -> None:
        predicate = parse("COMPATIBLE_WITH(v, '1.9')")
        assert predicate == Custom("compatible_with", "v", "1.9")
        assert evaluate(predicate, {"v": Version(1, 2)}) is True
        assert evaluate(predicate, {"v": Version(2, 0)}) is False
        assert evaluate(predicate, {"v": OneOf([Version(2, 0), Version(1, 0)])}) is True
        assert evaluate(predicate, {"v": "1.2"}) is None
        assert evaluate(predicate, {}) is None
        assert evaluate(parse("compatible_with(v, 'rubbish')"), {"v": Version(1, 2)}) is None

    def test_and_by_the_comparisons_that_it_defines(self) -> None:
        assert evaluate(parse("v < '1.10'"), {"v": Version(1, 9)}) is True
        assert evaluate(parse("v = '1.10'"), {"v": Version(1, 9)}) is False
        assert evaluate(parse("v >= '1.10'"), {"v": Version(1, 9)}) is None
        assert evaluate(Comparison("=", Property("v"), Literal(3)), {"v": Version(1, 9)}) is None

    def test_constants_may_be_places_and_lists(self) -> None:
        assert parse("compatible_with(v, POINT(8 49))") == Custom("compatible_with", "v", Point(49, 8))
        assert parse("compatible_with(v, ('1.0', '2.0'))") == Custom("compatible_with", "v", ("1.0", "2.0"))

    @pytest.mark.parametrize("text", ["compatible_with('x', v)", "compatible_with(v, w)"])
    def test_operands_are_an_attribute_and_a_constant(self, text: str) -> None:
        with pytest.raises(InvalidPredicate, match="needs an attribute and a constant"):
            parse(text)

    def test_names_and_python_types_are_taken_once(self) -> None:
        with pytest.raises(InvalidValue, match="'version' is known already"):
            register_type(AttributeType("version", complex, complex))
        with pytest.raises(InvalidValue, match="Version have an attribute type already"):
            register_type(AttributeType("other", Version, _version))

    @pytest.mark.parametrize("operator", ["under", "S_NEAR", "not an identifier"])
    def test_operators_do_not_shadow_those_that_have_a_meaning(self, operator: str) -> None:
        with pytest.raises(InvalidValue, match="cannot be an operator of 'complex'"):
            register_type(AttributeType("complex", complex, complex, {operator: lambda _value, _constant: True}))


def test_built_in_types_stay() -> None:
    with pytest.raises(InvalidValue, match="built in"):
        unregister_type("integer")
