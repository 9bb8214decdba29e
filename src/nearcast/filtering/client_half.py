"""The half of a filter scheme that runs on every client."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from nearcast.filtering.messages import FromClient, ToClient
from nearcast.model.geometry import Point
from nearcast.runtime.ports import Fix
from nearcast.transition.mechanism import Mechanism


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a client half may use of its host; it stays when the half is exchanged."""

    say: Callable[[FromClient], None]
    """Send a message to the broker; never from ``start_mechanism``."""

    newest: Callable[[], Fix | None]
    """The newest fix of the stream that all subscriptions share; none as long as there was none."""

    radius: Callable[[], float]
    """Of a circle around the client that holds all its areas of interest."""

    confirms: bool = True
    """Whether a half says what it knows as soon as it has taken over, also if the scheme would not need it: so the broker learns
    that it need not run the old scheme for this client any more."""


class ClientHalf(Mechanism):
    """Keeps what the broker knows of this client fresh enough for the scheme."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings

    @abstractmethod
    def moved(self, fix: Fix) -> None:
        """A new fix of the location sensor."""

    @abstractmethod
    def piggyback(self) -> FromClient | None:
        """What goes along with a subscription, so that the broker can filter for it at once."""

    def bootstrap(self) -> None:
        context = self.piggyback() if self._surroundings.confirms else None
        if context is not None:
            self._surroundings.say(context)

    def receive(self, message: ToClient) -> None:
        """What the broker half says."""

    def channel(self) -> str | None:
        """Put on events that happen where the client is."""
        return None

    def place(self, here: Point) -> Point:
        """What such an event says of where that is: a scheme that keeps the position private says less."""
        return here
