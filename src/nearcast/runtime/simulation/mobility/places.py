"""Places in a rectangle of the plane."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

from nearcast.errors import InvalidInput
from nearcast.runtime.simulation.plane import Bounds


def check_bounds(bounds: Bounds) -> None:
    # `not >` also refuses NaN.
    if not (all(map(math.isfinite, bounds)) and bounds.width > 0 and bounds.height > 0):
        raise InvalidInput(
            f"there is no room within {tuple(bounds)}; give west, south, east and north in metres, west below east and "
            "south below north"
        )


def uniform_place(bounds: Bounds) -> Callable[[Random], tuple[float, float]]:
    west, south, width, height = bounds.west, bounds.south, bounds.width, bounds.height

    def place(random: Random) -> tuple[float, float]:
        return west + width * random.random(), south + height * random.random()

    return place
