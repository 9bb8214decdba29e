"""Entries of a cell as tests need them."""

from __future__ import annotations

from collections.abc import Iterable

from nearcast.crowdstore.data_centric.entries import EVERYTHING, Gone, Indexed, Item, Kept, Part, Place
from nearcast.crowdstore.objects import Metadata, ObjectKey, SubscriptionKey, digest_of
from nearcast.model.time import MICROSECONDS, Instant

NOW: Instant = 1_000_000 * MICROSECONDS


def metadata(owner: str, name: str, tags: Iterable[str], published: Instant = 0, content: bytes = b"c") -> Metadata:
    return Metadata(ObjectKey(owner, name), tuple(sorted(tags)), published, len(content), digest_of(content))


def indexed(
    owner: str,
    name: str,
    tags: Iterable[str],
    here: Iterable[str],
    published: Instant = 0,
    places: Iterable[Place] = (),
) -> Indexed:
    item = Item(metadata(owner, name, tags, published), 0, 0).with_replicas(places)
    return Indexed(item, tuple(sorted(here)))


def kept(owner: str, name: str, tags: Iterable[str], published: Instant = 0) -> Kept:
    return Kept(metadata(owner, name, tags, published))


def part(owner: str, name: str, number: int, tag: str, version: Instant = 0, until: Instant | None = None) -> Part:
    present = () if tag == EVERYTHING else (tag,)
    return Part(SubscriptionKey(owner, name), number, owner, tag, present, (), None, until, 0, 0, version)


def gone(owner: str, name: str, subscription: bool, at: Instant, published: Instant = 0) -> Gone:
    return Gone(subscription, owner, name, at, published)
