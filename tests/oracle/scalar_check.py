"""Run by ``test_scalar_kernel`` in a process of its own: the comparison with the oracle, on the plain-loop kernel."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.oracle.strategies import WORLDS, scripts
from tests.oracle.twins import Twins

from nearcast.matching.vector import HAS_COMPRESS


@settings(
    examples(60),
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(st.sampled_from(WORLDS).flatmap(scripts))
def compare(script: list[tuple[object, ...]]) -> None:
    Twins().run(script)


if __name__ == "__main__":
    assert not HAS_COMPRESS
    compare()
    print("plain loop: all as defined")
