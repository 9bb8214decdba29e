"""Messages for everybody: whoever hears one for the first time sends it on, once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from nearcast.runtime.host import Host
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Cancellable, Sending
from nearcast.runtime.recent import Recent


class Flooding:
    def __init__(self, host: Host, hesitation: float, broadcast: Callable[[Message], Sending]) -> None:
        self._host: Final = host
        self._hesitation: Final = hesitation
        self._broadcast: Final = broadcast
        self._recent: Final = Recent()
        self._random: Final = host.random("crowd flooding").random
        self._waiting: Final[dict[int, Cancellable]] = {}
        self._numbers = 0
        self.begun = 0
        self.relayed = 0

    def begin(self, name: str, message: Message, within: float = 0.0) -> None:
        """From here; ``within`` so many seconds."""
        self._recent.add(name, self._host.now())
        self.begun += 1
        if within:
            self._later(message, within)
        else:
            self._broadcast(message)

    def heard(self, name: str, message: Message, *, onwards: bool = True) -> bool:
        """Whether it is new; then it is sent on, unless it need not go ``onwards``.

        Those who have heard the same frame wait for different times: else they would collide, every time (RFC 5148).
        """
        if not self._recent.add(name, self._host.now()):
            return False
        if onwards:
            self.relayed += 1
            self._later(message, self._hesitation)
        return True

    def stop(self) -> None:
        for timer in self._waiting.values():
            timer.cancel()
        self._waiting.clear()

    def _later(self, message: Message, most: float) -> None:
        self._numbers += 1
        send = partial(self._send, self._numbers, message)
        self._waiting[self._numbers] = self._host.timers.after(self._random() * most, send)

    def _send(self, number: int, message: Message) -> None:
        del self._waiting[number]
        self._broadcast(message)
