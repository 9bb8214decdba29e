"""How a host gets to know the subscriptions that were made before it came (THYME 4)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from nearcast.crowdstore.publish_local.interests import Interests
from nearcast.crowdstore.publish_local.messages import Join, JoinAnswer
from nearcast.crowdstore.publish_local.parameters import Parameters
from nearcast.crowdstore.unicast.router import in_frames
from nearcast.runtime.host import Host
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, Cancellable, Sending

MOST_ANSWERS: Final = 64
"""That a host is about to give, or gathers, at a time."""


class Joining:
    """Both sides of it: who asks, and who may answer."""

    def __init__(
        self,
        host: Host,
        parameters: Parameters,
        interests: Interests,
        send: Callable[[Address, Message], Sending],
        broadcast: Callable[[Message], Sending],
        neighbours: Callable[[], int],
    ) -> None:
        self._host: Final = host
        self._parameters: Final = parameters
        self._interests: Final = interests
        self._send: Final = send
        self._broadcast: Final = broadcast
        self._neighbours: Final = neighbours
        self._random: Final = host.random("crowd joining").random
        self._timer: Cancellable | None = None
        self._answering: Final[dict[Address, Cancellable]] = {}
        self._parts: Final[dict[Address, set[int]]] = {}
        self.asked = 0
        self.answered = 0
        self.joined = False

    def begin(self) -> None:
        self._timer = self._host.timers.after(self._random() * self._parameters.hesitation, self._ask)

    def stop(self) -> None:
        for timer in (self._timer, *self._answering.values()):
            if timer is not None:
                timer.cancel()
        self._answering.clear()
        self._timer = None

    # Who asks

    def _ask(self) -> None:
        if self.asked > self._parameters.join_retries:
            # Nobody is here.
            self._end()
            return
        self.asked += 1
        self._parts.clear()
        self._broadcast(Join(self._interests.known()))
        self._timer = self._host.timers.after(self._parameters.join_timeout, self._ask)

    def told(self, neighbour: Address, answer: JoinAnswer) -> None:
        """A part of an answer has come; its interests are no business of this class."""
        if self.joined or answer.part >= answer.parts or len(self._parts) >= MOST_ANSWERS:
            return
        parts = self._parts.setdefault(neighbour, set())
        parts.add(answer.part)
        if len(parts) == answer.parts:
            self._end()

    def _end(self) -> None:
        self.joined = True
        self._parts.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # Who answers

    def hear(self, neighbour: Address, join: Join) -> None:
        """Some of those who hear it answer, each after a while of its own.

        How many hear it, those who do can tell by their own neighbours.
        """
        if not self.joined or neighbour in self._answering or len(self._answering) >= MOST_ANSWERS:
            return
        if self._random() * self._neighbours() < self._parameters.answers:
            wait = self._random() * self._parameters.join_delay
            answer = partial(self._answer, neighbour, join.known)
            self._answering[neighbour] = self._host.timers.after(wait, answer)

    def _answer(self, neighbour: Address, known: bytes) -> None:
        del self._answering[neighbour]
        self.answered += 1
        parts = list(in_frames(self._interests.others(known, self._host.now()))) or [()]
        for number, part in enumerate(parts):
            self._send(neighbour, JoinAnswer(number, len(parts), part))
