"""Where everybody is: one straight leg per node, in one table that kernels can read.

All mobility models are piecewise linear (a walk along streets, a trace between two fixes, a pause), so a node needs only
the leg it is on.  The position at any instant follows from it exactly; nobody steps through time.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from nearcast.compiled import inlined, kernel
from nearcast.runtime.legs import Leg, MobilityModel
from nearcast.runtime.simulation.kernel import Simulation

# Models of mobility find everything here; a live host, which must not load numba, finds the legs alone in `runtime.legs`.
__all__ = ["FOREVER", "LEG", "Leg", "Legs", "MobilityModel", "Motion", "positions", "standing", "x_at", "y_at"]

LEG: Final = np.dtype(
    [
        ("start", np.int64),  # µs
        ("until", np.int64),  # µs: from here on the node stands still until it gets its next leg
        ("x", np.float64),  # metres at start
        ("y", np.float64),
        ("vx", np.float64),  # metres per second
        ("vy", np.float64),
    ]
)
Legs = npt.NDArray[Any]  # of LEG
FOREVER: Final = np.iinfo(np.int64).max


def standing(nodes: int) -> Legs:
    """A table in which everybody stands at the origin for ever."""
    legs = np.zeros(nodes, LEG)
    legs["until"] = FOREVER
    return legs


@inlined
def x_at(legs: Legs, node: int, time: int) -> float:
    """Metres east at ``time`` (µs)."""
    leg = legs[node]
    return float(leg.x + leg.vx * ((min(max(time, leg.start), leg.until) - leg.start) * 1e-6))


@inlined
def y_at(legs: Legs, node: int, time: int) -> float:
    """Metres north at ``time`` (µs)."""
    leg = legs[node]
    return float(leg.y + leg.vy * ((min(max(time, leg.start), leg.until) - leg.start) * 1e-6))


@kernel
def positions(legs: Legs, time: int, x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> None:
    """Fill ``x`` and ``y`` with where everybody is at ``time``."""
    for node in range(len(legs)):
        x[node] = x_at(legs, node, time)
        y[node] = y_at(legs, node, time)


class Motion:
    """The present legs of all nodes, renewed as they end."""

    def __init__(self, simulation: Simulation, nodes: int) -> None:
        self.table: Final = standing(nodes)
        """For kernels; rows are node numbers."""

        self._simulation: Final = simulation
        self.legs: Final = [Leg(0, int(FOREVER), 0.0, 0.0)] * nodes
        """The same as Python sees them: reading one field of a record costs more than a whole position from here."""

        self._lives: Final[dict[int, Iterator[Leg]]] = {}

    def move(self, node: int, model: MobilityModel, random: Random) -> None:
        """Let the node move by that model, from now on and for ever."""
        self._may_act("move somebody")
        life = self._lives[node] = model(random, self._simulation.now())
        self._renew((node, life))

    def put(self, node: int, x: float, y: float) -> None:
        """Let the node stand there."""
        self._may_act("move somebody")
        self._lives.pop(node, None)
        self._set(node, Leg(self._simulation.now(), int(FOREVER), x, y))

    def leg(self, node: int) -> Leg:
        return self.legs[node]

    def at(self, node: int) -> tuple[float, float]:
        """Where the node is now."""
        # As ``Leg.at``, for those who ask with every event that arrives.
        start, until, x, y, vx, vy = self.legs[node]
        now = self._simulation.time
        seconds = ((now if now < until else until) - start) * 1e-6
        return (x + vx * seconds, y + vy * seconds) if seconds > 0.0 else (x, y)

    def _renew(self, due: tuple[int, Iterator[Leg]]) -> None:
        node, life = due
        if self._lives.get(node) is not life:
            return  # it was told to stand, or to move by another model, before this leg was over
        leg = next(life, None)
        if leg is None:
            self.put(node, *self.legs[node].end)
            return
        self._set(node, leg)
        if leg.until < FOREVER:
            self._simulation.at(leg.until, self._renew, due)

    def _may_act(self, what: str) -> None:
        if self._simulation.observers.watching:
            self._simulation.observers.refuse(what)

    def _set(self, node: int, leg: Leg) -> None:
        # Who learns now of what reached it before was where it was then.
        self._simulation.backlog.catch_up()
        self.legs[node] = leg
        # The walk of a snail may take longer than kernels can count.
        self.table[node] = leg if leg.until <= FOREVER else leg._replace(until=FOREVER)
