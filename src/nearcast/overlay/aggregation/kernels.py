"""The two loops over all aggregates of a link that each new context makes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nearcast.compiled import inlined, kernel

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]


@inlined
def _ones(word: np.uint64) -> int:
    """How many bits are set."""
    count = 0
    while word:
        word = word & (word - np.uint64(1))
        count += 1
    return count


@kernel
def choose(
    bits: Words, taken: Flags, words: Words, names: int, threshold: float, prefilter: bool, rows: Rows, union: Rows
) -> int:
    """Fill in the rows worth comparing, and how many attributes each has together with the context; says how many they are."""
    found = 0
    for row in range(len(taken)):
        if not taken[row]:
            continue
        shared = together = 0
        for word in range(bits.shape[1]):
            together += _ones(bits[row, word])
            if word < len(words):
                shared += _ones(bits[row, word] & words[word])
        together += names - shared
        # Similarity is at most structural similarity, also after rounding: so this loses nothing.
        if not prefilter or together == 0 or shared / together > threshold:
            rows[found], union[found] = row, together
            found += 1
    return found


@kernel
def add_similarity(bounds: Floats, rows: Rows, own: Floats, widths: Floats, position_only: bool, total: Floats) -> None:
    """``similarity.of_intervals`` of one attribute for many rows, the mean of all axes; nothing where it is missing."""
    axes = len(widths)
    for number in range(len(rows)):
        row = rows[number]
        if row >= len(bounds) or np.isnan(bounds[row, 0]):
            continue
        alike = 0.0
        for axis in range(axes):
            low, high = own[2 * axis], own[2 * axis + 1]
            other_low, other_high = bounds[row, 2 * axis], bounds[row, 2 * axis + 1]
            together = max(high, other_high) - min(low, other_low)
            if together == 0.0 or (low == other_low and high == other_high):
                alike += 1.0
                continue
            position = 1 - abs(low - other_low) / max(widths[axis], together)
            long, other_long = high - low, other_high - other_low
            if position_only and (long == 0.0 or other_long == 0.0):
                alike += position
                continue
            span = (long + other_long) / (2 * together)
            content = max(0.0, min(high, other_high) - max(low, other_low)) / together
            alike += (position + span + content) / 3
        total[number] += alike / axes
