"""Link states reach everybody who can be reached.

What is new is passed on to all neighbours but the one it came from.  What is lost that way is found by comparing: heartbeats carry a
digest of all that counts, and neighbours whose digests differ although nothing moves tell each other what they have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from nearcast.model.time import Instant
from nearcast.overlay.topology.link_state import LinkState, LinkStates, flaw_in
from nearcast.overlay.topology.messages import States, Summary, Wanted
from nearcast.overlay.topology.spanning_tree import Tree
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address

AT_ONCE: Final = 100
"""Link states in one message, at most: ten kilobytes."""


class Flooding:
    def __init__(
        self,
        me: Address,
        states: LinkStates,
        send: Callable[[Address, Message], object],
        *,
        latest: Callable[[], Instant],
        neighbours: Callable[[], Iterable[Address]],
        changed: Callable[[], None],
    ) -> None:
        self.states: Final = states
        self.stale = 0
        """Link states that were older than what was known."""

        self.malformed = 0
        self.compared = 0
        """How often a neighbour was told what is known here, because its digest differed."""

        self._me: Final = me
        self._send: Final = send
        self._latest: Final = latest
        """What the clock of a router could show now: a number beyond that would silence whoever it is said of."""

        self._neighbours: Final = neighbours
        self._changed: Final = changed
        self._number = -1
        self._differing: Final[dict[Address, tuple[int, int]]] = {}
        """By neighbour whose last heartbeat had another digest: that, and the own one."""

    def say(self, now: Instant, own: LinkState) -> None:
        """Tell everybody of the own links; the number of that link state is given here."""
        # Numbers are instants, so that one of the next life is larger without any memory of this one.
        self._number = max(self._number + 1, now)
        state = LinkState(own.router, own.life, self._number, own.place, own.links)
        self.states.take(state)
        self._pass_on([state], None)

    def resume(self, number: int) -> None:
        """The own link state of that number is known to everybody already."""
        self._number = number

    def hear(self, sender: Address, told: Iterable[LinkState]) -> None:
        new: list[LinkState] = []
        for state in told:
            known = self.states.get(state.router)
            if known is not None and state.number <= known.number and state.router != self._me:
                # Most come by several ways: this comes before all checks.
                if state.number < known.number:
                    self._correct(sender, known)
            elif flaw_in(state, self._latest()) is not None:
                self.malformed += 1
            elif state.router == self._me:
                self._hear_own(sender, state)
            else:
                self.states.take(state)
                new.append(state)
        if new:
            self._pass_on(new, sender)
            self._changed()

    def summarise(self, to: Address, tree: Tree) -> None:
        """Say what is known here, to somebody who may know other things."""
        self._send(to, Summary(self._numbers(tree)))

    def compare(self, neighbour: Address, digest: int, tree: Tree) -> None:
        """A heartbeat says what its sender knows."""
        own = tree.spanning.digest
        if digest == own:
            self._differing.pop(neighbour, None)
        elif self._differing.get(neighbour) != (digest, own):
            self._differing[neighbour] = digest, own  # something is on its way: wait
        else:
            self.compared += 1
            self.summarise(neighbour, tree)

    def answer(self, sender: Address, summary: Summary, tree: Tree) -> None:
        """Send what the other lacks, and ask for what is lacking here."""
        theirs, mine = summary.numbers, self._numbers(tree)
        self._send_states(sender, [router for router, number in mine.items() if theirs.get(router, -1) < number])
        wanted = [router for router, number in theirs.items() if self._number_of(router) < number]
        if wanted:
            self._send(sender, Wanted(tuple(wanted)))

    def give(self, sender: Address, wanted: Wanted) -> None:
        self._send_states(sender, wanted.routers)

    def forget_neighbour(self, neighbour: Address) -> None:
        self._differing.pop(neighbour, None)

    def _hear_own(self, sender: Address, state: LinkState) -> None:
        """Somebody still tells of an earlier life; if its clock was ahead, this life must say more to be believed."""
        own = self.states.get(self._me)
        if own is None or state == own:
            return
        if state.number < own.number:
            self._correct(sender, own)
            return
        self._number = state.number
        self.states.forget(self._me)
        self._changed()

    def _correct(self, sender: Address, newer: LinkState) -> None:
        """What somebody said was said before that."""
        self.stale += 1
        self._send(sender, States((newer,)))

    def _pass_on(self, states: list[LinkState], came_from: Address | None) -> None:
        message = States(tuple(states))
        for neighbour in self._neighbours():
            if neighbour != came_from:
                self._send(neighbour, message)

    def _send_states(self, to: Address, routers: Iterable[Address]) -> None:
        states = [state for router in routers if (state := self.states.get(router)) is not None]
        for first in range(0, len(states), AT_ONCE):
            self._send(to, States(tuple(states[first : first + AT_ONCE])))

    def _numbers(self, tree: Tree) -> dict[Address, int]:
        """Only of those who can be reached: the others do not count."""
        return {router: self._number_of(router) for router in tree.routers}

    def _number_of(self, router: Address) -> int:
        state = self.states.get(router)
        return -1 if state is None else state.number
