"""All that a conversation calls upon."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nearcast.broker.access import Access, Admission
from nearcast.broker.access.limits import Quotas
from nearcast.broker.publishing.batching import Batching
from nearcast.broker.publishing.publishing import Publishing
from nearcast.broker.reserved import ReservedTopics
from nearcast.broker.sessions.lifecycle import SessionLifecycle
from nearcast.broker.sessions.subscribing import Subscribing
from nearcast.broker.settings import SessionSettings
from nearcast.model.time import Instant

if TYPE_CHECKING:
    from nearcast.broker.connections.conversation import Conversation


@dataclass(frozen=True, slots=True)
class Services:
    """One for the whole broker."""

    settings: SessionSettings
    largest_packet: int
    access: Access
    admission: Admission
    quotas: Quotas
    lifecycle: SessionLifecycle
    publishing: Publishing
    subscribing: Subscribing
    reserved: ReservedTopics
    batching: Batching
    now: Callable[[], Instant]
    open: dict[Conversation, None]
    """All conversations, in the order in which they began."""
