"""Messages that arrive although wires lose some: sent again until the receiver has confirmed them, taken once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from nearcast.overlay.temporal.messages import Confirmed, Receipt
from nearcast.overlay.temporal.settings import TemporalSettings
from nearcast.runtime.host import Host
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, Cancellable
from nearcast.runtime.recent import Recent

Failed = Callable[[], None]
M = TypeVar("M", bound=Confirmed)


@dataclass(slots=True)
class _Unconfirmed:
    to: Address
    message: Confirmed
    left: int
    failed: Failed | None
    timer: Cancellable


class Confirming:
    """One for each endpoint."""

    def __init__(self, host: Host, settings: TemporalSettings, send: Callable[[Address, Message], object]) -> None:
        self._host: Final = host
        self._settings: Final = settings
        self._send: Final = send
        self._number = host.now()  # above those of an earlier life
        self._waiting: Final[dict[int, _Unconfirmed]] = {}
        self._seen: Final = Recent()
        self.resent = 0
        self.failed = 0

    def tell(self, to: Address, message: Confirmed, failed: Failed | None = None) -> None:
        """``failed`` is called if nobody there has confirmed it in time."""
        self._number += 1
        number = self._number
        message = numbered(message, number)
        timer = self._host.timers.after(self._settings.resend, lambda: self._again(number))
        self._waiting[number] = _Unconfirmed(to, message, self._settings.tries - 1, failed, timer)
        self._send(to, message)

    def confirmed(self, receipt: Receipt) -> None:
        waiting = self._waiting.pop(receipt.number, None)
        if waiting is not None:
            waiting.timer.cancel()

    def take(self, sender: Address, message: Confirmed) -> bool:
        """Confirm it; whether it comes for the first time."""
        self._send(sender, Receipt(message.number))
        return self._seen.add(f"{sender}/{message.number}", self._host.now())

    def _again(self, number: int) -> None:
        waiting = self._waiting[number]
        if not waiting.left:
            del self._waiting[number]
            self.failed += 1
            if waiting.failed is not None:
                waiting.failed()
            return
        waiting.left -= 1
        self.resent += 1
        waiting.timer = self._host.timers.after(self._settings.resend, lambda: self._again(number))
        self._send(waiting.to, waiting.message)


def numbered(message: M, number: int) -> M:
    return msgspec.structs.replace(message, number=number)
