"""How hard tests look: a little every time, ten times as hard with ``HYPOTHESIS_PROFILE=thorough``."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import pytest
from hypothesis import settings

T = TypeVar("T", bound=Callable[..., Any])

PROFILE: Final = os.environ.get("HYPOTHESIS_PROFILE", "ci")
THOROUGH: Final = PROFILE == "thorough"
HARDER: Final = 10


def examples(number: int) -> settings:
    """So many examples instead of the hundred of the profile, where one takes long or is worth little alone."""
    return settings(max_examples=number * HARDER if THOROUGH else number)


def campaign(test: T) -> T:
    """Many more cases; for who has the time."""
    unless_thorough = pytest.mark.skipif(not THOROUGH, reason="takes many minutes: HYPOTHESIS_PROFILE=thorough")
    return cast("T", pytest.mark.slow(unless_thorough(test)))
