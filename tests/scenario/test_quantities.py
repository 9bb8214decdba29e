"""Numbers with units: what they mean, what is refused and how, and how they are written."""

import math
import sys
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.errors import InvalidScenario
from nearcast.scenario.quantities import (
    ANGLE,
    BIT_RATE,
    DIMENSIONS,
    DURATION,
    LENGTH,
    LONGEST,
    POWER,
    PROBABILITY,
    RATE,
    SIZE,
    SPEED,
    Dimension,
)

every_dimension = pytest.mark.parametrize("dimension", DIMENSIONS, ids=lambda dimension: dimension.name)


@pytest.mark.parametrize(
    ("dimension", "text", "value"),
    [
        (DURATION, "10 min", 600.0),
        (DURATION, "5 s", 5.0),
        (DURATION, "100 ms", 0.1),
        (DURATION, "1h", 3600.0),
        (DURATION, "  250   us ", 0.00025),
        (DURATION, "1.5 d", 129_600.0),
        (LENGTH, "125 m", 125.0),
        (LENGTH, "1.3 km", 1300.0),
        (LENGTH, "-20 m", -20.0),
        (LENGTH, "1 mi", 1609.344),
        (SPEED, "1.5 m/s", 1.5),
        (SPEED, "36 km/h", 10.0),
        (SPEED, "25 mph", 11.176),
        (RATE, "1/s", 1.0),
        (RATE, "10/min", 1 / 6),
        (RATE, "3.6e3 /h", 1.0),
        (SIZE, "128 B", 128),
        (SIZE, "4 kB", 4000),
        (SIZE, "1 MiB", 2**20),
        (SIZE, "0.5 KiB", 512),
        (BIT_RATE, "1 Mbit/s", 1_000_000),
        (BIT_RATE, "5.5 Mbit/s", 5_500_000),
        (PROBABILITY, "5 %", 0.05),
        (PROBABILITY, 0.05, 0.05),
        (PROBABILITY, 1, 1.0),
        (ANGLE, "15 deg", 15.0),
        (POWER, "-82 dBm", -82.0),
    ],
)
def test_a_quantity_is_a_number_and_its_unit(dimension: Dimension[Any], text: object, value: float) -> None:
    assert dimension.parse(text) == value


@pytest.mark.parametrize(
    ("dimension", "text", "complaint"),
    [
        (SPEED, "5 s", "'5 s' is a duration; a speed such as '1.5 m/s' is needed"),
        (SPEED, 5, "5 has no unit; a speed such as '1.5 m/s' is needed"),
        (SPEED, "5", "'5' has no unit; a speed such as '1.5 m/s' is needed"),
        (SPEED, "fast", "'fast' is no number with a unit; a speed such as '1.5 m/s' is needed"),
        (SPEED, True, "true is no quantity; a speed such as '1.5 m/s' is needed"),
        (SPEED, [1], "[1] is no quantity; a speed such as '1.5 m/s' is needed"),
        (
            SPEED,
            "5 km/H",
            "'5 km/H' has the unknown unit 'km/H' (did you mean 'km/h'?); a speed such as '1.5 m/s' is needed",
        ),
        (SPEED, "5 warp", "'5 warp' has the unknown unit 'warp'; a speed such as '1.5 m/s' is needed"),
        (
            DURATION,
            "5 m",
            "'5 m' is a length ('m' is metres; minutes are 'min'); a duration such as '10 min' is needed",
        ),
        (DURATION, "1h30m", "'1h30m' has the unknown unit 'h30m'; a duration such as '10 min' is needed"),
        (LENGTH, "15 deg", "'15 deg' is an angle; a length such as '125 m' is needed"),
        (SIZE, "1 Mbit/s", "'1 Mbit/s' is a bit rate; a size such as '128 B' is needed"),
        (SIZE, "1.5 B", "'1.5 B' is not a whole number of the smallest unit"),
        (LENGTH, "1e400 m", "'1e400 m' is too large"),
        (RATE, "1 s", "'1 s' is a duration; a rate such as '1/s' is needed"),
        (PROBABILITY, "5 dBm", "'5 dBm' is a power level; a probability such as '5 %' is needed"),
        (PROBABILITY, math.nan, "'nan' is no number with a unit; a probability such as '5 %' is needed"),
    ],
)
def test_what_is_refused_says_what_is_needed(dimension: Dimension[Any], text: object, complaint: str) -> None:
    with pytest.raises(InvalidScenario) as refused:
        dimension.parse(text)
    assert str(refused.value) == complaint


def test_what_takes_longer_than_can_be_counted_is_refused() -> None:
    assert DURATION.parse("1e12 s") == LONGEST
    with pytest.raises(InvalidScenario, match=r"'1e10 h' is too long; at most 1e12 s is possible"):
        DURATION.parse("1e10 h")


def test_an_absurd_exponent_is_refused_at_once() -> None:
    with pytest.raises(InvalidScenario, match="unknown unit"):
        DURATION.parse("1e999999999 s")


@pytest.mark.parametrize(
    ("dimension", "value", "text"),
    [
        (DURATION, 1500.0, "25 min"),
        (DURATION, 90.0, "90 s"),
        (DURATION, 0.1, "100 ms"),
        (DURATION, 0.0, "0 s"),
        (DURATION, 86_400.0, "1 d"),
        (LENGTH, 1300.0, "1300 m"),
        (LENGTH, 7500.0, "7500 m"),
        (LENGTH, -0.25, "-25 cm"),
        (SPEED, 1.5, "1.5 m/s"),
        (SPEED, 50 / 3.6, "50 km/h"),
        (RATE, 1.0, "1/s"),
        (SIZE, 128, "128 B"),
        (SIZE, 256_000, "256 kB"),
        (SIZE, 2**20, "1 MiB"),
        (BIT_RATE, 5_500_000, "5500 kbit/s"),
        (POWER, -82.0, "-82 dBm"),
    ],
)
def test_values_are_written_as_people_would(dimension: Dimension[Any], value: float, text: str) -> None:
    assert dimension.text(value) == text


@every_dimension
@given(data=st.data())
def test_what_is_written_reads_as_the_same_value(dimension: Dimension[Any], data: st.DataObject) -> None:
    whole = isinstance(dimension.parse(dimension.example), int)
    most = LONGEST if dimension is DURATION else sys.float_info.max
    value = data.draw(st.integers(0, 10**15) if whole else st.floats(-most, most))
    assert dimension.parse(dimension.text(value)) == value


@every_dimension
@given(number=st.decimals(-(10**6), 10**6, places=3), data=st.data())
def test_a_value_is_the_nearest_to_what_its_text_says(
    dimension: Dimension[Any], number: Fraction, data: st.DataObject
) -> None:
    unit = data.draw(st.sampled_from(sorted(dimension.units)))
    exact = Fraction(number) * dimension.units[unit]
    if isinstance(dimension.parse(dimension.example), int) and exact.denominator != 1:
        return
    assert dimension.parse(f"{number} {unit}") == float(exact)


def test_no_unit_belongs_to_two_kinds_of_quantity() -> None:
    units = [unit for dimension in DIMENSIONS for unit in dimension.units]
    assert len(units) == len(set(units))


@every_dimension
def test_examples_in_messages_can_be_read(dimension: Dimension[Any]) -> None:
    dimension.parse(dimension.example)
