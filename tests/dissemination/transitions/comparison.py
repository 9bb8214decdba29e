"""A run with transitions beside the runs that had one scheme all along.

All of them see the same walks, publications and latencies.  Some schemes remember: EGRID asks for other cells only when those it
has do not suffice, so which it has depends on where it asked last.  Therefore a client in the reference runs says where it is
whenever it does so in the switched run because of a plan; nothing else is different there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from tests.dissemination.transitions.story import Story
from tests.dissemination.transitions.town import Fault, Options, Outcome, Pair, Plan, always, run

from nearcast.model.time import Instant
from nearcast.runtime.ports import Address
from nearcast.transition.specification import MechanismSpec


@dataclass
class Comparison:
    story: Story
    first: MechanismSpec
    switched: Outcome
    references: dict[MechanismSpec, Outcome]

    @property
    def all_along(self) -> set[Pair]:
        """Notified whichever of the schemes there is: whoever of these is not, has lost an event."""
        return set.intersection(*(reference.notified for reference in self.references.values()))

    @property
    def ever(self) -> set[Pair]:
        """Notified in one of the schemes: nobody else may be."""
        return set.union(*(reference.notified for reference in self.references.values()))

    @cached_property
    def served(self) -> set[Pair]:
        """Who would be notified if every client were served by the scheme in which it was last heard."""
        return set(self._served())

    def _served(self) -> Iterator[Pair]:
        for event, time in self.switched.filtered.items():
            for number in range(self.story.clients):
                client = f"c{number}"
                if (event, client) in self.references[self.scheme_of(client, time)].copies:
                    yield event, client

    def scheme_of(self, client: Address, time: Instant) -> MechanismSpec:
        """In which the broker has last heard a client."""
        clock = max((clock for heard, clock in self.switched.arrivals.get(client, ()) if heard <= time), default=0)
        scheme = self.first
        for plan, target, affected in self.switched.plans:
            if plan <= clock and (affected is None or client in affected):
                scheme = target
        return scheme

    def lost(self) -> set[Pair]:
        return self.all_along - self.switched.notified

    def invented(self) -> set[Pair]:
        return self.switched.notified - self.ever


def compared(
    story: Story,
    first: MechanismSpec,
    plans: Sequence[Plan],
    options: Options | None = None,
    *,
    faults: Sequence[Fault] = (),
    undisturbed: bool = False,
) -> Comparison:
    """``undisturbed``: in the reference runs there are no faults."""
    switched = run(story, first, plans, options, faults=faults)
    schemes = dict.fromkeys([first, *(plan.scheme for plan in plans)])
    same = () if undisturbed else faults
    return Comparison(
        story, first, switched, {scheme: always(story, scheme, switched, options, faults=same) for scheme in schemes}
    )
