"""Sections of filter schemes: whatever a scheme asks of its parameters is said where they stand in the file."""

from __future__ import annotations

from typing import Annotated

import pytest
from msgspec import Meta

from nearcast.errors import InvalidScenario
from nearcast.filtering import registry
from nearcast.filtering.parameters import Radial
from nearcast.scenario.reading import parse
from nearcast.scenario.schema import Scenario


class Pairs(Radial, frozen=True, kw_only=True):
    """One that asks for more than bounds."""

    cells: Annotated[int, Meta(lt=10, multiple_of=2, description="cells")] = 4
    share: Annotated[float, Meta(ge=0.0, lt=1.0, description="share")] = 0.5
    low: Annotated[float, Meta(description="low")] = 1.0
    high: Annotated[float, Meta(description="high")] = 2.0

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("low is above high")


@pytest.fixture(autouse=True)
def pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._OURS, "PAIRS", registry.Entry(Pairs))


def read(keys: str) -> Scenario:
    return parse(f"[[transition]]\nat = '10 s'\n[transition.scheme]\nkind = 'PAIRS'\n{keys}", name="game.toml")


def test_what_a_scheme_takes_is_read() -> None:
    assert dict(read("cells = 8\nshare = 0.9").transition[0].scheme.spec().parameters) == {"cells": 8, "share": 0.9}


@pytest.mark.parametrize(
    ("keys", "where", "why"),
    [
        ("cells = 10", "cells", "Expected `int` <= 9"),
        ("cells = 3", "cells", "multiple of 2"),
        ("share = 1.0", "share", "Expected `float` < 1.0"),
        ("low = 3.0", "low", "low is above high"),
        ("low = 1.5\nhigh = 1.2", "high", "low is above high"),
        ("cells = 3\nshare = 0.9", "cells", "multiple of 2"),
    ],
)
def test_what_a_scheme_refuses_is_said_where_it_stands(keys: str, where: str, why: str) -> None:
    with pytest.raises(InvalidScenario) as refused:
        read(keys)
    (line,) = str(refused.value).splitlines()
    assert line.startswith(f"game.toml: transition[1].scheme.{where}: ")
    assert why in line
