"""Messages to whoever was or will be in a context: who gets them is what ``model.delivery`` defines, moment by moment."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.broker.temporal_twins import (
    ADDRESSING,
    CLIENTS,
    REACHES,
    agree,
    clients,
    often,
    points,
    presence,
    publishing,
    subscribing,
)

from nearcast.model.temporal import RELATIONS, WITH_TOLERANCE

Script = list[tuple[Any, ...]]
ORDER = ("-3000.3ms", "-1000.3ms", "-2.7ms", "now", "+2.3ms", "+1000.3ms", "+3000.3ms")
"""Never the instant at which something else happens: what is reported in the microsecond in which time decides comes after it."""

bounds = st.sampled_from((*ORDER, ".."))


def _text(relation: str, a: str, b: str) -> str:
    if relation.startswith("t_"):
        return f"{relation.upper()}(time, INTERVAL('{a}', '{b}'))"
    tolerance = ", '1000.4ms'" if relation in WITH_TOLERANCE else ""
    return f"{relation}(time, '{a}', '{b}'{tolerance})"


def _ordered(pair: tuple[str, str]) -> bool:
    a, b = pair
    return ".." in pair or ORDER.index(a) <= ORDER.index(b)


COMMON = ("overlaps", "overlaps", "contains", "during", "ends_in", "starts_in", "after", "before", "t_intersects")
"""Many of the others hold of next to nothing."""

when = st.builds(
    lambda relation, pair: _text(relation, *pair),
    st.one_of(st.sampled_from(COMMON), st.sampled_from(RELATIONS)),
    st.tuples(bounds, bounds).filter(_ordered),
)
temporal = publishing(when=when, to=often(st.sampled_from(ADDRESSING)), reach=often(st.sampled_from(REACHES[-3:])))
waiting = st.tuples(st.just("wait"), st.sampled_from((1, 3, 500, 1_000, 2_500)))
steps = st.one_of(
    *presence,
    *presence,
    waiting,
    waiting,
    subscribing,
    temporal,
    publishing(when=when, expiry=often(st.sampled_from((1, 2)))),
    st.tuples(st.just("accept"), clients, st.booleans()),
    st.tuples(st.just("leave"), clients),
    st.tuples(st.just("unpublish"), st.integers(0, 10)),
)
everything = {"topic_filter": "#", "where": None, "area": None, "since": "..", "until": None, "no_local": False}
beginnings = st.tuples(
    *(st.tuples(st.just("move"), st.just(client), points) for client in CLIENTS),
    st.just(("subscribe", "ada", everything)),
    st.just(("subscribe", "bob", everything)),
    waiting,
    st.one_of(*presence),
    waiting,
    temporal,
    temporal,
    temporal,
).map(list)


@given(beginnings, st.lists(steps, min_size=5, max_size=25))
@settings(max_examples=60)
def test_every_message_finds_its_receivers(beginning: Script, script: Script) -> None:
    asyncio.run(agree([*beginning, *script], calm=True))
