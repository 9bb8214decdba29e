"""Whoever carries a device, as those know him whom he trusts: under a name of his own, which nodes never hear."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Any, Final

import msgspec

from nearcast.errors import InvalidInput
from nearcast.overlay.routing.context_host import Companion, ContextHost
from nearcast.overlay.routing.wire import event_in
from nearcast.overlay.temporal.messages import (
    MAILBOX,
    TO_DEVICES,
    TRUSTED_NODE,
    Delivered,
    Delivery,
    Identity,
    Kept,
    Poll,
    Taken,
    Unknown,
    Vid,
    WantIdentity,
    Whereabouts,
)
from nearcast.runtime.host import Host
from nearcast.runtime.messages import Codec, Message, encoded
from nearcast.runtime.ports import Address

_CODEC: Final[Codec[Any]] = Codec(*TO_DEVICES)
_REMEMBERED: Final = 10_000
"""Messages: one that came by two ways, perhaps with days between, is recognised."""


class Entity(Companion):
    """The companion of a ``ContextHost``.

    ``changing``: every move brings another identity, so that nodes cannot follow him.  ``box``: the name of his mailbox, better one that
    nobody can guess.
    """

    def __init__(
        self,
        name: str,
        trusted_node: Address,
        mailbox: Address | None = None,
        *,
        box: str | None = None,
        changing: bool = True,
        refresh: float = 10.0,
    ) -> None:
        self.name: Final = name
        self._trusted: Final = trusted_node
        self._mailbox: Final = mailbox
        self._box: Final = box or hashlib.blake2b(name.encode(), digest_size=16).hexdigest()
        self._changing: Final = changing
        self._refresh: Final = refresh
        self._current: Final[dict[str, Vid]] = {}
        self._next: Final[dict[str, Vid]] = {}
        """By aspect: for the next move."""

        self._got: Final[OrderedDict[str, None]] = OrderedDict()
        self.malformed = 0
        self._device: ContextHost | None = None

    def start(self, host: Host, device: ContextHost) -> None:
        self._device = device
        host.timers.every(self._refresh, self._say_all, first=0.0)

    def identity(self, aspect: str) -> Vid | None:
        found = self._current.get(aspect)
        if found is None and self._device is not None:
            self._say(self._trusted, TRUSTED_NODE, WantIdentity(self.name, aspect))
        return found

    def moved(self) -> None:
        if self._changing:
            self._current.update(self._next)
            self._next.clear()
        self._say_all()

    def hear(self, sender: Address, body: bytes) -> None:
        try:
            message = _CODEC.decoded(body)
            match message:
                case Identity() if sender == self._trusted:
                    self._take_identity(message)
                case Unknown() if sender == self._trusted:
                    self._drop(message.identities)
                case Delivery() if sender == self._trusted:
                    self._take(message)
                    self._say(self._trusted, TRUSTED_NODE, Delivered(self.name, message.message.id))
                case Kept() if sender == self._mailbox:
                    self._take_all(message.deliveries)
                    names = tuple(delivery.message.id for delivery in message.deliveries)
                    self._say(sender, MAILBOX, Taken(self._box, names))
        except (msgspec.DecodeError, InvalidInput):
            self.malformed += 1

    def _take_identity(self, message: Identity) -> None:
        assert self._device is not None
        if message.aspect in self._current:
            self._next.setdefault(message.aspect, message.vid)
        else:
            self._current[message.aspect] = message.vid
            self._device.renew(message.aspect)

    def _drop(self, unknown: tuple[Vid, ...]) -> None:
        """What was registered under these is registered anew when there are others."""
        for known in (self._current, self._next):
            for aspect in [aspect for aspect, vid in known.items() if vid in unknown]:
                del known[aspect]
        self._want()

    def _take_all(self, deliveries: tuple[Delivery, ...]) -> None:
        for delivery in deliveries:
            try:
                self._take(delivery)
            except InvalidInput:  # it would be the same next time: the box is rid of it, and what lies behind it comes
                self.malformed += 1

    def _take(self, delivery: Delivery) -> None:
        assert self._device is not None
        event = event_in(delivery.message)
        if event.id not in self._got:
            self._got[event.id] = None
            if len(self._got) > _REMEMBERED:
                self._got.popitem(last=False)
            self._device.receive(event, delivery.aspects)

    def _say_all(self) -> None:
        """Whatever was lost is said again."""
        identities = (*self._current.values(), *self._next.values())
        self._say(self._trusted, TRUSTED_NODE, Whereabouts(self.name, self._mailbox, self._box, identities))
        self._want()
        if self._mailbox is not None:
            self._say(self._mailbox, MAILBOX, Poll(self._box))

    def _want(self) -> None:
        assert self._device is not None
        for aspect in self._device.aspects:
            if aspect not in self._current or (self._changing and aspect not in self._next):
                self._say(self._trusted, TRUSTED_NODE, WantIdentity(self.name, aspect))

    def _say(self, to: Address, service: str, message: Message) -> None:
        assert self._device is not None
        self._device.relay(to, service, encoded(message))
