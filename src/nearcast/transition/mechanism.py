"""What can be exchanged, and the silence in which it happens.

A mechanism is started and stopped without a word to the network (BYPASS.KOM 5.2.1): so an exchange takes no time, cannot wait
for anybody, and is over before the next message arrives.  Whatever needs others comes afterwards, as normal operation.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from nearcast.errors import TransitionFailed

P = ParamSpec("P")
R = TypeVar("R")


class Mechanism(ABC):  # noqa: B024 - a mechanism may have nothing to do at any of these moments
    """Base of the interfaces of all mechanisms that can be exchanged.

    Of each kind of mechanism there is one abstract class, its *API*, derived from this one; users call it through a proxy.
    """

    def start_mechanism(self) -> None:
        """Take over: local work only, returns at once.  The declared state has been transferred already."""

    def stop_mechanism(self) -> None:
        """Give everything back: local work only, returns at once.  Also called on one whose start failed half-way."""

    def bootstrap(self) -> None:
        """After the switch: whatever the new mechanism has to ask or tell others."""

    def members_joined(self, members: Collection[str]) -> None:
        """These were moved here by a partial transition while this mechanism was running; their declared state is here.

        It may talk to the network.
        """

    def members_left(self, members: Collection[str]) -> None:
        """These were moved elsewhere by a partial transition; their declared state is gone.  Local work only."""


class Silence:
    """Whether mechanisms are being exchanged: then nobody may speak."""

    def __init__(self) -> None:
        self._depth = 0

    def __bool__(self) -> bool:
        return self._depth > 0

    @contextmanager
    def kept(self) -> Iterator[None]:
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def guarded(self, say: Callable[P, R]) -> Callable[P, R]:
        """The same port, which now raises ``TransitionFailed`` when it is used while mechanisms are being exchanged."""

        def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
            if self._depth:
                raise TransitionFailed(
                    "a mechanism tried to send while it was being exchanged: transfer, start and stop are local; "
                    "what has to be said belongs into bootstrap()"
                )
            return say(*args, **kwargs)

        return guarded
