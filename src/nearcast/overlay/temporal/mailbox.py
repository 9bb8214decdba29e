"""Where messages wait for those who are away.  Boxes have names that their owners chose; whose they are is not known here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from nearcast.model.time import MICROSECONDS, Instant
from nearcast.overlay.temporal.messages import MAILBOX, Delivery, Deposit, Kept, Poll, Taken
from nearcast.overlay.temporal.settings import TemporalSettings
from nearcast.overlay.temporal.temporal_router import TemporalRouter
from nearcast.runtime.host import Component, Host
from nearcast.runtime.messages import Codec, encoded
from nearcast.runtime.ports import Address

_CODEC: Final[Codec[Any]] = Codec(Poll, Taken)
_AT_ONCE: Final = 20
"""Messages in one answer, at most."""


@dataclass(frozen=True, slots=True)
class MailboxStatistics:
    boxes: int
    kept: int
    deposited: int
    taken: int
    malformed: int


class Mailbox(Component):
    """Beside a ``TemporalRouter``, after which it starts."""

    def __init__(self, settings: TemporalSettings | None = None) -> None:
        self._settings: Final = settings or TemporalSettings()
        self._boxes: Final[dict[str, dict[str, tuple[Instant, Delivery]]]] = {}
        self._deposited = self._taken = self._malformed = 0
        self._host: Host
        self._temporal: TemporalRouter

    def start(self, host: Host) -> None:
        self._host, self._temporal = host, host.component(TemporalRouter)
        self._temporal.deposit = self._deposit
        self._temporal.serve(MAILBOX, self._serve)
        host.timers.every(self._settings.kept / 30, self._forget)

    def statistics(self) -> MailboxStatistics:
        return MailboxStatistics(
            boxes=len(self._boxes),
            kept=sum(map(len, self._boxes.values())),
            deposited=self._deposited,
            taken=self._taken,
            malformed=self._malformed,
        )

    def _deposit(self, deposit: Deposit) -> None:
        box = self._boxes.setdefault(deposit.box, {})
        if deposit.delivery.message.id not in box:
            self._deposited += 1
            box[deposit.delivery.message.id] = self._host.now(), deposit.delivery

    def _serve(self, node: Address, device: Address, body: bytes) -> None:
        try:
            message = _CODEC.decoded(body)
        except msgspec.DecodeError:
            self._malformed += 1
            return
        box = self._boxes.get(message.box, {})
        if isinstance(message, Taken):
            for name in message.messages:
                self._taken += box.pop(name, None) is not None
            if not box:
                self._boxes.pop(message.box, None)
        elif box:
            some = [delivery for _, delivery in box.values()][:_AT_ONCE]
            self._temporal.say(node, device, encoded(Kept(tuple(some))))

    def _forget(self) -> None:
        before = self._host.now() - round(self._settings.kept * MICROSECONDS)
        for name, box in list(self._boxes.items()):
            for message in [message for message, (at, _) in box.items() if at <= before]:
                del box[message]
            if not box:
                del self._boxes[name]
