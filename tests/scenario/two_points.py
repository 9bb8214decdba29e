"""A plain with two attraction points, and people who go from one to the other."""

from __future__ import annotations

from typing import Final

TWO_POINTS: Final = """
[[world.attraction_points]]
name = "park"
x = "-100 m"
y = "0 m"
radius = "70 m"
[[world.attraction_points]]
name = "square"
x = "100 m"
y = "0 m"
radius = "70 m"
[mobility]
model = "waypoint"
speed = "8 m/s"
pause = "1 s"
[[workload]]
kind = "AR"
radius = "60 m"
"""
"""Of a scenario; behind its ``[world]``."""
