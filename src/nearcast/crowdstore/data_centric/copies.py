"""Copies of objects that this host has: active ones with all members of its cell, passive ones for itself (THYME 5.2.1, 5.2.2)."""

from __future__ import annotations

from functools import partial
from typing import Final

from nearcast.crowdstore.chunks import Assembly, chunk_count, chunk_of
from nearcast.crowdstore.data_centric.desk import Desk
from nearcast.crowdstore.data_centric.downloading import Downloading
from nearcast.crowdstore.data_centric.entries import Gone
from nearcast.crowdstore.data_centric.messages import Copy
from nearcast.crowdstore.geographic.interface import Destination
from nearcast.crowdstore.objects import Metadata, ObjectKey, Publication
from nearcast.crowdstore.storage import Failure

ASSEMBLING: Final = 32
"""Objects of the cell that are coming in, unasked."""

COPYING: Final = 4
"""Objects of the cell that a member gets from others at a time: a newcomer lacks all of them."""

ROOM: Final = 2**28
"""Bytes of objects that a host holds for its cell; whatever would be more, others may have."""


class Copies:
    def __init__(self, desk: Desk, downloading: Downloading, tries: int) -> None:
        self._desk: Final = desk
        self._downloading: Final = downloading
        self._tries: Final = tries
        self._passive: Final[dict[ObjectKey, None]] = dict.fromkeys(desk.nucleus.held)
        """Copies that this host has for itself, those of an earlier life included, and that are in replication lists."""

        self._alone: Final[dict[ObjectKey, None]] = {}
        self._assembling: Final[dict[ObjectKey, Assembly]] = {}
        self._copying: Final[dict[ObjectKey, None]] = {}
        self._missed: Final[dict[ObjectKey, int]] = {}
        """How often nobody of the cell had it."""

        self._active: Final[dict[ObjectKey, int]] = {}
        """Copies that this host holds as a member, with their sizes."""

        self._size = 0
        """Of all of them."""

    def spread(self, publication: Publication) -> None:
        """To all other members of the cell."""
        metadata = publication.metadata
        for chunk in range(chunk_count(metadata.size)):
            self._desk.tell(Copy(metadata, chunk, chunk_of(publication.content, chunk)))

    def told(self, message: Copy) -> Publication | None:
        """The object, once all of it is here."""
        metadata = message.metadata
        if self._has(metadata) or not self._fits(metadata):
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

    def _has(self, metadata: Metadata) -> bool:
        found = self._desk.nucleus.content_of(metadata.key)
        return found is not None and found.metadata == metadata

    def _fits(self, metadata: Metadata) -> bool:
        coming = sum(each.size for key, each in self._assembling.items() if key != metadata.key)
        return self._size + coming + metadata.size <= ROOM

    def hold(self, publication: Publication) -> None:
        """As a member, if the cell keeps it."""
        if self._desk.state.kept(publication.key) and self._fits(publication.metadata):
            self._desk.nucleus.held[publication.key] = publication
            self._size += publication.metadata.size - self._active.pop(publication.key, 0)
            self._active[publication.key] = publication.metadata.size

    def hold_for_itself(self, publication: Publication) -> None:
        self._desk.nucleus.held[publication.key] = publication
        self._passive[publication.key] = None

    def lacks(self, metadata: Metadata) -> None:
        """All members should have it, but this one has not heard (all of) it."""
        members, cell = self._desk.router.members(), self._desk.router.cell
        if metadata.key in self._copying or len(self._copying) >= COPYING or self._has(metadata):
            return
        if members and cell is not None and self._fits(metadata):
            self._copying[metadata.key] = None
            sources = [Destination(cell, member) for member in members[: self._tries]]
            self._downloading.begin(metadata, sources, partial(self._copied, metadata))

    def _copied(self, metadata: Metadata, content: bytes | None, _failure: Failure | None) -> None:
        self._copying.pop(metadata.key, None)
        if content is None:
            self._missed[metadata.key] = self._missed.get(metadata.key, 0) + 1
            return
        self.hold(Publication(metadata, content))
        self.mend()

    def mend(self) -> None:
        """Get what this member lacks, some of it at a time."""
        for metadata in self._desk.state.all_kept():
            if len(self._copying) >= COPYING:
                return
            if self._missed.get(metadata.key, 0) < self._tries:
                self.lacks(metadata)

    def withdrawn(self, gone: Gone) -> None:
        """Active copies go, passive ones stay (5.3)."""
        key, held = gone.withdrawal.key, self._desk.nucleus.held
        if key in held and key not in self._passive and gone.covers(held[key].metadata):
            del held[key]
            self._size -= self._active.pop(key, 0)

    def leave(self) -> list[ObjectKey]:
        """This host leaves its cell; what it has as a member, until it is known whether others have it, too (``left``)."""
        keys = list(self._active)
        self._active.clear()
        self._assembling.clear()
        self._missed.clear()
        self._size = 0
        return keys

    def left(self, keys: list[ObjectKey], last: bool) -> None:
        """``last``: nobody else has them."""
        held = self._desk.nucleus.held
        for key in keys:
            if last and key in held:
                self._passive[key] = self._alone[key] = None
            elif key not in self._passive and key not in self._active:
                held.pop(key, None)

    def alone(self) -> list[Metadata]:
        """Of what this host has taken from a cell that is empty now, and has not been told of before."""
        held = self._desk.nucleus.held
        found = [held[key].metadata for key in self._alone if key in held]
        self._alone.clear()
        return found

    def tags(self) -> list[tuple[str, ...]]:
        """Of this host's own objects and passive copies: where their tags hash to, it is in their lists."""
        nucleus = self._desk.nucleus
        held = [found.metadata.tags for key in self._passive if (found := nucleus.held.get(key)) is not None]
        return [*(each.metadata.tags for each in nucleus.published.values()), *held]
