"""What can be chosen; the document gives no numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

from nearcast.errors import InvalidInput
from nearcast.runtime.ports import Address


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologySettings:
    """Times are seconds, lengths metres."""

    interface: str = "wired"
    port: int = 30
    contacts: tuple[Address, ...] = ()
    """Routers that are known before anything was heard, such as an entry of the DNS; none: the first of all."""

    most_links: int = 6
    """k: no more mesh links than that."""

    wanted_links: int = 3
    """So many are looked for.  Each newcomer takes that many slots of others and one for each of its own: with half of k,
    as many are free afterwards as before, and the next one finds some."""

    heartbeat: float | None = 1.0
    """How often neighbours tell each other that they are there; none: never, in a world in which nobody fails."""

    patience: float = 3.5
    """Whoever was silent for so long is gone: three heartbeats in a row may be lost."""

    settle: float = 0.1
    """So long changes gather before they are told and a tree is made of them."""

    answer_within: float = 2.0
    """A proposal that was not answered by then is off: longer than there and back."""

    search_time: float = 1.0
    """How long offers are waited for before the ring grows."""

    first_radius: float = 1_000.0
    growth: float = 4.0
    """Of the ring, from one search to the next."""

    retry_every: float = 10.0
    """How often somebody looks for more links, or for the other side of a partition."""

    forgotten_after: float = 600.0
    """Who cannot be reached is remembered for so long at least: a partition may heal."""

    clocks_apart: float = 86_400.0
    """Numbers of link states are instants.  One that is farther ahead of the own clock than that is not believed: nobody could say more."""

    def __post_init__(self) -> None:
        positive = (
            "patience", "settle", "answer_within", "search_time", "first_radius", "retry_every", "forgotten_after",
            "clocks_apart",
        )  # fmt: skip
        for name in positive:
            if not 0 < getattr(self, name) < math.inf:
                raise InvalidInput(f"{name} must be positive, not {getattr(self, name)!r}")
        if self.heartbeat is not None and not 0 < self.heartbeat < self.patience:
            raise InvalidInput(
                f"heartbeats come every {self.heartbeat!r} s, but silence counts after {self.patience!r} s"
            )
        if not 1 < self.growth < math.inf:
            raise InvalidInput(f"a ring that grows by a factor of {self.growth!r} does not grow")
        # With one link each, two routers find each other and a third finds nobody.
        if not 1 <= self.wanted_links <= self.most_links or self.most_links < 2:
            raise InvalidInput(
                f"of at most {self.most_links} links {self.wanted_links} are wanted; give at least 2, and 1 to that many"
            )

    def repaired_within(self, delay: float, hops: int) -> float:
        """So long after a router failed, at the latest, all others have the new tree, if nothing is lost, no message takes longer
        than ``delay``, and the mesh without it hangs together over so many hops.
        """
        heartbeat = self.heartbeat or math.inf
        return self.patience + delay + heartbeat + self.settle + hops * delay + self.settle
