"""Copies on their way out: who gets one, and what goes over which connection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from nearcast.broker.publishing.message import Message
from nearcast.broker.publishing.router import Router, Target
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.durations import SLOW, Durations


@dataclass(slots=True, eq=False)
class Dispatch:
    router: Router
    now: Callable[[], Instant]
    delivered: int = 0
    """Copies."""

    delivery_time: Durations = field(default_factory=lambda: Durations(SLOW))
    """Of copies, from their publication until they are handed to connections and queues."""

    def timed(self, published: Instant, copies: int) -> None:
        """So many copies of what was published then have been handed over."""
        if copies:
            self.delivery_time.add((self.now() - published) / MICROSECONDS, copies)

    def deliver(self, targets: Sequence[Target], message: Message) -> None:
        """A copy for each of them."""
        self.delivered += len(targets)
        if message.trace is None:
            self.copy(targets, message)
            return
        delivered = message.trace.delivering(len(targets))
        self.copy(targets, message)
        delivered()
        message.trace = None  # a message that is retained is not traced again when somebody subscribes

    def copy(self, targets: Sequence[Target], message: Message) -> None:
        """The same for copies that are counted already."""
        qos, retain = message.qos, message.retain
        last: tuple[int, bool, tuple[int, ...], bool] | None = None
        data = b""
        for chosen in targets:
            followed = chosen.session.alive or chosen.session.forward is not None
            target = chosen if followed else self.router.instead_of(chosen)
            if target is None:
                continue
            session = target.session
            quality = qos if qos < target.qos else target.qos
            kept = retain and target.retain_as_published
            if session.catching_up is not None and session.catching_up.hold_back(
                target.held, message, quality, target.identifiers, target.near, kept
            ):
                continue
            connection = session.connection
            if quality or connection is None or connection.congested or session.largest is not None:
                session.deliver(
                    message, quality, target.identifiers, near=target.near, retain=kept, shared=target.shared
                )
                continue
            # Nearly all receivers of an event get the same bytes.
            form = connection.version, target.near, target.identifiers, kept
            if form != last:
                last = form
                data, _ = message.parts(
                    connection.version,
                    near=target.near,
                    qos=0,
                    retain=kept,
                    identifiers=target.identifiers,
                    now=self.now(),
                )
            connection.write(data)
