"""Groups of candidates that stand together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nearcast.dissemination.gateways.candidate import Distances


def clusters(between: Distances, radius: float, most: int, names: Sequence[str]) -> list[list[int]]:
    """Clusters in which nobody is farther than ``radius`` from the one in its middle, unless there are the most allowed already.

    Farthest first (Gonzalez, 1985): the next cluster begins with whoever is farthest from all others, so that no choice of that many
    middles has less than half the distance to the worst placed.  Where people stand close there are few: it is the density that decides
    (BYPASS.KOM 6.4.2), not their number.
    """
    # The order in which candidates are given must not matter: among equals the name decides.
    order = np.array(sorted(range(len(names)), key=names.__getitem__))
    middles = [int(order[between[order].sum(axis=1).argmin()])]
    to_middle = between[middles[0]].copy()
    while len(middles) < most:
        farthest = int(order[to_middle[order].argmax()])
        if to_middle[farthest] <= radius:
            break
        middles.append(farthest)
        np.minimum(to_middle, between[farthest], out=to_middle)
    found: list[list[int]] = [[] for _ in middles]
    for candidate, cluster in enumerate(between[:, middles].argmin(axis=1).tolist()):
        found[cluster].append(candidate)
    return [cluster for cluster in found if cluster]
