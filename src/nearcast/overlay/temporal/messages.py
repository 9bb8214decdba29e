"""What routers, trusted nodes, mailboxes and devices say to each other of messages that speak of other times.

Nodes say *when* something held, under which virtual identity, and never what.  Who that was, trusted nodes alone know; what they and
devices say to each other passes through nodes as bytes that these do not read.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from nearcast.model.time import Instant
from nearcast.overlay.routing.wire import Routed
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address

PORT: Final = 23
"""Between routers: questions, answers, resolutions."""

Vid = str
"""Virtual identity: a growing number, ``@``, the trusted node that issued it."""

Depth = int
"""Up to which branching point, counted from the sender, answers are collected: 1 is the document's FCH, n its PCHn."""

FULLY: Final[Depth] = 1
TO_DEVICE: Final = "device"
TRUSTED_NODE: Final = "trusted node"
MAILBOX: Final = "mailbox"
"""Services that ``Carried`` is for."""

NOT_AT_ALL: Final[Depth] = 1 << 30
"""More branching points than there are: SH, every node resolves by itself."""


class Span(msgspec.Struct, frozen=True, array_like=True):
    """During ``[start, end)`` a conjunct of a message, by its number, and its reach held of a context; without an end, they still do."""

    vid: Vid
    conjunct: int
    start: Instant
    end: Instant | None


class Confirmed(Message, frozen=True, kw_only=True):
    """Is sent again until the receiver has confirmed it (``confirming``)."""

    number: int = 0
    """Of its sender; given when it is sent."""


class Receipt(Message, frozen=True, tag="receipt"):
    number: int


class Question(Confirmed, frozen=True, kw_only=True, tag="question"):
    """Since when and until when was somebody there whom the message is for?"""

    message: Routed
    points: tuple[Address, ...] = ()
    """Branching points on its way, the first first; the last one waits for the answer, if answers are collected there."""

    branch: Address | None = None
    """The neighbour to which the last branching point sent it."""

    depth: Depth
    patience: int
    """Microseconds for which the answer is waited for."""

    attempt: int = 0
    """Who could not pass it on asks once more, after the tree has changed."""


class Answer(Confirmed, frozen=True, kw_only=True, tag="answer"):
    """All that was found behind one branch."""

    message: str
    attempt: int
    branch: Address
    spans: tuple[Span, ...]
    whole: bool
    """Everybody there has answered."""

    last: bool = True
    """Nothing more is to be waited for; else it is what came too late for the answer that was given."""


Key = tuple[str, str]
"""Of the index: an attribute, and one of the buckets among which its values are spread."""


class Indexed(Confirmed, frozen=True, kw_only=True, tag="indexed"):
    """Pieces of contexts for one key: identity, start, end, attributes.  One without length is none any more."""

    key: Key
    version: int
    """Of the node that tells it: what is older than what is known of a piece changes nothing."""

    pieces: tuple[tuple[Vid, Instant, Instant | None, dict[str, Any]], ...]


class IndexQuestion(Confirmed, frozen=True, kw_only=True, tag="index question"):
    """To the router that keeps these keys: when was which conjunct met?"""

    message: Routed
    keys: tuple[tuple[int, Key], ...]


class IndexAnswer(Confirmed, frozen=True, kw_only=True, tag="index answer"):
    message: str
    spans: tuple[Span, ...]


class Resolution(Confirmed, frozen=True, kw_only=True, tag="resolution"):
    """To the trusted nodes of these identities, along the tree (Xcast): each hop gets the share that lies behind it."""

    message: Routed
    spans: tuple[Span, ...]
    whole: bool
    """There are no other answers to this message."""


# Devices and those whom they trust


class Carried(Message, frozen=True, tag="carried"):
    """Between the node of an access network and a trusted node or mailbox: what is from or for this device."""

    service: str
    device: Address
    body: bytes


class WantIdentity(Message, frozen=True, tag="want identity"):
    """For one aspect of an entity: a context that is registered under a name, again and again."""

    entity: str
    aspect: str


class Identity(Message, frozen=True, tag="identity"):
    aspect: str
    vid: Vid


class Whereabouts(Message, frozen=True, tag="whereabouts"):
    """The entity is where this comes from; ``mailbox`` and ``box`` say where messages wait while it is nowhere."""

    entity: str
    mailbox: Address | None
    box: str
    identities: tuple[Vid, ...] = ()
    """Those it has."""


class Unknown(Message, frozen=True, tag="unknown identities"):
    """Nobody could resolve these any more: the trusted node has lost what it knew."""

    identities: tuple[Vid, ...]


class Delivery(Message, frozen=True, tag="delivery"):
    """A message, and the aspects of the entity that it is for."""

    message: Routed
    aspects: tuple[str, ...]


class Delivered(Message, frozen=True, tag="delivered"):
    entity: str
    message: str


class Deposit(Confirmed, frozen=True, kw_only=True, tag="deposit"):
    box: str
    delivery: Delivery


class Poll(Message, frozen=True, tag="poll"):
    box: str


class Kept(Message, frozen=True, tag="kept"):
    deliveries: tuple[Delivery, ...]


class Taken(Message, frozen=True, tag="taken"):
    """These messages need not be kept any longer."""

    box: str
    messages: tuple[str, ...]


BETWEEN_ROUTERS: Final = (
    Question, Answer, Resolution, Indexed, IndexQuestion, IndexAnswer, Receipt, Carried, Deposit
)  # fmt: skip
FROM_DEVICES: Final = (WantIdentity, Whereabouts, Delivered, Poll, Taken)
TO_DEVICES: Final = (Identity, Unknown, Delivery, Kept)


def trusted_node_of(vid: Vid) -> Address:
    return vid.partition("@")[2]


# Messages that wait


KEEP_PORT: Final = 24
"""Between routers: messages that wait."""


class Keep(Confirmed, frozen=True, kw_only=True, tag="keep"):
    """Somebody whom the message may be for is behind you, or here is no room for it: keep it, and watch those behind you."""

    message: Routed


class Bring(Confirmed, frozen=True, kw_only=True, tag="bring"):
    """The payload of a message that was given away is wanted again."""

    message: str


WAITING: Final = (Keep, Bring, Receipt)
