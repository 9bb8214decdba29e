"""``[[workload]]``: what is published, and who wants to hear of it (BYPASS.KOM 6.1.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from nearcast.scenario.kinds import REQUIRED, File, FileName, OneOf, Optional, Quantity, Range, Topic, entry
from nearcast.scenario.problems import Contradiction
from nearcast.scenario.quantities import DURATION, LENGTH, PROBABILITY, RATE, SIZE
from nearcast.scenario.tables import Section, Varieties

_TOPIC: Final = "under which events are published, and to which all clients subscribe"


@dataclass(frozen=True, kw_only=True, slots=True)
class Workload(Section):
    """What all kinds share: nothing but what they need of the world."""

    needs_points: ClassVar[bool] = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Publications(Workload):
    """Events at a steady rate, to everybody who is near their place."""

    topic: str = entry(Topic(), "events", _TOPIC)
    radius: float = entry(
        Quantity(LENGTH, Range(above=0.0, most=20_000_000.0)), "125 m", "area of interest of each client, around itself"
    )
    payload: int = entry(Quantity(SIZE, Range(least=0, most=1_000_000)), "128 B", "size of the payload of each event")
    rate: float = entry(
        Quantity(RATE, Range(above=0.0, most=1_000_000.0)), "1/s", "events of each client that publishes"
    )
    timing: str = entry(
        OneOf(("periodic", "poisson")), "periodic", "evenly with a random phase, or at random instants (Poisson)"
    )
    publishers: float = entry(
        Quantity(PROBABILITY, Range(least=0.0, most=1.0)), 1, "share of the clients that publish; all subscribe"
    )
    start: float = entry(Quantity(DURATION, Range(least=0.0)), "0 s", "when publishing starts, after the run does")
    end: float | None = entry(
        Optional(Quantity(DURATION, Range(above=0.0))), None, "when publishing ends; with the run if not given"
    )

    def contradictions(self) -> Iterator[Contradiction]:
        if self.end is not None and self.end <= self.start:
            yield Contradiction(("end", "start"), f"{self.end:g} s is not after start, {self.start:g} s")


@dataclass(frozen=True, kw_only=True, slots=True)
class AugmentedReality(Publications):
    """Events at the place where their publisher is."""

    word: ClassVar[str] = "AR"
    topic: str = entry(Topic(), "ar", _TOPIC)


@dataclass(frozen=True, kw_only=True, slots=True)
class LocationBasedService(Publications):
    """Events at attraction points, chosen by weight, wherever their publisher is."""

    word: ClassVar[str] = "LBS"
    needs_points: ClassVar[bool] = True
    topic: str = entry(Topic(), "lbs", _TOPIC)


@dataclass(frozen=True, kw_only=True, slots=True)
class RandomPlaces(Publications):
    """Events at places drawn uniformly from the world, wherever their publisher is."""

    word: ClassVar[str] = "RND"
    topic: str = entry(Topic(), "rnd", _TOPIC)


@dataclass(frozen=True, kw_only=True, slots=True)
class LogWorkload(Workload):
    """What a log of operations says (docs/operation-logs.md)."""

    word: ClassVar[str] = "log"

    file: FileName = entry(File(), REQUIRED, "the log (.csv or .jsonl)")


WORKLOADS: Final = Varieties(
    "kind", {kind.word: kind for kind in (AugmentedReality, LocationBasedService, RandomPlaces, LogWorkload)}, "AR"
)
