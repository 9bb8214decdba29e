"""What the members of a cell keep for the crowd: entries that can be merged in any order, as often as they come (THYME 5.1 to 5.4)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final

import msgspec

from nearcast.crowdstore.formula import Conjunction
from nearcast.crowdstore.objects import Metadata, ObjectKey, Proof, SubscriptionKey, Withdrawal
from nearcast.model.time import Instant

EVERYTHING: Final = ""
"""The key of a conjunction without any tag that must be there; every cell keeps it, and no tag is empty."""

REPLICAS: Final = 8
"""An object's list of places has so many at most, the newest ones: enough to find a near one, and it travels with every notification."""

Coordinate = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31)]
Identity = tuple[str, ...]


class Place(msgspec.Struct, frozen=True, array_like=True, order=True):
    """A host that has a copy, where it was then, and when it said so."""

    at: Instant
    node: str
    column: Coordinate
    row: Coordinate

    @property
    def cell(self) -> tuple[int, int]:
        return self.column, self.row


class Item(msgspec.Struct, frozen=True, array_like=True):
    """Metadata with its replication list (5.2.3); the cell where every member has a copy comes first."""

    metadata: Metadata
    column: Coordinate
    row: Coordinate
    replicas: tuple[Place, ...] = ()

    @property
    def active(self) -> tuple[int, int]:
        return self.column, self.row

    def with_replicas(self, places: Iterable[Place]) -> Item:
        newest: dict[str, Place] = {}
        for place in sorted((*self.replicas, *places)):
            newest[place.node] = place
        kept = tuple(sorted(newest.values(), reverse=True)[:REPLICAS])
        return self if kept == self.replicas else msgspec.structs.replace(self, replicas=kept)


class Indexed(msgspec.Struct, frozen=True, array_like=True, tag="i"):
    """An object that can be found here, under those of its tags that hash to this cell or to an empty one nearby."""

    item: Item
    tags: tuple[str, ...]

    @property
    def identity(self) -> Identity:
        key = self.item.metadata.key
        return "i", key.owner, key.name

    @property
    def key(self) -> ObjectKey:
        return self.item.metadata.key

    def merged(self, other: Indexed) -> Indexed:
        one, two = self.item, other.item
        if (
            one.metadata.published != two.metadata.published
        ):  # an owner who forgot what it had published uses a name again
            return self if one.metadata.published > two.metadata.published else other
        first = min(one, two, key=msgspec.msgpack.encode)  # they differ in their places only, unless somebody lies
        item = first.with_replicas((*one.replicas, *two.replicas))
        return Indexed(item, tuple(sorted({*self.tags, *other.tags} & {*item.metadata.tags})))


class Part(msgspec.Struct, frozen=True, array_like=True, tag="p"):
    """One conjunction of a subscription, kept where its key says (5.4.1)."""

    subscription: SubscriptionKey
    number: int
    node: str
    """Its owner's address."""

    tag: str
    """The key."""

    present: tuple[str, ...]
    absent: tuple[str, ...]
    since: Instant | None
    until: Instant | None
    column: Coordinate
    row: Coordinate
    """Where its owner was."""

    version: Instant
    """When it was there."""

    @property
    def identity(self) -> Identity:
        return "p", self.subscription.owner, self.subscription.name, str(self.number)

    @property
    def cell(self) -> tuple[int, int]:
        return self.column, self.row

    def merged(self, other: Part) -> Part:
        return max(self, other, key=lambda part: (part.version, msgspec.msgpack.encode(part)))

    def accepts(self, metadata: Metadata) -> bool:
        at = metadata.published
        return (
            (self.since is None or self.since <= at)
            and (self.until is None or at < self.until)
            and Conjunction(frozenset(self.present), frozenset(self.absent)).accepts(metadata.tags)
        )


class Kept(msgspec.Struct, frozen=True, array_like=True, tag="k"):
    """An object of which every member of this cell has a copy (5.2.1)."""

    metadata: Metadata

    @property
    def identity(self) -> Identity:
        return "k", self.metadata.key.owner, self.metadata.key.name

    def merged(self, other: Kept) -> Kept:
        return min(self, other, key=lambda kept: (-kept.metadata.published, msgspec.msgpack.encode(kept)))


class Gone(msgspec.Struct, frozen=True, array_like=True, tag="g"):
    """An object or a subscription was withdrawn: whoever comes with it again is late."""

    subscription: bool
    owner: str
    name: str
    at: Instant
    published: Instant = 0
    """The object, so that one of the same name that its owner publishes later is none of it."""

    proof: Proof | None = None
    """Of an object's owner, as in ``Withdrawal``: it goes wherever this goes."""

    @property
    def identity(self) -> Identity:
        return "g", "s" if self.subscription else "o", self.owner, self.name

    @property
    def withdrawal(self) -> Withdrawal:
        return Withdrawal(ObjectKey(self.owner, self.name), self.published, self.proof)

    def covers(self, metadata: Metadata) -> bool:
        return metadata.published <= self.published

    def merged(self, other: Gone) -> Gone:
        return max(self, other, key=lambda gone: (gone.published, gone.at, msgspec.msgpack.encode(gone)))


def withdrawn(withdrawal: Withdrawal, at: Instant) -> Gone:
    key = withdrawal.key
    return Gone(False, key.owner, key.name, at, withdrawal.published, withdrawal.proof)


Entry = Indexed | Part | Kept | Gone


def merged(first: Entry, second: Entry) -> Entry:
    """Of two entries with the same identity; the order makes no difference."""
    if isinstance(first, Indexed) and isinstance(second, Indexed):
        return first.merged(second)
    if isinstance(first, Part) and isinstance(second, Part):
        return first.merged(second)
    if isinstance(first, Kept) and isinstance(second, Kept):
        return first.merged(second)
    if isinstance(first, Gone) and isinstance(second, Gone):
        return first.merged(second)
    return first
