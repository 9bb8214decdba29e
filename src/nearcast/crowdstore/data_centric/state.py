"""The state of one cell, of which all its members have a copy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Final

import msgspec

from nearcast.crowdstore.data_centric.entries import EVERYTHING, Entry, Gone, Identity, Indexed, Kept, Part, merged
from nearcast.crowdstore.objects import Metadata, ObjectKey
from nearcast.model.time import Instant

BUCKETS: Final = 32
"""Members that differ compare so many hashes: then they talk only about the part in which they differ."""

ENTRIES: Final = 50_000
"""A member keeps so many at most, and takes no more from anybody then; of what was withdrawn it remembers as many, the newest."""

_encode: Final = msgspec.msgpack.Encoder().encode


def _hash(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big") >> 1


def name_of(identity: Identity) -> int:
    """A short name of an entry, in which members compare what they have."""
    return _hash(_encode(identity))


def stamp_of(entry: Entry) -> int:
    """Of all that is in it."""
    return _hash(_encode(entry))


class CellState:
    """Entries by identity, found by tag; sums of hashes over them say whether two members have the same."""

    def __init__(self, memory: Instant) -> None:
        self.memory: Final = memory
        """Microseconds: for so long it is remembered that something was withdrawn.  Longer than any operation takes and any member
        waits for the others' digests; a host that leaves the cell forgets all of it, so nothing older can come back."""

        self.entries: Final[dict[Identity, Entry]] = {}
        self.sums: Final[list[int]] = [0] * BUCKETS
        self._gone: Final[dict[Identity, None]] = {}
        self._names: Final[dict[int, Identity]] = {}
        self._stamps: Final[dict[int, int]] = {}
        self._objects: Final[dict[str, dict[Identity, Indexed]]] = {}
        self._parts: Final[dict[str, dict[Identity, Part]]] = {}

    def __len__(self) -> int:
        return len(self.entries)

    def takes(self, entry: Entry) -> bool:
        """Whether there is room for it; for what was withdrawn there always is."""
        return isinstance(entry, Gone) or entry.identity in self.entries or len(self) - len(self._gone) < ENTRIES

    def put(self, entry: Entry, now: Instant) -> bool:
        """Merge it in; true if that made a difference."""
        if self._is_over(entry, now) or not self.takes(entry):
            return False
        identity = entry.identity
        before = self.entries.get(identity)
        if self._names.get(name_of(identity), identity) != identity:
            return False  # by its short name it could not be told from another one
        after = entry if before is None else merged(before, entry)
        if after == before:
            return False
        if before is not None:
            self._take(before)
        self._add(after)
        if isinstance(after, Gone):
            self._withdraw(after)
            if len(self._gone) > ENTRIES:
                self._take(self.entries[next(iter(self._gone))])
        return True

    def _is_over(self, entry: Entry, now: Instant) -> bool:
        if isinstance(entry, Gone):
            return not now - self.memory < entry.at <= now + self.memory
        if isinstance(entry, Part):
            if entry.until is not None and entry.until + self.memory < now:
                return True
            return ("g", "s", entry.subscription.owner, entry.subscription.name) in self.entries
        metadata = entry.item.metadata if isinstance(entry, Indexed) else entry.metadata
        gone = self.entries.get(("g", "o", metadata.key.owner, metadata.key.name))
        return isinstance(gone, Gone) and gone.covers(metadata)

    def _withdraw(self, gone: Gone) -> None:
        if gone.subscription:
            for identity in [
                found for found in self.entries if found[0] == "p" and found[1:3] == (gone.owner, gone.name)
            ]:
                self._take(self.entries[identity])
            return
        for kind in "ik":
            entry = self.entries.get((kind, gone.owner, gone.name))
            if isinstance(entry, Indexed | Kept) and gone.covers(
                entry.item.metadata if isinstance(entry, Indexed) else entry.metadata
            ):
                self._take(entry)

    def prune(self, now: Instant) -> None:
        """Forget what is over."""
        for entry in list(self.entries.values()):
            if isinstance(entry, (Gone, Part)) and self._is_over(entry, now):
                self._take(entry)

    def drop(self, entry: Entry) -> None:
        """It is somebody else's from now on."""
        if entry.identity in self.entries:
            self._take(self.entries[entry.identity])

    def clear(self) -> None:
        for entry in list(self.entries.values()):
            self._take(entry)

    def _add(self, entry: Entry) -> None:
        identity = entry.identity
        name, stamp = name_of(identity), stamp_of(entry)
        self.entries[identity] = entry
        self._names[name] = identity
        self._stamps[name] = stamp
        self.sums[name % BUCKETS] ^= stamp
        if isinstance(entry, Gone):
            self._gone[identity] = None
        elif isinstance(entry, Indexed):
            for tag in entry.tags:
                self._objects.setdefault(tag, {})[identity] = entry
        elif isinstance(entry, Part):
            self._parts.setdefault(entry.tag, {})[identity] = entry

    def _take(self, entry: Entry) -> None:
        identity = entry.identity
        name = name_of(identity)
        del self.entries[identity], self._names[name]
        self.sums[name % BUCKETS] ^= self._stamps.pop(name)
        if isinstance(entry, Gone):
            del self._gone[identity]
        elif isinstance(entry, Indexed):
            for tag in entry.tags:
                _without(self._objects, tag, identity)
        elif isinstance(entry, Part):
            _without(self._parts, entry.tag, identity)

    def indexed(self, key: ObjectKey) -> Indexed | None:
        entry = self.entries.get(("i", key.owner, key.name))
        return entry if isinstance(entry, Indexed) else None

    def kept(self, key: ObjectKey) -> bool:
        return ("k", key.owner, key.name) in self.entries

    def all_kept(self) -> tuple[Metadata, ...]:
        return tuple(entry.metadata for entry in self.entries.values() if isinstance(entry, Kept))

    def parts_for(self, indexed: Indexed) -> Iterator[Part]:
        """Those that it matches here.

        A conjunction without a key is in every cell: the cell of the object's first tag is the one that says so.
        """
        metadata = indexed.item.metadata
        for tag in indexed.tags:
            yield from (part for part in self._parts.get(tag, {}).values() if part.accepts(metadata))
        if metadata.tags[0] in indexed.tags:
            yield from (part for part in self._parts.get(EVERYTHING, {}).values() if part.accepts(metadata))

    def objects_for(self, part: Part) -> Iterator[Indexed]:
        """Those that match it here."""
        if part.tag != EVERYTHING:
            yield from (
                found for found in self._objects.get(part.tag, {}).values() if part.accepts(found.item.metadata)
            )
            return
        for tag, objects in self._objects.items():
            for found in objects.values():
                if found.item.metadata.tags[0] == tag and part.accepts(found.item.metadata):
                    yield found

    def root(self) -> int:
        return _hash(b"".join(each.to_bytes(8, "big") for each in self.sums))

    def listing(self, bucket: int) -> list[tuple[int, int]]:
        """Name and hash of each entry in a bucket."""
        return [(name, stamp) for name, stamp in self._stamps.items() if name % BUCKETS == bucket]

    def named(self, names: Iterable[int]) -> list[Entry]:
        return [self.entries[self._names[name]] for name in names if name in self._names]

    def stamp(self, name: int) -> int | None:
        return self._stamps.get(name)


def _without(
    index: dict[str, dict[Identity, Indexed]] | dict[str, dict[Identity, Part]], tag: str, identity: Identity
) -> None:
    found = index[tag]
    found.pop(identity, None)
    if not found:
        del index[tag]
