"""HTTP connections that may cost so much and no more: how many there are, how long a request and its answer take, how large a head is.

The library behind it (uvicorn) waits for the rest of a request, and for whoever does not read its answer, as long as they like, and keeps any number of headers.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from nearcast.errors import QuotaExceeded
from nearcast.model.time import MICROSECONDS

if TYPE_CHECKING:
    from nearcast.broker.core import Broker

log: Final = logging.getLogger(__name__)
LARGEST_HEAD: Final = 64 * 1024
"""Bytes of a request line and its headers."""


def guarded_http(broker: Broker) -> type[asyncio.Protocol]:
    """The protocol of connections of that broker."""
    settings = broker.settings
    head_time = settings.session.connect_timeout / MICROSECONDS
    body_time = settings.limits.request_time / MICROSECONDS
    answer_time = settings.session.slow_consumer / MICROSECONDS

    class Guarded(HttpToolsProtocol):
        _address: str | None = None
        """Of a connection that was let in, and is to be counted out."""

        _deadline: asyncio.TimerHandle | None = None
        _stuck: asyncio.TimerHandle | None = None
        _head = 0
        _in_head = True

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            address = address_of(transport)
            try:
                broker.services.admission.opened(address, broker.clock.now())
            except QuotaExceeded as error:
                log.debug("refused an HTTP connection from %s: %s", address, error)
                transport.abort()
                return
            self._address = address
            self._wait(head_time)

        def data_received(self, data: bytes) -> None:
            if self._in_head:
                if self._deadline is None:
                    self._wait(head_time)
                self._head += len(data)
            if self.transport.is_closing():
                return
            super().data_received(data)
            # What is beyond the head counts as well if it came with it: this is a bound, not a measure.
            if self._in_head and self._head > LARGEST_HEAD and not self.transport.is_closing():
                self.send_400_response("The head of the request is too large.")

        def on_headers_complete(self) -> None:
            self._in_head, self._head = False, 0
            self._wait(body_time)
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            self._in_head = True
            self._rest()
            super().on_message_complete()

        def pause_writing(self) -> None:
            super().pause_writing()
            if self._stuck is None:
                self._stuck = self.loop.call_later(answer_time, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            if self._stuck is not None:
                self._stuck.cancel()
                self._stuck = None

        def handle_websocket_upgrade(self) -> None:
            self._rest()
            super().handle_websocket_upgrade()

        def connection_lost(self, exc: Exception | None) -> None:
            self._rest()
            if self._stuck is not None:
                self._stuck.cancel()
            if self._address is not None:
                broker.services.admission.closed(self._address)
            super().connection_lost(exc)

        def _wait(self, seconds: float) -> None:
            self._rest()
            self._deadline = self.loop.call_later(seconds, self._too_slow)

        def _rest(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

        def _too_slow(self) -> None:
            self._deadline = None
            self.transport.abort()

    return Guarded


def guarded_websocket(broker: Broker, kind: type[Any]) -> type[asyncio.Protocol]:
    """The protocol to which such a connection is handed on: it is counted out when that ends."""

    class Guarded(kind):  # type: ignore[misc]  # whichever the library chose
        def connection_lost(self, exc: Exception | None) -> None:
            broker.services.admission.closed(address_of(self.transport))
            super().connection_lost(exc)

    return Guarded


def address_of(transport: Any) -> str:
    name = transport.get_extra_info("peername")
    return str(name[0]) if isinstance(name, (tuple, list)) and name else ""
