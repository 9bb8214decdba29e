"""Random stories, schemes and plans, and what must hold in all of them."""

from __future__ import annotations

from typing import Final

from hypothesis import Phase, settings
from hypothesis import strategies as st
from tests.dissemination.transitions.comparison import Comparison
from tests.dissemination.transitions.story import Story
from tests.dissemination.transitions.town import Plan

from nearcast.transition.specification import MechanismSpec

_of = MechanismSpec.of


def few(examples: int) -> settings:
    """The same ones every time.  Nothing is shrunk: that would take minutes, and a smaller world is no easier to read."""
    return settings(max_examples=examples, derandomize=True, phases=(Phase.explicit, Phase.generate))


def many(examples: int) -> settings:
    return settings(max_examples=examples, phases=(Phase.explicit, Phase.reuse, Phase.generate))


SCHEMES: Final = (
    _of("RADIAL"),
    _of("RADIAL", update="distance", distance=8.0),
    _of("RADIAL", update="hybrid", distance=8.0, seconds=6.0),
    _of("STE"),
    _of("STE", alpha=0.7, angle=30.0),
    _of("GRID"),
    _of("GRID", factor=2),
    _of("GRID", factor=3, remember_location=False),
    _of("GRID", cells="hexagon", resolution=10),
    _of("EGRID", factor=4),
    _of("EGRID", factor=10, cover="circle"),
    _of("EGRID", factor=6, margin=15.0),
    _of("EGRID", cells="hexagon", resolution=10),
    _of("RGRID", factor=6),
    _of("ATTRACT"),
    _of("ATTRACT", extension=60.0),
    _of("ATTRACT", enable_updates=True),
    _of("MULTI"),
    _of("MULTI", extension=60.0),
)
"""All of them, some with several sets of parameters: transitions between these are transitions, too."""

FORGETFUL: Final = tuple(
    spec for spec in SCHEMES if spec.name in {"STE", "GRID", "ATTRACT", "MULTI"} or not spec.parameters
)
"""In which what the broker knows of a client follows from its last fix alone."""

schemes = st.sampled_from(SCHEMES)


@st.composite
def stories(
    draw: st.DrawFn, busy: tuple[float, ...] = (), *, least_interval: float = 1.0, seconds: float = 40.0
) -> Story:
    """Fixes are further apart than a round trip, and nobody is faster than a cyclist in a hurry."""
    return Story(
        draw(st.integers(0, 2**32)),
        clients=draw(st.sampled_from((10, 14, 20))),
        side=draw(st.sampled_from((600.0, 900.0, 1_300.0))),
        interval=draw(st.sampled_from([each for each in (1.0, 2.0, 3.7, 5.0) if each >= least_interval])),
        rate=draw(st.sampled_from((1.0, 3.0))),
        speed=draw(st.sampled_from((2.0, 6.0, 15.0))),
        busy=busy,
        seconds=seconds,
    )


@st.composite
def plans(draw: st.DrawFn, least: int, most: int, *, partial: bool = False) -> list[Plan]:
    """Some seconds apart, or faster than a round trip."""
    pause = st.one_of(st.floats(0.01, 0.5), st.floats(0.5, 2.0), st.floats(2.0, 6.0))
    share = st.one_of(st.none(), st.floats(0.2, 0.9)) if partial else st.none()
    seconds, made = draw(st.floats(10.0, 14.0)), []
    for _ in range(draw(st.integers(least, most))):
        made.append(Plan(seconds, draw(schemes), draw(share)))
        seconds += draw(pause)
    return made


def moments(made: list[Plan]) -> tuple[float, ...]:
    return tuple(plan.seconds for plan in made)


def assert_nothing_is_lost(found: Comparison) -> None:
    """No loss, nothing invented, nothing twice; and no client goes back to an older plan."""
    assert not found.lost()
    assert not found.invented()
    assert_nothing_twice(found)


def assert_nothing_twice(found: Comparison) -> None:
    assert not found.switched.duplicates()
    for said in found.switched.clocks.values():
        assert said == sorted(said)
