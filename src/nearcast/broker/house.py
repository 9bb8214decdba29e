"""All that a conversation calls upon."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nearcast.broker.access import Access, Admission
from nearcast.broker.access.limits import Quotas
from nearcast.broker.gathering import Gathering
from nearcast.broker.publishing import Publishing
from nearcast.broker.reception import Reception
from nearcast.broker.reserved import ReservedTopics
from nearcast.broker.settings import SessionSettings
from nearcast.broker.subscribing import Subscribing
from nearcast.model.time import Instant

if TYPE_CHECKING:
    from nearcast.broker.conversation import Conversation


@dataclass(frozen=True, slots=True)
class House:
    """One for the whole broker."""

    settings: SessionSettings
    largest_packet: int
    access: Access
    admission: Admission
    quotas: Quotas
    reception: Reception
    publishing: Publishing
    subscribing: Subscribing
    reserved: ReservedTopics
    gathering: Gathering
    now: Callable[[], Instant]
    open: dict[Conversation, None]
    """All conversations, in the order in which they began."""
