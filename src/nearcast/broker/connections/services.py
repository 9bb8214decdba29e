"""All that a conversation calls upon."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from nearcast.broker.access import Access, Admission, Callers
from nearcast.broker.access.limits import Quotas
from nearcast.broker.publishing.batching import Batching
from nearcast.broker.publishing.publishing import Publishing
from nearcast.broker.refusals import Refusals
from nearcast.broker.reserved import ReservedTopics
from nearcast.broker.sessions.lifecycle import SessionLifecycle
from nearcast.broker.sessions.session import Session
from nearcast.broker.sessions.subscribing import Subscribing
from nearcast.broker.settings import SessionSettings
from nearcast.model.time import Instant

if TYPE_CHECKING:
    from nearcast.broker.connections.conversation import Conversation
    from nearcast.broker.tracing.tracer import Tracer


class Federated(Protocol):
    """What a federation wants to know of clients that come."""

    async def arrive(self, client: str, user: str | None, *, clean: bool) -> None:
        """Before it gets a session: it may have one at another broker.  ``Denied`` if that is somebody else's."""

    def entered(self, session: Session, *, clean: bool) -> None:
        """It has its session."""


@dataclass(slots=True)
class Services:
    """One for the whole broker."""

    settings: SessionSettings
    largest_packet: int
    access: Access
    admission: Admission
    quotas: Quotas
    callers: Callers
    lifecycle: SessionLifecycle
    publishing: Publishing
    subscribing: Subscribing
    reserved: ReservedTopics
    batching: Batching
    now: Callable[[], Instant]
    open: dict[Conversation, None]
    """All conversations, in the order in which they began."""

    refusals: Refusals
    half_open: dict[Conversation, None] = field(default_factory=dict)
    """Those whose client is not known yet."""

    most_half_open: int = 1_000

    tracer: Tracer | None = None
    federation: Federated | None = None
