"""A link whose messages somebody else carries: they are handed over as bytes, and handed back at the other end.

So mechanisms that know endpoints and addresses work on a connection that is used for much else: MQTT, where one topic is theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from nearcast.errors import InvalidProperty
from nearcast.runtime.links import RECEIVED, SENT, OpenPort, PortedLink
from nearcast.runtime.messages import Message, encoded, kind_of
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Address, Sending

Carry = Callable[[Address, bytes], bool]
"""Take these bytes to the other end; false if it cannot be reached now.  It never hands anything back before it returns."""


class HandedLink(PortedLink):
    """One end."""

    def __init__(self, interface: str, host: str, observers: Observers, carry: Carry) -> None:
        super().__init__(interface, host, observers, local=False)
        self.address = host
        self._carry: Final = carry
        self.switch(on=True)

    def post(self, to: Address | None, port: int, message: Message) -> Sending:
        assert to is not None  # endpoints of a link that is not local have no broadcast
        data = bytes((port,)) + encoded(message)
        if not self._carry(to, data):
            return Sending.DROPPED
        self.count(SENT, kind_of(message), len(data))
        return Sending.ACCEPTED

    def read(self, data: bytes) -> tuple[OpenPort, Any]:
        """The message in these bytes, and the port that it is for; ``InvalidProperty`` if there is none."""
        endpoint = self.open_ports.get(data[0]) if data else None
        if endpoint is None:
            raise InvalidProperty("a message of the filter schemes begins with the number of an open port: 1, 2 or 3")
        try:
            message = endpoint.codec.decoded(memoryview(data)[1:])
        except msgspec.DecodeError as error:
            raise InvalidProperty(f"this is no message of the filter schemes: {error}") from None
        self.count(RECEIVED, kind_of(message), len(data))
        return endpoint, message
