"""Subscribers hear what matches, the past of it in batches (THYME 4, 5.4.3); what is lost is not told again (6.3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from nearcast.crowdstore.nucleus import Nucleus
from nearcast.crowdstore.objects import Metadata, ObjectKey, SubscriptionKey
from nearcast.crowdstore.publish_local.interests import Interests, Kept, Learned
from nearcast.crowdstore.publish_local.messages import More, Notify, Unwanted
from nearcast.crowdstore.unicast.messages import MOST_HOPS, Packet
from nearcast.crowdstore.unicast.router import Router, in_frames
from nearcast.model.time import Instant
from nearcast.runtime.ports import Cancellable

MOST_HOSTS: Final = 4_096
"""Of which one subscription remembers that they have more."""

MOST_ASKED: Final = 65_536
"""Who was asked for all since a subscription was made, the newest; whoever is asked again tells it again, and nothing comes twice."""

GATHERING: Final = 0.5
"""Seconds within which the packets of a batch have come."""


class Notifying:
    """Both sides of it: who has what matches, and who wants it."""

    def __init__(
        self,
        nucleus: Nucleus,
        interests: Interests,
        batch: int,
        router: Router,
        represented: Callable[[ObjectKey, str], None],
    ) -> None:
        """``represented`` is told of objects of which somebody else than the owner tells, and who that is."""
        self._nucleus: Final = nucleus
        self._interests: Final = interests
        self._batch: Final = batch
        self._router: Final = router
        self._represented: Final = represented
        self._send: Final[Callable[[Packet], None]] = router.send
        self._untold: Final[dict[str, dict[SubscriptionKey, tuple[Instant, str] | None]]] = {}
        """By subscriber: subscriptions that are to be told of the past as soon as there is a way, and after what; none: of all of it."""

        self._more: Final[dict[SubscriptionKey, dict[str, tuple[Instant, str]]]] = {}
        """Of own subscriptions: who has more of the past, and after what it goes on."""

        self._since: Final[dict[tuple[SubscriptionKey, str], tuple[Instant, str] | None]] = {}
        """Who is about to be asked for what it has published since the subscription was made, and after what; none: for all of it."""

        self._asked_since: Final[dict[tuple[SubscriptionKey, str], None]] = {}
        """Who was asked for all of it."""

        self._timers: Final[dict[tuple[SubscriptionKey, str], Cancellable]] = {}

        self.told = 0
        self.foreign = 0
        """Claims that something matches somebody else's subscription, and questions about one."""

    # Who has what matches

    def published(self, metadata: Metadata) -> None:
        for kept in self._interests:
            if not kept.subscription.accepts(metadata):
                continue
            if self._reaches(kept.subscription.key.owner):
                self._tell(kept.subscription.key, [metadata], None)
            else:
                self._tell_later(kept, (metadata.published - 1, ""))

    def _reaches(self, owner: str) -> bool:
        return owner == self._nucleus.name or self._router.reaches(owner)

    def learned(self, learned: Learned) -> None:
        """A subscription is new here, or its owner is back: tell of the past, as soon as there is a way.

        Who has just joined knows subscriptions before routes, and more matches than may wait for one.
        """
        kept, before = learned
        after = None if before is None else (before, "")
        if kept.subscription.key.owner == self._nucleus.name:
            self.past(kept, after)
        else:
            self._tell_later(kept, after)

    def _tell_later(self, kept: Kept, after: tuple[Instant, str] | None) -> None:
        """All after that, as soon as there is a way: however much it becomes until then, and however long that is."""
        key = kept.subscription.key
        untold = self._untold.setdefault(key.owner, {})
        earlier = untold.get(key, after)
        untold[key] = None if after is None or earlier is None else min(after, earlier)
        self._router.when_reachable(key.owner, partial(self._reachable, key.owner))

    def forgotten(self, key: SubscriptionKey) -> None:
        """A subscription of which this host knows no more."""
        untold = self._untold.get(key.owner)
        if untold is not None and key in untold:
            del untold[key]
            if not untold:
                del self._untold[key.owner]
                self._router.no_longer_awaited(key.owner)

    def _reachable(self, owner: str) -> None:
        for key, after in self._untold.pop(owner, {}).items():
            kept = self._interests.get(key)
            if kept is not None:
                kept.seen = self._nucleus.host.now()
                self.past(kept, after)

    def past(self, kept: Kept, after: tuple[Instant, str] | None = None) -> None:
        """Tell the next batch of what was published here before the subscription was last heard of."""
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
        if key.owner != self._nucleus.name:
            self.foreign += 1
            return
        if self._nucleus.subscription(key) is None and source != self._nucleus.name:
            self._send(Unwanted(self._nucleus.name, source, MOST_HOPS, key))
        for metadata in notify.objects:
            # Whoever tells of it may have published it for its owner; what a name proves is checked in either case.
            if self._nucleus.notify(key, metadata) and metadata.key.owner != source:
                self._represented(metadata.key, source)
        if notify.left is not None and notify.objects and self._nucleus.subscription(key) is not None:
            self._remember(key, source, _place(notify.objects[-1]), notify.left)

    def _remember(self, key: SubscriptionKey, source: str, last: tuple[Instant, str], left: int) -> None:
        made = self._nucleus.made(key)
        assert made is not None  # `heard` has looked
        if last[0] >= made:
            # Of what was published since, the application hears unasked, however much it is: it was told of late, because
            # the mechanism was exchanged, or this host or that one was away.
            if left:
                before = self._since.get((key, source))
                self._ask_since(key, source, last if before is None else max(last, before))
            return
        hosts = self._more.setdefault(key, {})
        if left and (source in hosts or len(hosts) < MOST_HOSTS):
            hosts[source] = max(last, hosts.get(source, last))
            if (key, source) not in self._asked_since:
                self._asked_since[key, source] = None
                if len(self._asked_since) > MOST_ASKED:
                    del self._asked_since[next(iter(self._asked_since))]
                self._ask_since(key, source, None)
        elif not left:
            hosts.pop(source, None)
        if not hosts:
            del self._more[key]

    def _ask_since(self, key: SubscriptionKey, source: str, after: tuple[Instant, str] | None) -> None:
        """Soon: a batch comes in several packets."""
        self._since[key, source] = after
        if (key, source) not in self._timers:
            later = partial(self._go_on, key, source)
            self._timers[key, source] = self._nucleus.host.timers.after(GATHERING, later)

    def _go_on(self, key: SubscriptionKey, source: str) -> None:
        del self._timers[key, source]
        after, made = self._since.pop((key, source)), self._nucleus.made(key)
        if made is not None:
            self._ask(source, key, after or (made, ""))

    def more(self, key: SubscriptionKey) -> None:
        for source, after in self._more.pop(key, {}).items():
            self._ask(source, key, after)

    def _ask(self, source: str, key: SubscriptionKey, after: tuple[Instant, str]) -> None:
        more = More(self._nucleus.name, source, MOST_HOPS, key, *after)
        if source == self._nucleus.name:
            self._nucleus.host.timers.after(0, partial(self.asked, more))
        else:
            self._send(more)

    def ended(self, key: SubscriptionKey) -> None:
        """An own subscription."""
        self._more.pop(key, None)
        for asked in [asked for asked in self._asked_since if asked[0] == key]:
            del self._asked_since[asked]

    def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()


def _place(metadata: Metadata) -> tuple[Instant, str]:
    """In the order of one host's publications."""
    return metadata.published, metadata.key.name
