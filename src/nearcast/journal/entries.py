"""What the journal records: one frozen struct for each kind of thing that happens.

On disk a record is a msgpack array: the number of its kind, then its fields in their order.  So fields are only ever
added at the end, with a default, and the number of a kind is never given to another one.  ``who``, ``publisher`` and
``receivers`` are virtual identities (``identities``), never client ids.  Where a record was erased stands a nil: offsets of
others do not change, and readers pass over it as over any other gap.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from nearcast.model.time import Instant


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Base of all records.  They hold no cycles, so the garbage collector need not look at them."""


class EventEntry(Entry, frozen=True, array_like=True, tag=1, gc=False):
    """A published event, whom it goes to, and all that is needed to deliver it again."""

    id: str
    topic: str
    published: Instant
    payload: bytes = b""
    publisher: str | None = None
    qos: int = 0
    receivers: tuple[str, ...] = ()
    lat: float | None = None
    lon: float | None = None
    reach: str | None = None
    """Area text of the wire contract."""
    to: str | None = None
    """Addressing: CQL2 over the receiver's context."""
    when: str | None = None
    """CQL2 of the temporal predicate."""
    lifetime: int | None = None
    """Microseconds after ``published``."""
    attributes: tuple[tuple[str, str], ...] = ()
    """As they came on the wire."""
    tags: tuple[str, ...] = ()
    content_type: str | None = None
    response_topic: str | None = None
    correlation_data: bytes | None = None
    payload_format: int | None = None
    user_properties: tuple[tuple[str, str], ...] = ()
    """All that came with it, in their order: they are forwarded as they are."""
    owed: tuple[tuple[str, int, bool, tuple[int, ...]], ...] = ()
    """Of the receivers, those whose sessions outlive a restart: identity, quality of service, whether the delivery says more than
    plain MQTT does, subscription identifiers."""

    key: str | None = None
    """Under which brokers of a federation recognise it: ids are a publisher's own, and two may count alike."""


class ReportEntry(Entry, frozen=True, array_like=True, tag=2, gc=False):
    """A position report that was accepted; without a place: the position is no longer known."""

    at: Instant
    who: str
    lat: float | None = None
    lon: float | None = None


class ContextEntry(Entry, frozen=True, array_like=True, tag=3, gc=False):
    """A context was registered with these attributes (as ``value_text.attributes_tree`` reads them), or deregistered (none)."""

    at: Instant
    who: str
    name: str
    attributes: bytes | None = None


class SubscriptionEntry(Entry, frozen=True, array_like=True, tag=4, gc=False):
    at: Instant
    who: str
    id: str
    what: Literal["subscribed", "unsubscribed"]
    filter: str
    area: str | None = None
    """Area text of the wire contract."""
    where: str | None = None
    """CQL2 over the event."""
    since: Instant | None = None
    until: Instant | None = None
    no_local: bool = False


class UnpublishEntry(Entry, frozen=True, array_like=True, tag=5, gc=False):
    at: Instant
    event: str
    offset: int | None = None
    """Where the event is; ids are given by publishers, and two may give the same."""


class ClientEntry(Entry, frozen=True, array_like=True, tag=6, gc=False):
    """It came or went, or said whether it takes what is addressed to it without a subscription."""

    at: Instant
    who: str
    what: Literal["joined", "left", "failed", "returned", "accepting", "declining"]


class TransitionEntry(Entry, frozen=True, array_like=True, tag=7, gc=False):
    """A mechanism was exchanged (``records.adaptation``)."""

    at: Instant
    host: str
    proxy: str
    source: str | None = None
    target: str | None = None
    lat: float | None = None
    lon: float | None = None
    plan: str | None = None


class DeliveryEntry(Entry, frozen=True, array_like=True, tag=8, gc=False):
    """An event went to further receivers after its publication: those who were, or came, into its context."""

    at: Instant
    of: int
    """The offset of the event."""
    event: EventEntry
    """The event again, with these receivers, and who of them is owed it: what is owed outlives the event's own record."""


class LateReportEntry(Entry, frozen=True, array_like=True, tag=9, gc=False):
    """A position report that came after a newer one of the same client: it did not move it."""

    at: Instant
    who: str
    lat: float
    lon: float
    fixed: Instant
    """When the client was there, as it said."""
    accuracy: float | None = None


Record: TypeAlias = (
    EventEntry
    | ReportEntry
    | ContextEntry
    | SubscriptionEntry
    | UnpublishEntry
    | ClientEntry
    | TransitionEntry
    | DeliveryEntry
    | LateReportEntry
)

BITS: Final[dict[type, int]] = {kind: 1 << int(str(kind.__struct_config__.tag)) for kind in get_args(Record)}
"""Of each kind, its bit in the mask of a stretch."""

NAMES: Final[dict[type, str]] = {kind: kind.__name__.removesuffix("Entry").lower() for kind in get_args(Record)}
"""``event``, ``report``, ...: as kinds are called outside."""


def time_of(record: Record) -> Instant:
    return record.published if type(record) is EventEntry else record.at  # type: ignore[union-attr]


def key_of(publisher: str | None, event: str) -> str:
    """By which brokers of a federation know an event of that client: the same wherever the publisher says it."""
    text = f"{publisher or ''}\0{event}".encode()
    return hashlib.blake2b(text, digest_size=16).hexdigest()


def mask_of(kinds: Iterable[type[Record]] | None) -> int:
    """The bits of these kinds; none: of all."""
    return sum({BITS[kind] for kind in (BITS if kinds is None else kinds)})


encoder: Final = msgspec.msgpack.Encoder()
decode_records: Final = msgspec.msgpack.Decoder(list[Record | None]).decode
"""None: it was erased."""
