"""What brokers of a federation say to each other, beside what their overlay says (``overlay``)."""

from __future__ import annotations

from typing import Final

import msgspec

from nearcast.journal import EventEntry
from nearcast.runtime.messages import Message

PORT: Final = 23

EVENT: Final = "event"
SECOND_LOOK: Final = "second look"
"""An event that waits for a broker out of reach: some of its clients have come to the receiver meanwhile."""

RELAY: Final = "relay"
UNPUBLISH: Final = "unpublish"


class Parcel(Message, frozen=True, tag="parcel"):
    """Something for the brokers named, which lie behind the receiver, or are it."""

    key: str
    to: tuple[str, ...]
    kind: str
    body: bytes
    number: int | None
    """Of this sending: the sender keeps the parcel until the receiver says of it that it has stored it.  None: nobody keeps it."""

    since: int | None = None
    """When the first broker took it: from hand to hand it does not become younger."""


class Stored(Message, frozen=True, tag="stored"):
    """The parcel of that sending is on the disk of who says so."""

    key: str
    number: int


class Replica(Message, frozen=True, tag="replica"):
    """Keep this as well: an event that its owner has, and the brokers that it is for."""

    key: str
    """The owner's name and the event's key."""

    owner: str
    brokers: tuple[str, ...]
    body: bytes


class Replicated(Message, frozen=True, tag="replicated"):
    """It is on the disk of who says so."""

    key: str


class Holding(Message, frozen=True, tag="holding"):
    """Replicas that somebody keeps, to their owner: are they still needed?"""

    keys: tuple[str, ...]


class Released(Message, frozen=True, tag="released"):
    """These are not."""

    keys: tuple[str, ...]


class Notice(msgspec.Struct, frozen=True, array_like=True):
    """One entry of what all brokers know: of each key the newest counts."""

    key: str
    version: int
    author: str
    value: bytes


class Notices(Message, frozen=True, tag="notices"):
    notices: tuple[Notice, ...]


class Summary(Message, frozen=True, tag="notices known"):
    """A digest of all notices that somebody knows."""

    digest: int


class Claim(Message, frozen=True, tag="claim"):
    """A client has come here that was there: let me have its session."""

    number: int
    client: str
    user: str | None
    asker: str = ""
    """Whom to answer, if that is not the sender: who was asked has passed it on, since the client was elsewhere by then."""


class SessionState(msgspec.Struct, frozen=True, array_like=True):
    """A session on its way to another broker; rows are those of the journal."""

    row: bytes
    subscriptions: tuple[bytes, ...]
    presence: bytes | None


class Granted(Message, frozen=True, tag="granted"):
    """The session, if there is one; or why not."""

    number: int
    client: str
    session: SessionState | None
    problem: str
    had: tuple[str, ...]
    """Keys of the newest events that it got there: they may be on their way here, too."""


class EventBody(msgspec.Struct, frozen=True, array_like=True):
    """An event on its way."""

    entry: EventEntry
    retain: bool
    channel: str | None


class RelayBody(msgspec.Struct, frozen=True, array_like=True):
    """A copy for one client, which has gone to another broker since."""

    client: str
    event: str
    """The key under which the event is recognised."""

    entry: EventEntry
    qos: int
    near: bool
    retain: bool
    identifiers: tuple[int, ...]


class UnpublishBody(msgspec.Struct, frozen=True, array_like=True):
    """An event was taken back."""

    key: str
    event: str


KINDS: Final = (Parcel, Stored, Notices, Summary, Claim, Granted, Replica, Replicated, Holding, Released)
encode: Final = msgspec.msgpack.Encoder().encode
event_body: Final = msgspec.msgpack.Decoder(EventBody).decode
unpublish_body: Final = msgspec.msgpack.Decoder(UnpublishBody).decode
relay_body: Final = msgspec.msgpack.Decoder(RelayBody).decode
