"""Quantities as people write them: a number and its unit.

There is one parser for all units, so that a text with a unit means the same at every key, and a unit of the wrong kind is
told from an unknown one.  That is why ``m`` is always metres here and minutes are ``min``, unlike in the relative times of
subscriptions (``nearcast.model.time.duration``), where nothing but time can be meant and ``1h30m`` is common.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Generic, TypeVar

from nearcast.errors import InvalidScenario
from nearcast.guesses import near
from nearcast.settings_files import SIZES

N = TypeVar("N", int, float)

LONGEST: Final = 10**12
"""Seconds: thirty thousand years."""

# The exponent is short: nobody means 1e999999999, which would take for ever to compute.
_QUANTITY: Final = re.compile(r"\s*([+-]?\d{1,30}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?)\s*(\D.*?)?\s*")


@dataclass(frozen=True, slots=True, eq=False)
class Dimension(Generic[N]):
    """A kind of quantity: its name, what one looks like, and its units."""

    name: str
    example: str
    units: Mapping[str, Fraction]
    """Of each unit, how many of the first one, in which Python code counts."""

    number: Callable[[str, Fraction], N]
    bare: bool = False
    """Whether a number without a unit is one as well."""

    @property
    def base(self) -> str:
        return next(iter(self.units))

    @property
    def needed(self) -> str:
        """What is needed, as error messages end."""
        return f"{_article(self.name)} such as '{self.example}' is needed"

    def parse(self, value: object) -> N:
        """The number in base units, or ``InvalidScenario`` that says what is needed instead."""
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            if not self.bare:
                raise InvalidScenario(f"{value} has no unit; {self.needed}")
            value = repr(value)
        if not isinstance(value, str):
            raise InvalidScenario(f"{shown(value)} is no quantity; {self.needed}")
        match = _QUANTITY.fullmatch(value)
        if match is None:
            raise InvalidScenario(f"{value!r} is no number with a unit; {self.needed}")
        number, unit = match[1], match[2] or ""
        if unit in self.units:
            return self.number(value, Fraction(number) * self.units[unit])
        if not unit and self.bare:
            return self.number(value, Fraction(number))
        raise InvalidScenario(f"{value!r} {self._mistake(unit)}; {self.needed}")

    def text(self, value: N) -> str:
        """What ``parse`` reads as exactly this value: with few digits, in a unit in which it is whole if there is one."""
        if self.bare:
            return format(value, "g") if self.parse(format(value, "g")) == value else repr(value)
        if value == 0:
            return _written("0", self.base)
        exact = [text for text in map(self._in_unit(value), self._large_first()) if self._reads_as(text, value)]
        whole = [text for text in exact if re.fullmatch(r"-?\d+\D*", text)]
        fallback = _written(repr(value), self.base)
        return min(whole or exact, key=lambda text: (sum(map(str.isdigit, text)), len(text)), default=fallback)

    def _large_first(self) -> list[str]:
        return sorted(self.units, key=lambda unit: self.units[unit], reverse=True)

    def _in_unit(self, value: N) -> Callable[[str], str]:
        return lambda unit: _written(format(value / float(self.units[unit]), ".15g"), unit)

    def _reads_as(self, text: str, value: N) -> bool:
        try:
            return self.parse(text) == value
        except InvalidScenario:
            return False

    def _mistake(self, unit: str) -> str:
        if not unit:
            return "has no unit"
        for other in DIMENSIONS:
            if unit in other.units:
                # 5 m is what people write who think of nearcast.model.time, or of other tools.
                hint = " ('m' is metres; minutes are 'min')" if unit == "m" and self is DURATION else ""
                return f"is {_article(other.name)}{hint}"
        guess = "".join(f" (did you mean {found!r}?)" for found in near(unit, self.units))
        return f"has the unknown unit {unit!r}{guess}"


def shown(value: object) -> str:
    """A value as the file has it, cut where it gets long."""
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _written(number: str, unit: str) -> str:
    return f"{number}{unit}" if unit.startswith("/") else f"{number} {unit}"


def _article(name: str) -> str:
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def _real(text: str, value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        raise InvalidScenario(f"{text!r} is too large") from None


def _seconds(text: str, value: Fraction) -> float:
    # Kernels count microseconds in 64 bits.
    if abs(value) > LONGEST:
        raise InvalidScenario(f"{text!r} is too long; at most 1e12 s is possible")
    return float(value)


def _whole(text: str, value: Fraction) -> int:
    if value.denominator != 1:
        raise InvalidScenario(f"{text!r} is not a whole number of the smallest unit")
    return int(value)


def _units(**units: str) -> Mapping[str, Fraction]:
    return {unit: Fraction(factor) for unit, factor in units.items()}


DURATION: Final = Dimension(
    "duration", "10 min", _units(s="1", us="1e-6", ms="1e-3", min="60", h="3600", d="86400"), _seconds
)
LENGTH: Final = Dimension("length", "125 m", _units(m="1", cm="1e-2", km="1000", mi="1609.344"), _real)
SPEED: Final = Dimension(
    "speed",
    "1.5 m/s",
    {"m/s": Fraction(1), "km/h": Fraction(5, 18), "mph": Fraction("0.44704"), "kn": Fraction(1852, 3600)},
    _real,
)
RATE: Final = Dimension("rate", "1/s", {"/s": Fraction(1), "/min": Fraction(1, 60), "/h": Fraction(1, 3600)}, _real)
SIZE: Final = Dimension("size", "128 B", {unit: Fraction(size) for unit, size in SIZES.items()}, _whole)
BIT_RATE: Final = Dimension(
    "bit rate",
    "1 Mbit/s",
    {f"{prefix}bit/s": Fraction(1000**power) for power, prefix in enumerate(("", "k", "M", "G"))},
    _whole,
)
PROBABILITY: Final = Dimension("probability", "5 %", {"": Fraction(1), "%": Fraction(1, 100)}, _real, bare=True)
ANGLE: Final = Dimension("angle", "15 deg", _units(deg="1"), _real)
POWER: Final = Dimension("power level", "-82 dBm", _units(dBm="1"), _real)

DIMENSIONS: Final[tuple[Dimension[int] | Dimension[float], ...]] = (
    DURATION,
    LENGTH,
    SPEED,
    RATE,
    SIZE,
    BIT_RATE,
    PROBABILITY,
    ANGLE,
    POWER,
)
