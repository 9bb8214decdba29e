"""All that a router was told of contexts, by origin: the newest versions, removals for a while, and digests to compare."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Collection
from typing import Final

from nearcast.model.time import MICROSECONDS, Instant
from nearcast.overlay.handles import Handle
from nearcast.overlay.routing.messages import ContextEntry
from nearcast.runtime.ports import Address


def digest_of(entry: ContextEntry) -> int:
    """The same everywhere, unlike Python's ``hash``; kept with the message, because one message reaches many."""
    digest: int | None = entry.__dict__.get("digest")
    if digest is None:
        text = f"{entry.handle}\0{entry.version}".encode()
        digest = entry.__dict__["digest"] = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
    return digest


class Known:
    """Entries of all origins."""

    def __init__(self, tombstone: float) -> None:
        self._entries: Final[dict[Handle, ContextEntry]] = {}
        self._of_origin: Final[dict[Address, int]] = {}
        """How many; which they are is asked for rarely."""

        self._digests: Final[dict[Address, int]] = {}
        self._removed: Final[deque[tuple[Instant, Handle, int]]] = deque()
        self._kept: Final = round(tombstone * MICROSECONDS)
        self._live = 0

    def __len__(self) -> int:
        """Removals are not counted."""
        return self._live

    def get(self, handle: Handle) -> ContextEntry | None:
        return self._entries.get(handle)

    def take(self, entry: ContextEntry, now: Instant) -> bool:
        """Whether that is news; what is older than what is known changes nothing."""
        if self._removed:
            self._forget_removals(now)
        before = self._entries.get(entry.handle)
        if before is not None and before.version >= entry.version:
            return False
        if before is not None:
            self._strike_out(before)
        else:
            self._of_origin[entry.origin] = self._of_origin.get(entry.origin, 0) + 1
        self._entries[entry.handle] = entry
        if entry.attributes is None:
            self._removed.append((now, entry.handle, entry.version))
        else:
            self._live += 1
            self._digests[entry.origin] = self._digests.get(entry.origin, 0) ^ digest_of(entry)
        return True

    def origins(self) -> tuple[Address, ...]:
        return tuple(self._of_origin)

    def of(self, origins: Collection[Address]) -> tuple[ContextEntry, ...]:
        """Removals included."""
        wanted = frozenset(origins)
        return tuple(entry for entry in self._entries.values() if entry.origin in wanted) if wanted else ()

    def forget(self, origin: Address) -> tuple[ContextEntry, ...]:
        """All of an origin, which is gone for good."""
        gone = self.of((origin,))
        for entry in gone:
            self._strike_out(entry)
            del self._entries[entry.handle]
        self._of_origin.pop(origin, None)
        self._digests.pop(origin, None)
        return gone

    def digests(self) -> dict[Address, int]:
        """By origin, of what is not removed; nothing of origins of which nothing is left."""
        return {origin: digest for origin, digest in self._digests.items() if digest}

    def _strike_out(self, entry: ContextEntry) -> None:
        if entry.attributes is not None:
            self._live -= 1
            self._digests[entry.origin] ^= digest_of(entry)

    def _forget_removals(self, now: Instant) -> None:
        removed = self._removed
        while removed and removed[0][0] + self._kept <= now:
            _, handle, version = removed.popleft()
            entry = self._entries.get(handle)
            if entry is not None and entry.attributes is None and entry.version == version:
                del self._entries[handle]
                self._of_origin[entry.origin] -= 1
                if not self._of_origin[entry.origin]:
                    del self._of_origin[entry.origin]
                    self._digests.pop(entry.origin, None)
