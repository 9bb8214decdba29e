"""HTTP connections that may cost so much and no more: how many there are, how long a request and its answer take, how large all is that is no body.

The library behind it (uvicorn) waits for the rest of a request, and for whoever does not read its answer, as long as they like, keeps any number of
headers and trailers, and of the requests that were sent without waiting for an answer as many as have come.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from nearcast.broker.http.description import PROBLEM
from nearcast.errors import QuotaExceeded
from nearcast.model.time import MICROSECONDS

if TYPE_CHECKING:
    from nearcast.broker.core import Broker

log: Final = logging.getLogger(__name__)
LARGEST_HEAD: Final = 64 * 1024
"""Bytes of a request line and its headers, or of whatever else is no body and comes in a row: trailers, extensions of chunks."""

MOST_FIELDS: Final = 200
"""Headers of a request; small ones take much more room than their bytes."""

PIECE: Final = 1024
"""Bytes that are read at a time: so many may hold requests that wait for the answer to the one before."""

PIECE_OF_BODY: Final = 8 * 1024
"""The same in the middle of a body, behind whose end requests may stand: megabytes by single kilobytes would cost more than they should."""

LINGER: Final = 5.0
"""Seconds for the rest of a request that is answered already."""


def guarded_http(broker: Broker) -> type[asyncio.Protocol]:
    """The protocol of connections of that broker."""
    settings = broker.settings
    head_time = settings.session.connect_timeout / MICROSECONDS
    body_time = settings.limits.request_time / MICROSECONDS
    answer_time = settings.session.slow_consumer / MICROSECONDS

    most_unwanted = int(settings.limits.packet)

    class Guarded(HttpToolsProtocol):
        _address: str | None = None
        """Of a connection that was let in, and is to be counted out."""

        _deadline: asyncio.TimerHandle | None = None
        _stuck: asyncio.TimerHandle | None = None
        _in_head = True
        _aside = 0
        """Bytes that are no body, since the last ones that were, or since the head or request before ended."""

        _unwanted = 0
        """Bytes of a body that came after its answer."""

        _handed_on = False
        """To the protocol of WebSockets."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._unread = bytearray()
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
            self._unread += data
            self._go_on()

        def on_header(self, name: bytes, value: bytes) -> None:
            if self._in_head:  # trailers are no headers: who asks is known before they come
                super().on_header(name, value)

        def on_headers_complete(self) -> None:
            self._in_head, self._aside, self._unwanted = False, 0, 0
            self._wait(body_time)
            super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            self._aside = 0
            if self.cycle is not None and self.cycle.response_complete:
                self._unwanted += len(body)
                if self._unwanted > most_unwanted:
                    self.transport.abort()
            super().on_body(body)

        def on_message_complete(self) -> None:
            self._in_head, self._aside = True, 0
            self._rest()
            super().on_message_complete()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if not self._in_head and self.cycle.response_complete:
                self._wait(min(LINGER, body_time))
            self._go_on()

        def _go_on(self) -> None:
            """Read of what has come what it is time for: a request waits for the answer to the one before, and whoever sends more with it."""
            while self._unread and not self._handed_on and not self.transport.is_closing():
                if self._is_answering():
                    self._rest()
                    # Else the library would end this pause when the application asks for a body.
                    self.flow.read_paused = False
                    self.transport.pause_reading()
                    return
                size = PIECE if self._in_head else PIECE_OF_BODY
                piece = bytes(self._unread[:size])
                del self._unread[:size]
                self._read(piece)
            if not (self.flow.read_paused or self._handed_on or self.transport.is_closing()):
                self.transport.resume_reading()

        def _is_answering(self) -> bool:
            """Whether all requests that have come as a whole, or are waiting, are to be answered before more is read."""
            return bool(self.pipeline) or (
                self._in_head and self.cycle is not None and not self.cycle.response_complete
            )

        def _read(self, piece: bytes) -> None:
            if self._deadline is None:
                self._wait(head_time if self._in_head else body_time)
            self._aside += len(piece)
            super().data_received(piece)
            if self.transport.is_closing():
                return
            if self._aside > LARGEST_HEAD or (self._in_head and len(self.headers or ()) > MOST_FIELDS):
                self._refuse()

        def _refuse(self) -> None:
            if self._in_head and not self._is_answering():
                self.send_400_response("The head of the request is too large.")
            else:  # in the middle of something, or after its answer
                self.transport.abort()

        def send_400_response(self, msg: str) -> None:
            """What cannot be read as a request, or is too large for one: a problem document, as of all that is refused."""
            problem = {"type": "about:blank", "title": "Bad Request", "status": 400, "detail": msg}
            body = msgspec.json.encode(problem)
            head = f"content-type: {PROBLEM}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
            self.transport.write(b"HTTP/1.1 400 Bad Request\r\n" + head.encode() + body)
            self.transport.close()

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
            self._handed_on = True
            self._unread.clear()  # frames before they were agreed upon
            super().handle_websocket_upgrade()

        def connection_lost(self, exc: Exception | None) -> None:
            self._rest()
            self._unread.clear()
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
