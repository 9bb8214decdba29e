"""What is in the nucleus becomes known to the cells: when this mechanism takes over, and again to those who have not answered."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from nearcast.crowdstore.data_centric.operations import heedless
from nearcast.crowdstore.nucleus import Nucleus
from nearcast.crowdstore.objects import CrowdSubscription, Metadata, ObjectKey, Publication, SubscriptionKey
from nearcast.crowdstore.storage import Done, Outcome, Storage
from nearcast.runtime.ports import Cancellable

PACE: Final = 0.2
"""Seconds between two things that are told, on average: after an exchange all hosts tell all that they have."""


class Telling:
    """Of one host.  Before it is a member of a cell for the first time nobody could keep copies of what it publishes: so that waits."""

    def __init__(self, nucleus: Nucleus, storage: Storage, *, lasting: bool) -> None:
        """``lasting``: what a cell has answered stays, whoever comes or goes."""
        self._nucleus: Final = nucleus
        self._storage: Final = storage
        self._lasting: Final = lasting
        self._random: Final = nucleus.host.random("crowdstore telling").random
        self._begun: Final[dict[ObjectKey | SubscriptionKey, bool]] = {}
        """What cells were told, and whether all have answered; what failed is not in it."""

        self._waiting: Final[list[Callable[[], None]]] = []
        self._queue: Final[list[Callable[[], None]]] = []
        self._timer: Cancellable | None = None
        self._waits = True
        self._told = False

    def when_member(self, begin: Callable[[], None]) -> None:
        if self._waits:
            self._waiting.append(begin)
        else:
            begin()

    def became_member(self) -> None:
        self.wait_no_longer()
        if not self._told:
            self._told = True
            self._queue.extend(partial(self._withdraw, metadata) for metadata in self._nucleus.withdrawn.values())
            self.again()

    def wait_no_longer(self) -> None:
        """Whether a member or not: what waits begins, and may fail."""
        self._waits = False
        waiting = self._waiting[:]
        self._waiting.clear()
        for begin in waiting:
            begin()

    def again(self) -> None:
        """All that nobody has answered for, nor is being asked to."""
        nucleus = self._nucleus
        self._queue.extend(partial(self._publish, it) for it in nucleus.published.values() if self._is_open(it.key))
        self._queue.extend(partial(self._subscribe, it) for it in nucleus.subscriptions if self._is_open(it.key))
        if self._queue and self._timer is None:
            self._arm()

    def noting(self, key: ObjectKey | SubscriptionKey, done: Done) -> Done:
        """Tells ``done``, and remembers whether it was answered."""
        self._begun[key] = False

        def ended(outcome: Outcome) -> None:
            if not outcome.ok:
                self._begun.pop(key, None)
            elif key in self._begun:
                self._begun[key] = True
            done(outcome)

        return ended

    def _is_open(self, key: ObjectKey | SubscriptionKey) -> bool:
        answered = self._begun.get(key)
        return answered is None or (answered and not self._lasting)

    def forget(self, key: ObjectKey | SubscriptionKey) -> None:
        self._begun.pop(key, None)

    def stop(self) -> None:
        self._waiting.clear()
        self._queue.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        self._timer = self._nucleus.host.timers.after(2 * PACE * self._random(), self._next)

    def _next(self) -> None:
        self._timer = None
        if self._queue:
            self._queue.pop(0)()
        if self._queue:
            self._arm()

    # What has changed while it waited is not told any more.

    def _publish(self, publication: Publication) -> None:
        if publication.key in self._nucleus.published:
            self._storage.publish(publication, heedless)

    def _subscribe(self, subscription: CrowdSubscription) -> None:
        if self._nucleus.subscription(subscription.key) is not None:
            self._storage.subscribe(subscription, heedless)

    def _withdraw(self, metadata: Metadata) -> None:
        self._storage.unpublish(metadata, heedless)
