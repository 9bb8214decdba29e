"""Distributions as people write them: ``5 s``, ``uniform 1 m/s .. 2 m/s``, ``normal 100 ms +- 25 ms``.

One form, a text that can be read aloud; a quantity alone always has that value.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Final

from nearcast.errors import InvalidInput, InvalidScenario
from nearcast.runtime.simulation.distributions import Constant, Distribution, Exponential, LogNormal, Normal, Uniform
from nearcast.scenario.kinds import Kind, Range, Toml
from nearcast.scenario.quantities import Dimension, shown

_FORMS: Final = {
    "uniform": (r"(?P<low>.+?)\s*\.\.\s*(?P<high>.+)", "uniform 1 {0} .. 2 {0}"),
    "normal": (
        r"(?P<centre>.+?)\s*(?:\+-|±)\s*(?P<deviation>.+?)(?:\s+within\s+(?P<low>.+?)\s*\.\.\s*(?P<high>.+))?",
        "normal 1.5 {0} +- 0.2 {0} within 1 {0} .. 2 {0}",
    ),
    "lognormal": (
        r"(?P<median>.+?)\s+sigma\s+(?P<sigma>\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?)(?:\s+above\s+(?P<offset>.+))?",
        "lognormal 1.5 {0} sigma 0.5 above 1 {0}",
    ),
    "exponential": (r"(?P<scale>.+?)(?:\s+above\s+(?P<offset>.+))?", "exponential 1.5 {0} above 1 {0}"),
}
"""How each is written, and an example for units such as ``s``; the parts are the parameters of its class."""


@dataclass(frozen=True)
class Spread(Kind[Distribution]):
    """A distribution of a quantity.  A normal one keeps to the range of its key: what falls outside is drawn again."""

    dimension: Dimension[float]
    range: Range[float] = field(default_factory=Range)

    def read(self, value: Toml) -> Distribution:
        name, _, rest = value.strip().partition(" ") if isinstance(value, str) else ("", "", "")
        if name not in _FORMS:
            made: Distribution = Constant(self._quantity(value))
        else:
            pattern, form = _FORMS[name]
            match = re.fullmatch(pattern, rest.strip())
            if match is None:
                example = form.format(self.dimension.base)
                raise InvalidScenario(f"{shown(value)} is no {name} distribution; write it like '{example}'")
            made = self._made(name, match.groupdict(), str(value))
        self._check(made, shown(value))
        return made

    def write(self, value: Distribution) -> Toml:
        text = self.dimension.text
        match value:
            case Constant(constant):
                return text(constant)
            case Uniform(low, high):
                return f"uniform {text(low)} .. {text(high)}"
            case Normal(centre, deviation, low, high):
                window = "" if (low, high) == self._window() else f" within {text(low)} .. {text(high)}"
                return f"normal {text(centre)} +- {text(deviation)}{window}"
            case LogNormal(median, sigma, offset):
                return f"lognormal {text(median)} sigma {sigma!r}{f' above {text(offset)}' if offset else ''}"
            case Exponential(scale, offset):
                return f"exponential {text(scale)}{f' above {text(offset)}' if offset else ''}"
        raise InvalidScenario(f"{value!r} cannot be written in a scenario file")

    def describe(self) -> str:
        return f"distribution of a {self.dimension.name}{self.range.describe(self.dimension.text)}"

    def _quantity(self, value: Toml) -> float:
        return self.dimension.parse(value)

    def _made(self, name: str, parts: dict[str, str | None], written: str) -> Distribution:
        sigma = parts.pop("sigma", None)
        given = {part: self._quantity(text) for part, text in parts.items() if text is not None}
        try:
            if name == "uniform":
                return Uniform(**given)
            if name == "normal":
                low, high = self._window()
                return Normal(**{"low": low, "high": high, **given})
            if name == "lognormal":
                return LogNormal(sigma=float(sigma or 0), **given)
            return Exponential(**given)
        except InvalidScenario:
            raise
        except InvalidInput as error:
            raise InvalidScenario(f"{written!r} is no distribution: {error}") from None

    def _window(self) -> tuple[float, float]:
        bounds = [bound for bound in (self.range.least, self.range.above) if bound is not None]
        return (max(bounds, default=-math.inf), math.inf if self.range.most is None else self.range.most)

    def _check(self, made: Distribution, written: str) -> None:
        text = self.dimension.text
        if isinstance(made, (Uniform, Normal)):
            self.range.check(made.high, written, text)
        try:
            self.range.check(made.least, written, text)
        except InvalidScenario as error:
            if isinstance(made, (Constant, Uniform)):
                raise
            # A speed that may come close to 0 makes walks that never end (mobility.wandering.check_habits).
            way_out = "say 'within low .. high'" if isinstance(made, Normal) else "say 'above low'"
            raise InvalidScenario(f"{error}; {way_out} to keep away from it") from None
