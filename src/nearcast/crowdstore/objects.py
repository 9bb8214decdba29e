"""What a crowd keeps: objects that somebody published, and subscriptions to them (THYME 2.1, 2.3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Annotated, Final

import msgspec

from nearcast.crowdstore.formula import Formula
from nearcast.model.time import EVER, Instant, TimeFrame

DIGEST: Final = 16
"""Bytes."""

LARGEST: Final = 2**30
"""Bytes of an object at most: whoever downloads one makes room for it, on a stranger's word."""


def digest_of(content: bytes) -> bytes:
    return blake2b(content, digest_size=DIGEST).digest()


class ObjectKey(msgspec.Struct, frozen=True, array_like=True, order=True):
    """Two owners may use the same name."""

    owner: str
    name: str

    def __str__(self) -> str:
        return f"{self.owner}/{self.name}"


class Metadata(msgspec.Struct, frozen=True, array_like=True):
    """All that subscribers are told; an application then decides whether to download the object."""

    key: ObjectKey
    tags: tuple[str, ...]
    """Sorted, each once."""

    published: Instant
    size: Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
    """Bytes of the object."""

    digest: bytes
    """Of its content: whoever downloads it from anybody can tell whether it is what the owner published."""

    summary: bytes = b""
    """Such as a thumbnail."""


@dataclass(frozen=True, slots=True)
class Publication:
    """An object and what is told of it; objects never change."""

    metadata: Metadata
    content: bytes

    @property
    def key(self) -> ObjectKey:
        return self.metadata.key


class SubscriptionKey(msgspec.Struct, frozen=True, array_like=True, order=True):
    owner: str
    name: str

    def __str__(self) -> str:
        return f"{self.owner}/{self.name}"


@dataclass(frozen=True, slots=True)
class CrowdSubscription:
    """Objects whose tags satisfy the formula and that are published within the frame, be it past, present or future.

    The frame is half-open, as everywhere in this house, where the paper's includes its end.
    """

    key: SubscriptionKey
    formula: Formula
    frame: TimeFrame = field(default=EVER)

    def accepts(self, metadata: Metadata) -> bool:
        return self.frame.contains(metadata.published) and self.formula.accepts(metadata.tags)
