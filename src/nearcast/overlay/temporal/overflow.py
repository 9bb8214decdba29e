"""Where there is no room for all messages that wait: the newest are pushed on, away from where they came from (6.3.3).

What takes room is the payload.  It is given to all neighbours behind which there are nodes in whose area the message may meet somebody; they do
the same, down to these nodes, which keep it.  The rest of the message stays: who it is for, and who has it.  So whoever gave a message
away still sees when somebody comes, and gets the payload back when it is wanted.  (The document deletes such a message, and with it the way to
those who come where nobody was expected, and to all who are somewhere else after the tree has changed.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from nearcast.overlay.routing.wire import Routed
from nearcast.overlay.temporal.held import Held
from nearcast.overlay.temporal.lookup import Places
from nearcast.runtime.ports import Address


def takers(message: Routed, places: Places) -> list[Address]:
    """Neighbours that can take it from here; none: it may be needed here, or nobody would ever ask for it there."""
    return [] if places.here(message) else places.towards(message, None)


def give_away(
    newest_first: Iterable[Held], excess: int, places: Places, push: Callable[[Held, Address], None]
) -> list[Held]:
    """Push up to ``excess`` messages; those that are with others now."""
    given: list[Held] = []
    for held in newest_first:
        if len(given) >= excess:
            break
        neighbours = [] if held.lean else takers(held.message, places)
        for neighbour in neighbours:
            if neighbour not in held.at:
                push(held, neighbour)
        if neighbours:
            given.append(held)
    return given
