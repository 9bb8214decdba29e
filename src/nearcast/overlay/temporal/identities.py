"""Virtual identities (6.3.2): pseudonyms that one trusted node alone can resolve.

Their numbers are instants that strictly grow, as the document has them: a counter would tell how many a node has issued.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nearcast.model.time import Instant
from nearcast.overlay.temporal.messages import Vid
from nearcast.runtime.ports import Address


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose identity it is, and for which of its contexts."""

    entity: str
    aspect: str


class Identities:
    """Issued by one trusted node.  It knows entities, and nothing of what is registered under their identities."""

    def __init__(self, trusted_node: Address) -> None:
        self._name: Final = trusted_node
        self._last: Instant = 0
        self._owners: Final[dict[Vid, Owner]] = {}

    def __len__(self) -> int:
        return len(self._owners)

    def issue(self, owner: Owner, now: Instant) -> Vid:
        self._last = max(self._last + 1, now)
        vid = f"{self._last}@{self._name}"
        self._owners[vid] = owner
        return vid

    def owner(self, vid: Vid) -> Owner | None:
        return self._owners.get(vid)
