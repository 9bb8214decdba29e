"""Copies of objects that this host has: active ones with all members of its cell, passive ones for itself (THYME 5.2.1, 5.2.2)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from nearcast.crowdstore.chunks import Assembly, chunk_count, chunk_of
from nearcast.crowdstore.data_centric.desk import Desk
from nearcast.crowdstore.data_centric.downloading import Downloading
from nearcast.crowdstore.data_centric.entries import Gone
from nearcast.crowdstore.data_centric.messages import Copy
from nearcast.crowdstore.geographic.grid import Cell
from nearcast.crowdstore.geographic.interface import Destination
from nearcast.crowdstore.objects import Metadata, ObjectKey, Publication
from nearcast.runtime.ports import Cancellable

ASSEMBLING: Final = 32
"""Objects of the cell that are coming in, unasked."""

COPYING: Final = 4
"""Objects of the cell that a member gets from others at a time: a newcomer lacks all of them."""

ROOM: Final = 2**28
"""Bytes of objects that a host holds for its cell; whatever would be more, others may have.  Of what it has downloaded for itself it keeps as
much for others, the newest."""


TOLD: Final = 8
"""Chunks that the cell is told at once ..."""

PAUSE: Final = 0.05
"""... and the seconds until it is told the next ones: a large object takes a quarter of a radio of 6 Mbit/s.  All at once they would fill its
queue, and whatever else is to be said, the object's own metadata among it, would be lost."""


class Copies:
    def __init__(
        self,
        desk: Desk,
        downloading: Downloading,
        tries: int,
        find: Callable[[Metadata, Callable[[bytes | None], None]], None],
    ) -> None:
        """``find`` gets an object from wherever it is."""
        self._desk: Final = desk
        self._downloading: Final = downloading
        self._tries: Final = tries
        self._find: Final = find
        held, entrusted = desk.nucleus.held, desk.nucleus.entrusted
        self._passive: Final = {key: None for key in held if key not in entrusted}
        """Copies that this host has for itself, those of an earlier life included, and that are in replication lists."""

        self._downloaded: Final = {key: held[key].metadata.size for key in self._passive}
        """Those of them that this host got for itself, with their sizes, the oldest first ..."""

        self._room = sum(self._downloaded.values())
        """... and of all of them."""

        self._alone: Final[dict[ObjectKey, None]] = {}
        self._assembling: Final[dict[ObjectKey, Assembly]] = {}
        self._come: Final[dict[ObjectKey, int]] = {}
        """How much of them had come when it was last looked."""

        self._spreading: Final[dict[ObjectKey, tuple[Publication, int, Cell]]] = {}
        """Own objects of which the cell has not been told all chunks: where it goes on, and which cell that is."""

        self._timer: Cancellable | None = None

        self._copying: Final[dict[ObjectKey, None]] = {}
        self._missed: Final[dict[ObjectKey, int]] = {}
        """How often nobody of the cell had it."""

        self._active: Final = {key: held[key].metadata.size for key in entrusted if key in held}
        """Copies that this host holds as a member, with their sizes; also of an earlier life, or from before other mechanisms ran:
        its cell may still count on it."""

        self._size = sum(self._active.values())
        """Of all of them."""

    def spread(self, publication: Publication) -> None:
        """To all other members of the cell; a large one a few chunks at a time, after those that are being told already."""
        key, cell = publication.key, self._desk.router.cell
        if cell is None:
            return
        self._spreading.pop(key, None)  # of an earlier life of its owner
        if self._spreading and chunk_count(publication.metadata.size) > TOLD:
            self._spreading[key] = publication, 0, cell
        else:
            self._tell(publication, 0, cell)

    def _tell(self, publication: Publication, first: int, cell: Cell) -> None:
        metadata, desk = publication.metadata, self._desk
        count = chunk_count(metadata.size)
        for chunk in range(first, min(first + TOLD, count)):
            copy = Copy(metadata, chunk, chunk_of(publication.content, chunk))
            if desk.router.cell == cell:
                desk.tell(copy)
            else:  # from wherever this host has gone in the middle of it
                desk.to_cells([cell], copy)
        if first + TOLD < count:
            self._spreading[metadata.key] = publication, first + TOLD, cell
        else:
            self._spreading.pop(metadata.key, None)
        if self._spreading and self._timer is None:
            self._timer = desk.host.timers.after(PAUSE, self._tell_next)

    def _tell_next(self) -> None:
        self._timer = None
        while self._spreading:
            key, (publication, first, cell) = next(iter(self._spreading.items()))
            if self._desk.nucleus.published.get(key) is publication:
                self._tell(publication, first, cell)
                return
            del self._spreading[key]  # withdrawn meanwhile

    def stop(self) -> None:
        self._spreading.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def told(self, message: Copy) -> Publication | None:
        """The object, once all of it is here."""
        metadata = message.metadata
        if self._has(metadata):
            return self._desk.nucleus.held.get(metadata.key)
        if not self._fits(metadata):
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
        """As a member, if the cell keeps it; what this host has for itself stays its own."""
        key, nucleus = publication.key, self._desk.nucleus
        if not self._desk.state.kept(key):
            return
        if key in self._passive:
            nucleus.held[key] = publication
        elif self._fits(publication.metadata):
            nucleus.held[key] = publication
            nucleus.entrusted[key] = None
            self._size += publication.metadata.size - self._active.pop(key, 0)
            self._active[key] = publication.metadata.size

    def hold_for_itself(self, publication: Publication) -> bool:
        """Whether others can have it from here."""
        key, nucleus = publication.key, self._desk.nucleus
        before = nucleus.held.get(key)
        if publication.metadata.size > ROOM:
            return False
        if before is not None and before.metadata.published > publication.metadata.published:
            return False  # of two that an owner has called the same, the newer one is asked for
        nucleus.held[key] = publication
        nucleus.entrusted.pop(key, None)
        self._size -= self._active.pop(key, 0)
        self._passive[key] = None
        self._room += publication.metadata.size - self._downloaded.pop(key, 0)
        self._downloaded[key] = publication.metadata.size
        while self._room > ROOM:
            self._let_go(next(iter(self._downloaded)))
        return True

    def _let_go(self, key: ObjectKey) -> None:
        """Of what this host has downloaded; as a member it may still have to keep it."""
        self._room -= self._downloaded.pop(key)
        del self._passive[key]
        found = self._desk.nucleus.held.pop(key, None)
        if found is not None:
            self.hold(found)

    def lacks(self, metadata: Metadata) -> None:
        """All members should have it, but this one has not heard (all of) it."""
        members, cell = self._desk.router.members(), self._desk.router.cell
        if self._is_coming(metadata):
            return
        if metadata.key in self._copying or len(self._copying) >= COPYING or self._has(metadata):
            return
        if cell is None or not self._fits(metadata):
            return
        self._copying[metadata.key] = None
        if members and metadata.key not in self._missed:
            sources = [Destination(cell, member) for member in members[: self._tries]]
            self._downloading.begin(metadata, sources, lambda content, _failure: self._copied(metadata, content))
        else:  # those who had it have left before all of it was told; the owner, or whoever has downloaded it, still has it
            self._find(metadata, partial(self._copied, metadata))

    def _is_coming(self, metadata: Metadata) -> bool:
        """Whether somebody is telling the cell of it, chunk by chunk."""
        found = self._assembling.get(metadata.key)
        if found is None or found.metadata != metadata:
            self._come.pop(metadata.key, None)
            return False
        before = self._come.get(metadata.key, 0)
        self._come[metadata.key] = found.size
        return found.size > before

    def _copied(self, metadata: Metadata, content: bytes | None) -> None:
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
            self._drop(key)

    def _drop(self, key: ObjectKey) -> None:
        self._desk.nucleus.held.pop(key, None)
        self._desk.nucleus.entrusted.pop(key, None)
        self._size -= self._active.pop(key, 0)

    def leave(self) -> list[ObjectKey]:
        """This host leaves its cell; what it has as a member, until it is known whether others have it, too (``left``)."""
        keys = list(self._active)
        self._active.clear()
        self._assembling.clear()
        self._come.clear()
        self._missed.clear()
        self._size = 0
        return keys

    def left(self, keys: list[ObjectKey], last: bool) -> None:
        """``last``: nobody else has them."""
        nucleus = self._desk.nucleus
        for key in keys:
            if last and key in nucleus.held:
                self._passive[key] = self._alone[key] = None
                nucleus.entrusted.pop(key, None)
                self._size -= self._active.pop(key, 0)
            elif key not in self._passive and key not in self._active:
                self._drop(key)

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
