"""Whenever, wherever and for whatever time clients subscribe: stored and live events together are what ``model.delivery`` defines."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.broker.temporal_twins import CLIENTS, agree, clients, often, points, presence, publishing, subscribing

Script = list[tuple[Any, ...]]
beginnings = st.tuples(
    *(st.tuples(st.just("move"), st.just(client), points) for client in CLIENTS),
    publishing(),
    publishing(),
    publishing(),
    subscribing,
).map(list)
"""All are somewhere, and something has happened when the first one subscribes."""

calm = st.one_of(
    *presence,
    subscribing,
    subscribing,
    publishing(expiry=often(st.sampled_from((1, 3)))),
    publishing(),
    st.tuples(st.just("wait"), st.sampled_from((400, 1_500, 4_000))),
    st.tuples(st.just("unpublish"), st.integers(0, 20)),
    st.tuples(st.just("unsubscribe"), st.integers(0, 20)),
    st.tuples(st.just("leave"), clients),
)
hurried = st.one_of(
    *presence,
    subscribing,
    publishing(),
    publishing(),
    st.tuples(st.just("turns"), st.integers(1, 30)),
    st.tuples(st.just("unsubscribe"), st.integers(0, 20)),
)


@given(beginnings, st.lists(calm, min_size=5, max_size=20))
@settings(max_examples=40)
def test_when_each_thing_is_done_before_the_next(beginning: Script, script: Script) -> None:
    asyncio.run(agree([*beginning, *script], calm=True))


@given(beginnings, st.lists(hurried, min_size=5, max_size=40))
@settings(max_examples=60)
def test_when_writes_and_replays_overlap(beginning: Script, script: Script) -> None:
    asyncio.run(agree([*beginning, *script], calm=False))
