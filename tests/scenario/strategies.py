"""Random scenarios, made from the declarations of their keys."""

from dataclasses import fields
from typing import Any

from hypothesis import strategies as st

from nearcast.model.geometry import Point
from nearcast.model.time import LARGEST
from nearcast.runtime.simulation.distributions import Constant, Distribution, Exponential, LogNormal, Normal, Uniform
from nearcast.scenario.kinds import (
    Count,
    File,
    Flag,
    Kind,
    Moment,
    Number,
    OneOf,
    Optional,
    Place,
    Quantity,
    Range,
    Row,
    Several,
    Text,
    Topic,
    kind_of,
)
from nearcast.scenario.schema import Scenario
from nearcast.scenario.spreads import Spread
from nearcast.scenario.tables import Section, Table, Varieties


def values(kind: Kind[Any]) -> st.SearchStrategy[Any]:
    """Whatever may stand at a key of that kind."""
    match kind:
        case Flag():
            return st.booleans()
        case Topic():
            return st.text("abc/", min_size=1, max_size=5)
        case Text():
            return st.text(max_size=8)
        case OneOf(words):
            return st.sampled_from(words)
        case Moment():
            return st.integers(-LARGEST // 10, LARGEST // 10)
        case Place():
            return st.builds(Point, st.floats(-90, 90), st.floats(-180, 180))
        case Count(bounds):
            return whole(bounds)
        case Quantity(dimension):
            is_whole = isinstance(dimension.parse(dimension.example), int)
            return whole(kind.range) if is_whole else real(kind.range)
        case Number(bounds):
            return real(bounds)
        case Spread(_, bounds):
            return distributions(bounds)
        case Optional(inner):
            return st.none() | values(inner)
        case Row(kinds):
            return st.tuples(*map(values, kinds))
        case Several(inner):
            return st.lists(values(inner), max_size=3).map(tuple)
        case Table(section):
            return sections(section)
        case Varieties(_, varieties):
            return st.one_of([sections(section) for section in varieties.values() if not needs_file(section)])
    raise AssertionError(kind)


def sections(section: type[Section]) -> st.SearchStrategy[Any]:
    """Sections whose keys agree with each other."""
    parts = {part.name: values(kind_of(part)) for part in fields(section)}
    return st.builds(section, **parts).filter(lambda made: not list(made.contradictions()))


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Some sections are random; the others have their defaults, so that all of them often agree."""
    chosen = draw(st.lists(st.sampled_from(sorted(SECTIONS)), max_size=3, unique=True))
    return Scenario(**{name: draw(SECTIONS[name]) for name in chosen})


def needs_file(section: type[Section]) -> bool:
    return any(isinstance(kind_of(part), File) for part in fields(section))


def whole(bounds: Range[int]) -> st.SearchStrategy[int]:
    return st.integers(bounds.least or 0, bounds.most if bounds.most is not None else 10**12)


def real(bounds: Range[float]) -> st.SearchStrategy[float]:
    low = bounds.above if bounds.above is not None else bounds.least
    most = 1e9 if bounds.most is None else bounds.most
    return st.floats(-1e9 if low is None else low, most, exclude_min=bounds.above is not None)


@st.composite
def distributions(draw: st.DrawFn, bounds: Range[float]) -> Distribution:
    low = draw(real(bounds))
    size = draw(st.floats(1e-3 * max(1.0, abs(low)), 1e3 * max(1.0, abs(low))))
    high = low + size if bounds.most is None else min(low + size, bounds.most)
    match draw(st.sampled_from(["constant", "uniform", "normal", "lognormal", "exponential"])):
        case "constant":
            return Constant(low)
        case "uniform":
            return Uniform(low, high)
        case "normal" if bounds.least is not None and draw(st.booleans()):
            return Normal(bounds.least + size, size, bounds.least)
        case "normal":
            return Normal((low + high) / 2, size, low, high) if high - low >= size / 2 else Constant(low)
        case "lognormal":
            return LogNormal(size, draw(st.floats(0.01, 3)), low)
        case _:
            return Exponential(size, low)


SECTIONS = {part.name: values(kind_of(part)) for part in fields(Scenario)}
