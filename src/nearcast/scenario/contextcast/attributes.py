"""Random contexts, and messages that ask for them (4.5.2, 5.4.1).

Means, deviations and ranges are not in the document; nor is which operators messages use, how favoured depth is, and how large targets
are in 4.5.2.  Ours are said where they are chosen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

import numpy as np

from nearcast.model.area import Box
from nearcast.model.history import POSITION
from nearcast.model.predicate import And, Comparison, Literal, Predicate, Property, Spatial, Under
from nearcast.model.values import Path, Range, Value
from nearcast.overlay.topology.models import zipf
from nearcast.overlay.values.domains import Domains
from nearcast.scenario.contextcast.ground import Ground

OPERATORS: Final = ("<", "<=", "=", ">=", ">")
"""Those of the document (3.2.1), one as likely as the other."""

WIDEST: Final = (50, 500)
"""The range U of a number is drawn from these; whole numbers, so that somebody can be equal."""

DEEPER: Final = 0.8
"""The probability to go one level further down, where there is one: depth is favoured."""

TARGETS_S2: Final = (0.2, 0.3)
"""Edges of targets in 4.5.2, which does not give any: those of 5.4.1."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A whole number, normal around the middle of somewhere in its range."""

    name: str
    highest: int
    mean: float
    deviation: float

    @classmethod
    def drawn(cls, random: Random, name: str) -> Quantity:
        highest = random.randint(*WIDEST)
        return cls(name, highest, random.uniform(0.3, 0.7) * highest, random.uniform(0.1, 0.2) * highest)

    def value(self, random: Random) -> int:
        return min(max(round(random.gauss(self.mean, self.deviation)), 0), self.highest)

    def constraint(self, random: Random) -> Comparison:
        return Comparison(random.choice(OPERATORS), Property(self.name), Literal(self.value(random)))


class Hierarchy:
    """A random tree: its height from 2 to 5, each node with up to three children."""

    def __init__(self, random: Random, name: str) -> None:
        self.name: Final = name
        self._children: Final[dict[tuple[str, ...], list[tuple[str, ...]]]] = {}
        height = random.randint(2, 5)
        level: list[tuple[str, ...]] = [()]
        for depth in range(height):
            below: list[tuple[str, ...]] = []
            for node in level:
                # One node of each level has a child at least, or the tree would end before its height.
                number = max(random.randint(0, 3), 1 if node == level[-1] and not below else 0)
                self._children[node] = [(*node, f"{depth}{child}") for child in range(number)]
                below += self._children[node]
            level = below

    @property
    def deepest(self) -> Path:
        return Path(max((child for children in self._children.values() for child in children), key=len))

    def value(self, random: Random) -> Path:
        node: tuple[str, ...] = ()
        while (children := self._children.get(node)) and (not node or random.random() < DEEPER):
            node = random.choice(children)
        return Path(node)

    def constraint(self, random: Random) -> Under:
        """Whoever is there or below: of a value, a part of the way to it."""
        path = self.value(random).segments
        return Under(self.name, Path(path[: random.randint(1, len(path))]))


def target(random: Random, ground: Ground, low: float, high: float) -> Spatial:
    """A square with an edge between these, in edges of the ground."""
    edge = random.uniform(low, high) * ground.edge
    west, south = random.uniform(0, ground.edge - edge), random.uniform(0, ground.edge - edge)
    return Spatial("s_within", POSITION, ground.rectangle(west, south, west + edge, south + edge))


class Model(ABC):
    """What clients are like, and what messages ask for."""

    def __init__(self, ground: Ground, quantities: Sequence[Quantity], hierarchies: Sequence[Hierarchy] = ()) -> None:
        self.ground: Final = ground
        self.quantities: Final = {each.name: each for each in quantities}
        self.hierarchies: Final = {each.name: each for each in hierarchies}

    @abstractmethod
    def context(self, random: Random, area: Box) -> dict[str, Value]:
        """Of somebody in that area."""

    @abstractmethod
    def message(self, random: Random, sender: int, cycle: float) -> Predicate:
        """Of that sender, in that cycle."""

    def changed(self, random: Random, context: Mapping[str, Value]) -> dict[str, Value] | None:
        """Another value of one attribute; none: it is another place."""
        name = random.choice(sorted(context))
        if name == POSITION:
            return None
        value = (self.quantities.get(name) or self.hierarchies[name]).value(random)
        return {**context, name: value}

    def domains(self) -> Domains:
        """The full range of each attribute."""
        return Domains(
            {
                POSITION: self.ground.rectangle(0, 0, self.ground.edge, self.ground.edge),
                **{name: Range(0, each.highest) for name, each in self.quantities.items()},
                **{name: each.deepest for name, each in self.hierarchies.items()},
            }
        )


class AggregationModel(Model):
    """4.5.2: three hierarchies and seven numbers."""

    def __init__(self, random: Random, ground: Ground) -> None:
        super().__init__(
            ground,
            [Quantity.drawn(random, f"q{number}") for number in range(7)],
            [Hierarchy(random, f"h{number}") for number in range(3)],
        )

    def context(self, random: Random, area: Box) -> dict[str, Value]:
        found: dict[str, Value] = {POSITION: area}
        if random.random() < 0.5:
            hierarchy = random.choice(list(self.hierarchies.values()))
            found[hierarchy.name] = hierarchy.value(random)
        for quantity in random.sample(list(self.quantities.values()), random.choice((2, 3))):
            found[quantity.name] = quantity.value(random)
        return found

    def message(self, random: Random, sender: int, cycle: float) -> Predicate:  # noqa: ARG002 - all are alike
        parts: list[Predicate] = [target(random, self.ground, *TARGETS_S2)]
        if random.random() < 0.5:
            parts.append(random.choice(list(self.hierarchies.values())).constraint(random))
        chosen = random.sample(list(self.quantities.values()), random.choice((0, 1, 2)))
        parts += [quantity.constraint(random) for quantity in chosen]
        return And(tuple(parts)) if len(parts) > 1 else parts[0]


@dataclass(frozen=True, slots=True)
class Tastes:
    """What senders ask for: the attributes of one stretch of time, each sender with its own favourites among them."""

    until: float
    """Cycle."""

    first: int
    last: int


class AdaptiveModel(Model):
    """5.4.1: thirty numbers, of which a client has six to twelve, and senders with favourites."""

    NUMBERS: Final = 30
    EXPONENT: Final = 1.5

    def __init__(self, random: Random, ground: Ground, tastes: Sequence[Tastes] = ()) -> None:
        super().__init__(ground, [Quantity.drawn(random, f"a{number:02}") for number in range(1, self.NUMBERS + 1)])
        self._tastes: Final = tuple(tastes) or (Tastes(float("inf"), 1, self.NUMBERS),)
        self._seed: Final = random.getrandbits(64)
        self._favourites: Final[dict[tuple[int, int], list[Quantity]]] = {}

    def context(self, random: Random, area: Box) -> dict[str, Value]:
        chosen = random.sample(list(self.quantities.values()), random.randint(6, 12))
        return {POSITION: area, **{quantity.name: quantity.value(random) for quantity in chosen}}

    def message(self, random: Random, sender: int, cycle: float) -> Predicate:
        era = next(number for number, taste in enumerate(self._tastes) if cycle < taste.until)
        favourites = self._favourites_of(sender, era)
        weights = zipf(len(favourites), self.EXPONENT)
        # Different ones, drawn one after the other: the first of exponential times.
        times = [random.expovariate(1.0) / weight for weight in weights.tolist()]
        chosen = np.argsort(times)[: random.randint(1, 3)].tolist()
        parts: list[Predicate] = [favourites[number].constraint(random) for number in chosen]
        if random.random() < 0.5:
            parts.append(target(random, self.ground, 0.2, 0.3))
        return And(tuple(parts)) if len(parts) > 1 else parts[0]

    def _favourites_of(self, sender: int, era: int) -> list[Quantity]:
        found = self._favourites.get((sender, era))
        if found is None:
            taste = self._tastes[era]
            found = [self.quantities[f"a{number:02}"] for number in range(taste.first, taste.last + 1)]
            Random(f"{self._seed} {sender} {era}").shuffle(found)
            self._favourites[sender, era] = found
        return found
