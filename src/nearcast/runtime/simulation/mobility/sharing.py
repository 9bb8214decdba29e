"""A crowd of several kinds: who moves by which model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

from nearcast.errors import InvalidInput
from nearcast.runtime.legs import MobilityModel


def shared_out(shares: Sequence[tuple[float, MobilityModel]], people: int, random: Random) -> list[MobilityModel]:
    """One model for each, in random order; the numbers are exact (THYME 6.5: "60 % of nodes mobile" are 60 of 100).

    What does not divide evenly goes to the largest remainders.
    """
    total = math.fsum(share for share, _ in shares)
    if not total > 0 or any(share < 0 for share, _ in shares):
        raise InvalidInput(f"shares {[share for share, _ in shares]} cannot be; give numbers of 0 or more, not all 0")
    quotas = [people * share / total for share, _ in shares]
    counts = [math.floor(quota) for quota in quotas]
    by_remainder = sorted(range(len(shares)), key=lambda index: counts[index] - quotas[index])
    for index in by_remainder[: people - sum(counts)]:
        counts[index] += 1
    models = [model for count, (_, model) in zip(counts, shares, strict=True) for _ in range(count)]
    random.shuffle(models)
    return models
