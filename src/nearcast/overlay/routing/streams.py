"""What is said of one link, in the order in which it was said, although the link reorders and loses."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from nearcast.overlay.routing.messages import Everything, Stream

S = TypeVar("S", bound=Stream)

MOST_WAITING: Final = 1_000
"""Messages that wait for one that came late; there will hardly be as many, and what is lost is asked for again."""


class Incoming(Generic[S]):
    """The stream of one neighbour, for one tree."""

    def __init__(self) -> None:
        self._expected: int | None = None
        """The next number; none: only a message that says everything is understood."""

        self._waiting: Final[dict[int, S]] = {}
        self.behind = 0
        """How often in a row the neighbour has said more than came here."""

    @property
    def begun(self) -> bool:
        """Whether anything was understood.  What is missing meanwhile has not come yet, and will be asked for if it does not."""
        return self._expected is not None

    def take(self, message: S) -> list[S]:
        """What can be understood now."""
        if self._expected is not None and message.number < self._expected:
            return []
        if isinstance(message, Everything):
            self._expected = message.number
            for number in [number for number in self._waiting if number < message.number]:
                del self._waiting[number]
        if len(self._waiting) < MOST_WAITING or message.number == self._expected:
            self._waiting[message.number] = message
        ready = []
        while self._expected is not None and self._expected in self._waiting:
            ready.append(self._waiting.pop(self._expected))
            self._expected += 1
        return ready

    def lacks(self, said: int) -> bool:
        """Of a neighbour that has said so much: whether something was lost, and not only late."""
        missing = self._expected is None or self._expected < said
        self.behind = self.behind + 1 if missing else 0
        if self.behind < 2:
            return False
        self.behind = 0
        return True
