"""Copies of objects that this host has: active ones with all members of its cell, passive ones for itself (THYME 5.2.1, 5.2.2)."""

from __future__ import annotations

from functools import partial
from typing import Final

from nearcast.crowdstore.access import genuine_withdrawal
from nearcast.crowdstore.chunks import Assembly, chunk_count, chunk_of
from nearcast.crowdstore.data_centric.desk import Desk
from nearcast.crowdstore.data_centric.downloading import Downloading
from nearcast.crowdstore.data_centric.messages import Copy
from nearcast.crowdstore.geographic.interface import Destination
from nearcast.crowdstore.objects import Metadata, ObjectKey, Publication, Withdrawal
from nearcast.crowdstore.storage import Failure

ASSEMBLING: Final = 32
"""Objects of the cell that are coming in."""


class Copies:
    def __init__(self, desk: Desk, downloading: Downloading, tries: int) -> None:
        self._desk: Final = desk
        self._downloading: Final = downloading
        self._tries: Final = tries
        self._passive: Final[dict[ObjectKey, None]] = {}
        """Copies that this host has for itself, and that are in replication lists."""

        self._assembling: Final[dict[ObjectKey, Assembly]] = {}
        self._copying: Final[dict[ObjectKey, None]] = {}

    def spread(self, publication: Publication) -> None:
        """To all other members of the cell."""
        metadata = publication.metadata
        for chunk in range(chunk_count(metadata.size)):
            self._desk.tell(Copy(metadata, chunk, chunk_of(publication.content, chunk)))

    def told(self, message: Copy) -> Publication | None:
        """The object, once all of it is here."""
        metadata = message.metadata
        if self._desk.nucleus.content_of(metadata.key) is not None or not 0 <= metadata.size < 1 << 32:
            return None
        found = self._assembling.get(metadata.key)
        if found is None or found.metadata != metadata:
            found = self._assembling[metadata.key] = Assembly(metadata)
            if len(self._assembling) > ASSEMBLING:
                del self._assembling[next(iter(self._assembling))]
        if not (found.add(message.chunk, message.data) and found.complete):
            return None
        del self._assembling[metadata.key]
        content = found.content()
        return None if content is None else Publication(metadata, content)

    def hold(self, publication: Publication) -> None:
        """As a member, if the cell keeps it."""
        if self._desk.state.kept(publication.key):
            self._desk.nucleus.held[publication.key] = publication

    def hold_for_itself(self, publication: Publication) -> None:
        self._desk.nucleus.held[publication.key] = publication
        self._passive[publication.key] = None

    def lacks(self, metadata: Metadata) -> None:
        """All members should have it, but this one has not heard (all of) it."""
        members, cell = self._desk.router.members(), self._desk.router.cell
        if members and cell is not None and metadata.key not in self._copying:
            self._copying[metadata.key] = None
            sources = [Destination(cell, member) for member in members[: self._tries]]
            self._downloading.begin(metadata, sources, partial(self._copied, metadata))

    def _copied(self, metadata: Metadata, content: bytes | None, _failure: Failure | None) -> None:
        self._copying.pop(metadata.key, None)
        if content is not None:
            self.hold(Publication(metadata, content))

    def withdrawn(self, withdrawal: Withdrawal) -> None:
        """Active copies go, passive ones stay (5.3)."""
        held, key = self._desk.nucleus.held, withdrawal.key
        if key in held and key not in self._passive and genuine_withdrawal(withdrawal, held[key].metadata):
            del held[key]

    def leave(self, kept: tuple[Metadata, ...], *, last: bool) -> None:
        """This host leaves the cell that keeps those; ``last``: nobody else has them."""
        held = self._desk.nucleus.held
        if last:
            self._passive.update(dict.fromkeys(metadata.key for metadata in kept if metadata.key in held))
        for metadata in kept:
            if metadata.key not in self._passive:
                held.pop(metadata.key, None)
        self._assembling.clear()

    def tags(self) -> list[tuple[str, ...]]:
        """Of this host's own objects and passive copies: where their tags hash to, it is in their lists."""
        nucleus = self._desk.nucleus
        held = [found.metadata.tags for key in self._passive if (found := nucleus.held.get(key)) is not None]
        return [*(each.metadata.tags for each in nucleus.published.values()), *held]
