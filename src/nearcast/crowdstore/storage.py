"""How a crowd keeps publications and subscriptions, and how they meet: the interface of all mechanisms that do it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import msgspec

from nearcast.crowdstore.nucleus import Nucleus
from nearcast.crowdstore.objects import CrowdSubscription, Metadata, Publication, SubscriptionKey
from nearcast.transition.mechanism import Mechanism

PROXY: Final = "crowdstore"
"""Plans call the mechanism by that."""

PORT: Final = 30
"""The same for all mechanisms, so that hosts hear who runs another one; 31 to 35 are theirs as well."""


class Failure(StrEnum):
    """Why an operation did not succeed."""

    TIMED_OUT = "timed out"
    """Nobody answered, however often it was tried."""

    NOT_FOUND = "not found"
    """Everybody who was asked said that it does not have the object (any more)."""

    STOPPED = "stopped"
    """The store was stopped meanwhile."""

    REFUSED = "refused"
    """Whoever keeps it says that this one may not."""

    UNREADABLE = "unreadable"
    """It came, but is sealed for others."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an operation ended."""

    failure: Failure | None = None
    content: bytes | None = None
    """Of the object, if it was downloaded."""

    @property
    def ok(self) -> bool:
        return self.failure is None


DONE: Final = Outcome()
Done = Callable[[Outcome], None]
"""Called exactly once, and never from inside the call that asked for the operation."""


class Storage(Mechanism):
    """One way to keep them; its own state is what it keeps for others, while the nucleus has what belongs to this host.

    ``bootstrap`` tells others what is in the nucleus: so a mechanism that takes over carries on with all of it.  Operations that were
    under way when it was stopped are asked for again by the service, so ``stop_mechanism`` lets go of them without a word.

    What others say is kept only if it is ``access.genuine``, and given up only on an ``access.genuine_withdrawal``.
    """

    @abstractmethod
    def publish(self, publication: Publication, done: Done) -> None:
        """It is in ``nucleus.published`` already."""

    @abstractmethod
    def unpublish(self, metadata: Metadata, done: Done) -> None:
        """It is in ``nucleus.withdrawn`` already, and no longer in ``nucleus.published``; ``nucleus.withdrawal`` is what to tell others."""

    @abstractmethod
    def subscribe(self, subscription: CrowdSubscription, done: Done) -> None:
        """It is in ``nucleus.subscriptions`` already; notifications go to ``nucleus.notify``, as often as they like."""

    @abstractmethod
    def unsubscribe(self, subscription: CrowdSubscription, done: Done) -> None:
        """It is no longer in ``nucleus.subscriptions``."""

    @abstractmethod
    def download(self, metadata: Metadata, done: Done) -> None:
        """From whoever has it; the service asks only for what this host does not have itself."""

    def more(self, subscription: SubscriptionKey) -> None:
        """Tell a further batch of what the subscription found in the past (5.4.3)."""

    def tell_again(self) -> None:
        """Tell others once more what ``bootstrap`` has told them: some have not heard it, because they ran another mechanism then."""

    @abstractmethod
    def statistics(self) -> Any:
        """A frozen dataclass."""


class Manner(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of a mechanism: its fields (``transition.registry`` says how they are declared)."""

    @abstractmethod
    def mechanism(self, nucleus: Nucleus) -> Storage: ...
