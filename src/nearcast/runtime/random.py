"""Random streams with names: one seed for a whole run, and still independent of each other.

Whoever draws from a stream of its own name never disturbs another: a new mechanism, an observer that is switched on or a
client that joins leaves every other stream as it was.
"""

from __future__ import annotations

import hashlib
from random import Random


class RandomStreams:
    """Streams derived from one seed by name, the same in every process and whatever the hash seed is."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def number(self, *name: str) -> int:
        """128 bits that depend on the seed and the name alone: the seed of whatever draws its own numbers."""
        # Length before each part: ("ab", "c") and ("a", "bc") are different streams.
        text = "".join(f"{len(part)}:{part}" for part in (str(self.seed), *name))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "little")

    def stream(self, *name: str) -> Random:
        """A fresh stream; the caller keeps it, asking again starts it again."""
        return Random(self.number(*name))
