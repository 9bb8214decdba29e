"""A radio that loses some of what it should deliver, and places where hosts are within reach of each other."""

from __future__ import annotations

from random import Random

from nearcast.runtime.simulation.disc import DiscNetwork
from nearcast.runtime.simulation.network import Parcel, SimulatedLink


def lossy(share: float, seed: int = 1) -> type[DiscNetwork]:
    """Each reception fails with that probability."""
    random = Random(seed)

    class LossyNetwork(DiscNetwork):
        def hand_over(self, parcel: Parcel, receiver: SimulatedLink) -> bool:
            return random.random() >= share and super().hand_over(parcel, receiver)

    return LossyNetwork


def connected(random: Random, count: int, reach: float = 100.0) -> list[tuple[float, float]]:
    """Anywhere, but each within reach of one before it."""
    places = [(500.0, 500.0)]
    while len(places) < count:
        x, y = random.choice(places)
        there = x + random.uniform(-reach, reach), y + random.uniform(-reach, reach)
        if (there[0] - x) ** 2 + (there[1] - y) ** 2 <= reach**2:
            places.append(there)
    return places
