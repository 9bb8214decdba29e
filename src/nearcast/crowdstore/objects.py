"""What a crowd keeps: objects that somebody published, and subscriptions to them (THYME 2.1, 2.3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from hashlib import blake2b
from typing import Annotated, Final

import msgspec

from nearcast.crowdstore.formula import Formula
from nearcast.model.time import EVER, Instant, TimeFrame

DIGEST: Final = 16
"""Bytes."""

LARGEST: Final = 2**30
"""Bytes of an object at most: whoever downloads one makes room for it, on a stranger's word."""


WITHDRAWN: Final = "crowd:withdrawn"
"""The tag of notices that something was withdrawn; only who asks for it by name is told of them."""


def digest_of(content: bytes) -> bytes:
    return blake2b(content, digest_size=DIGEST).digest()


class ObjectKey(msgspec.Struct, frozen=True, array_like=True, order=True):
    """Two owners may use the same name."""

    owner: str
    name: str

    def __str__(self) -> str:
        return f"{self.owner}/{self.name}"


class Proof(msgspec.Struct, frozen=True, array_like=True):
    """That the owner said something: a public key, and its signature (``access``)."""

    key: bytes
    signature: bytes


class Sealing(IntEnum):
    """What only the readers that the owner chose can read; tags never are, because hosts match them."""

    NOTHING = 0
    CONTENT = 1
    ALL = 2
    """The summary as well."""


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

    sealing: Sealing = Sealing.NOTHING
    proof: Proof | None = None
    """Of all that is above; under a name that proves itself there must be one (``access.genuine``)."""


class Withdrawal(msgspec.Struct, frozen=True, array_like=True):
    """The owner of an object takes it back."""

    key: ObjectKey
    published: Instant
    """When the object was, so that it can stand for no other one of that name."""

    proof: Proof | None = None


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
        if WITHDRAWN in metadata.tags and not any(WITHDRAWN in each.present for each in self.formula.conjunctions):
            return False
        return self.frame.contains(metadata.published) and self.formula.accepts(metadata.tags)
