"""How much of the work each candidate is to take over: all the same, or who has more battery the more."""

from __future__ import annotations

from collections.abc import Sequence


def relative_batteries(batteries: Sequence[float | None], strength: float) -> list[float]:
    """What the remaining batteries weigh, 1 on average; one that is not known is taken for an average one."""
    known = [battery for battery in batteries if battery is not None]
    if not strength or not known:
        return [1.0] * len(batteries)
    average = sum(known) / len(known)
    raised = [(average if battery is None else battery) ** strength for battery in batteries]
    mean = sum(raised) / len(raised)
    return [each / mean for each in raised] if mean > 0.0 else [1.0] * len(batteries)


def shared(turns: float, weights: Sequence[float]) -> list[float]:
    """So many turns in proportion to the weights, nobody more than one: what is too much for one falls to the others."""
    open_turns = min(turns, float(len(weights)))
    if min(weights) == max(weights):  # nearly always
        return [open_turns / len(weights)] * len(weights)
    given, takers = [0.0] * len(weights), list(range(len(weights)))
    while takers:
        together = sum(weights[index] for index in takers)
        if together <= 0.0:  # only those are left who should do nothing
            for index in takers:
                given[index] = open_turns / len(takers)
            return given
        # First a share of one at most: divided by the smallest numbers that there are, turns would be infinitely many.
        shares = {index: weights[index] / together * open_turns for index in takers}
        if max(shares.values()) < 1.0:
            for index, share in shares.items():
                given[index] = share
            return given
        for index in takers:
            if shares[index] >= 1.0:
                given[index] = 1.0
                open_turns -= 1
        takers = [index for index in takers if shares[index] < 1.0]
    return given
