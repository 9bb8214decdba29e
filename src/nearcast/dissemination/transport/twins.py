"""Messages that were sent over two transports at once, and come twice."""

from __future__ import annotations

from collections import Counter
from typing import Final

from nearcast.runtime.messages import Message, encoded
from nearcast.runtime.ports import Address


class Twins:
    """Of each message as often as one transport brought it, the other's copy is its twin, whichever comes first.

    So a message that somebody really says twice is heard twice.
    """

    def __init__(self) -> None:
        self._ahead: Final[dict[tuple[Address, bytes], Counter[str]]] = {}

    def second(self, interface: str, sender: Address, message: Message) -> bool:
        """Whether another interface has brought this one already."""
        name = sender, encoded(message)
        ahead = self._ahead.setdefault(name, Counter())
        for other in ahead:
            if other != interface:
                ahead[other] -= 1
                if not ahead[other]:
                    del ahead[other]
                return True
        ahead[interface] += 1
        return False

    def clear(self) -> None:
        self._ahead.clear()
