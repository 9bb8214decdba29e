"""How announcements and events get from device to device: what is exchanged at run time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Final

from nearcast.model.event import Event
from nearcast.proximity.nucleus import Interest, Local
from nearcast.transition.mechanism import Mechanism

PROXY: Final = "proximity"


class Dissemination(Mechanism):
    """Its state is in the nucleus, which stays; so whichever mechanism comes next knows all it needs.

    A mechanism that is stopped goes on for a while (``ProximitySettings.overlap``) beside the one that replaces it, until that
    one has made itself known everywhere; then it is closed.
    """

    retire: Callable[[Dissemination], None]
    """Set by the service: called when it has been stopped."""

    @abstractmethod
    def announced(self, local: Local) -> None: ...

    @abstractmethod
    def withdrawn(self, local: Local) -> None: ...

    @abstractmethod
    def interested(self, interest: Interest) -> None: ...

    @abstractmethod
    def uninterested(self, interest: Interest) -> None: ...

    @abstractmethod
    def carry(self, event: Event, number: int, local: Local) -> None:
        """Send an event of this device on its way."""

    @abstractmethod
    def close(self) -> None:
        """The end: nothing is sent or received any more."""

    def stop_mechanism(self) -> None:
        self.retire(self)
