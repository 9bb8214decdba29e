"""A topology that is there from the start: what all routers would know after they had joined one by one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import xor

from nearcast.errors import InvalidInput
from nearcast.model.geometry import Point, distance
from nearcast.model.time import Instant
from nearcast.overlay.topology.link_state import KnownStates, LinkState, digest_of, flaw_in
from nearcast.runtime.ports import Address


def given_topology(
    places: Mapping[Address, Point], links: Iterable[tuple[Address, Address]], *, start: Instant = 0
) -> KnownStates:
    """For routers that all start at that instant; a link weighs its length in metres, as one that was agreed upon does."""
    neighbours: dict[Address, dict[Address, int]] = {router: {} for router in places}
    for one, other in links:
        if one not in places or other not in places or one == other:
            raise InvalidInput(
                f"there can be no link between {one!r} and {other!r}; both must have a place, and differ"
            )
        neighbours[one][other] = neighbours[other][one] = round(distance(places[one], places[other]))
    states = {
        router: LinkState(router, start, start, (place.lat, place.lon), tuple(sorted(neighbours[router].items())))
        for router, place in places.items()
    }
    flaws = (f"{router!r}: {flaw}" for router, state in states.items() if (flaw := flaw_in(state)) is not None)
    if flaw := next(flaws, None):
        raise InvalidInput(f"there can be no router {flaw}")
    return KnownStates(states, reduce(xor, map(digest_of, states.values()), 0))
