"""Joules of radios, added up by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.worlds import CLIENTS, Row, as_table

from nearcast.metrics import consumption

JOULES = st.floats(0, 1e6)


def cost(interface: str, host: str, *joules: float) -> Row:
    parts = dict(zip(("sending_joules", "receiving_joules", "listening_joules"), joules, strict=True))
    return {"since": 0, "until": 1, "interface": interface, "host": host, "listened": 1, **parts}


@given(
    st.lists(
        st.tuples(st.sampled_from(["bluetooth", "wifi"]), st.sampled_from(CLIENTS), JOULES, JOULES, JOULES), max_size=20
    ),
    st.integers(1, 3),
    st.booleans(),
)
def test_it_is_what_adding_says(costs: list[tuple[str, str, float, float, float]], pieces: int, plain: bool) -> None:
    table = as_table("energy", [cost(*each) for each in costs], pieces=pieces, plain=plain)
    found = {row["interface"]: row for row in consumption(table).to_pylist()}
    assert list(found) == sorted({interface for interface, *_ in costs})
    for interface, row in found.items():
        own = [joules for on, _, *joules in costs if on == interface]
        parts = [sum(column) for column in zip(*own, strict=True)]
        assert row["hosts"] == len(own)
        assert [row[name] for name in ("sending_joules", "receiving_joules", "listening_joules")] == pytest.approx(
            parts
        )
        assert row["joules"] == pytest.approx(sum(parts))
        assert row["joules_per_host"] == pytest.approx(sum(parts) / len(own))
