"""Subscribers hear what matches, the past of it in batches (THYME 4, 5.4.3); what is lost is not told again (6.3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from nearcast.crowdstore.nucleus import Nucleus
from nearcast.crowdstore.objects import Metadata, SubscriptionKey
from nearcast.crowdstore.publish_local.interests import Interests, Kept
from nearcast.crowdstore.publish_local.messages import More, Notify, Unwanted
from nearcast.crowdstore.unicast.messages import MOST_HOPS, Packet
from nearcast.crowdstore.unicast.router import Router, in_frames
from nearcast.model.time import Instant

MOST_HOSTS: Final = 4_096
"""Of which one subscription remembers that they have more."""


class Notifying:
    """Both sides of it: who has what matches, and who wants it."""

    def __init__(self, nucleus: Nucleus, interests: Interests, batch: int, router: Router) -> None:
        self._nucleus: Final = nucleus
        self._interests: Final = interests
        self._batch: Final = batch
        self._router: Final = router
        self._send: Final[Callable[[Packet], None]] = router.send
        self._untold: Final[dict[str, dict[SubscriptionKey, None]]] = {}
        """By subscriber: subscriptions that nothing of the past was told of yet, because there is no way to it."""

        self._more: Final[dict[SubscriptionKey, dict[str, tuple[Instant, str]]]] = {}
        """Of own subscriptions: who has more of the past, and after what it goes on."""

        self.told = 0
        self.foreign = 0
        """Claims that somebody else's object matches, and questions about somebody else's subscription."""

    # Who has what matches

    def published(self, metadata: Metadata) -> None:
        for kept in self._interests:
            if kept.subscription.accepts(metadata):
                self._tell(kept.subscription.key, [metadata], None)

    def learned(self, kept: Kept) -> None:
        """A subscription is new here: tell of the past, as soon as there is a way.

        Who has just joined knows subscriptions before routes, and more matches than may wait for one.
        """
        key = kept.subscription.key
        if key.owner == self._nucleus.name:
            self.past(kept)
        else:
            self._untold.setdefault(key.owner, {})[key] = None
            self._router.when_reachable(key.owner, partial(self._reachable, key.owner))

    def _reachable(self, owner: str) -> None:
        for key in self._untold.pop(owner, {}):
            kept = self._interests.get(key)
            if kept is not None:
                self.past(kept)

    def past(self, kept: Kept, after: tuple[Instant, str] | None = None) -> None:
        """Tell the next batch of what was published here before the subscription was heard of."""
        found = [
            publication.metadata
            for publication in self._nucleus.published.values()
            if publication.metadata.published <= kept.seen and kept.subscription.accepts(publication.metadata)
        ]
        found.sort(key=_place)
        if after is not None:
            found = [metadata for metadata in found if _place(metadata) > after]
        if found:
            self._tell(kept.subscription.key, found[: self._batch], max(0, len(found) - self._batch))

    def asked(self, more: More) -> None:
        kept = self._interests.get(more.subscription)
        if kept is None or more.source != more.subscription.owner:
            self.foreign += 1
        else:
            self.past(kept, (more.published, more.name))

    def _tell(self, key: SubscriptionKey, objects: Sequence[Metadata], left: int | None) -> None:
        self.told += len(objects)
        name = self._nucleus.name
        if key.owner == name:
            # Here, but not from inside the call that made it match.
            own = Notify(name, name, 0, key, tuple(objects), left)
            self._nucleus.host.timers.after(0, lambda: self.heard(own))
            return
        head = len(name) + 2 * len(key.owner) + len(key.name)
        for part in in_frames(objects, 64 + 4 * head):
            self._send(Notify(name, key.owner, MOST_HOPS, key, part, left))

    # Who wants it

    def heard(self, notify: Notify) -> None:
        key, source = notify.subscription, notify.source
        if key.owner != self._nucleus.name or any(metadata.key.owner != source for metadata in notify.objects):
            self.foreign += 1
            return
        if self._nucleus.subscription(key) is None and source != self._nucleus.name:
            self._send(Unwanted(self._nucleus.name, source, MOST_HOPS, key))
        for metadata in notify.objects:
            self._nucleus.notify(key, metadata)
        if notify.left is not None and notify.objects and self._nucleus.subscription(key) is not None:
            self._remember(key, source, _place(notify.objects[-1]), notify.left)

    def _remember(self, key: SubscriptionKey, source: str, last: tuple[Instant, str], left: int) -> None:
        hosts = self._more.setdefault(key, {})
        if left and (source in hosts or len(hosts) < MOST_HOSTS):
            hosts[source] = max(last, hosts.get(source, last))
        elif not left:
            hosts.pop(source, None)
        if not hosts:
            del self._more[key]

    def more(self, key: SubscriptionKey) -> None:
        name = self._nucleus.name
        for source, (published, last) in self._more.pop(key, {}).items():
            more = More(name, source, MOST_HOPS, key, published, last)
            if source == name:
                self._nucleus.host.timers.after(0, lambda own=more: self.asked(own))  # type: ignore[misc]
            else:
                self._send(more)

    def ended(self, key: SubscriptionKey) -> None:
        """An own subscription."""
        self._more.pop(key, None)


def _place(metadata: Metadata) -> tuple[Instant, str]:
    """In the order of one host's publications."""
    return metadata.published, metadata.key.name
