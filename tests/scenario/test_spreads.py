"""Distributions as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.scenario.strategies import distributions

from nearcast.errors import InvalidScenario
from nearcast.runtime.simulation.distributions import Constant, Distribution, Exponential, LogNormal, Normal, Uniform
from nearcast.scenario.kinds import Range
from nearcast.scenario.quantities import DURATION, SPEED
from nearcast.scenario.spreads import Spread

LATENCY = Spread(DURATION, Range(least=0.0))
PACE = Spread(SPEED, Range(above=0.0))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("100 ms", Constant(0.1)),
        ("uniform 1 s .. 1 min", Uniform(1.0, 60.0)),
        ("uniform 1 s..2 s", Uniform(1.0, 2.0)),
        ("normal 100 ms +- 25 ms", Normal(0.1, 0.025, 0.0)),
        ("normal 100 ms ± 25 ms within 50 ms .. 150 ms", Normal(0.1, 0.025, 0.05, 0.15)),
        ("lognormal 80 ms sigma 0.5", LogNormal(0.08, 0.5)),
        ("lognormal 80 ms sigma 0.5 above 20 ms", LogNormal(0.08, 0.5, 0.02)),
        ("exponential 1 min", Exponential(60.0)),
        ("exponential 1 min above 5 s", Exponential(60.0, 5.0)),
    ],
)
def test_a_text_means_a_distribution(text: str, meant: Distribution) -> None:
    assert LATENCY.read(text) == meant
    assert LATENCY.read(LATENCY.write(meant)) == meant


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("uniform 1 m/s .. 2 s", "'2 s' is a duration; a speed such as '1.5 m/s' is needed"),
        ("uniform 1 m/s", "is no uniform distribution; write it like 'uniform 1 m/s .. 2 m/s'"),
        ("uniform 2 m/s .. 1 m/s", "is no distribution: Uniform: low is 2.0, above high"),
        ("normal 2 m/s", "is no normal distribution; write it like 'normal 1.5 m/s +- 0.2 m/s within 1 m/s .. 2 m/s'"),
        ("normal 1 m/s +- 0 m/s within 1 m/s .. 2 m/s", "deviation must be positive"),
        ("normal 2 m/s +- 1 m/s", "more than 0 m/s is needed; say 'within low .. high' to keep away from it"),
        ("lognormal 2 m/s", "is no lognormal distribution"),
        ("exponential 2 m/s", "more than 0 m/s is needed; say 'above low' to keep away from it"),
        ("-1 m/s", "'-1 m/s' is too small; more than 0 m/s is needed"),
        ("uniform 0 m/s .. 1 m/s", "is too small; more than 0 m/s is needed"),
        ("1 .. 2 m/s", "has the unknown unit '.. 2 m/s'"),
    ],
)
def test_what_is_refused_says_how_to_write_it(text: str, complaint: str) -> None:
    with pytest.raises(InvalidScenario) as refused:
        PACE.read(text)
    assert complaint in str(refused.value)


def test_a_number_alone_has_no_unit() -> None:
    with pytest.raises(InvalidScenario, match="5 has no unit; a speed"):
        PACE.read(5)


@pytest.mark.parametrize("kind", [LATENCY, PACE], ids=["latency", "speed"])
@given(data=st.data())
def test_what_is_written_reads_as_the_same_distribution(kind: Spread, data: st.DataObject) -> None:
    made = data.draw(distributions(kind.range))
    assert kind.read(kind.write(made)) == made
