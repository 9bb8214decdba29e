"""MQTT over WebSocket (MQTT 5, chapter 6): the same bytes, in binary frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from nearcast.broker.connections.connection import Connection, Terms
from nearcast.broker.settings import is_loopback

_MQTT: Final = [Subprotocol("mqtt")]
_DATA: Final = frozenset({Opcode.BINARY, Opcode.CONT})


class WebSocketConnection(Connection):
    """A connection whose bytes are wrapped; the protocol itself does no input or output."""

    protocol = "websocket"
    __slots__ = ("_open", "_protocol")

    def __init__(self, terms: Terms, *, tls: bool = False) -> None:
        super().__init__(terms, tls=tls)
        self._protocol: Final = ServerProtocol(subprotocols=_MQTT, max_size=terms.largest_packet)
        self._open = False

    def understand(self, data: bytes) -> None:
        protocol = self._protocol
        protocol.receive_data(data)
        for event in protocol.events_received():
            if isinstance(event, Request):
                self._shake_hands(event)
            elif not isinstance(event, Frame):
                continue
            elif event.opcode is Opcode.TEXT:
                protocol.fail(1003, "MQTT comes in binary frames")
            elif event.opcode in _DATA:
                self._pass_on()
                super().understand(bytes(event.data))
        self._pass_on()
        if protocol.close_expected() and not self.transport.is_closing():
            self.transport.close()

    def _shake_hands(self, request: Request) -> None:
        self.peer = replace(self.peer, foreign_page=_is_of_another_site(request.headers.get_all("Origin")))
        response = self._protocol.accept(request)
        self._protocol.send_response(response)
        self._open = response.status_code == 101

    def _pass_on(self) -> None:
        for data in self._protocol.data_to_send():
            if data and not self.transport.is_closing():
                self.transport.write(data)
                if self.congested:
                    self.check_memory()

    def put(self, data: bytes) -> None:
        if self._open:
            self._protocol.send_binary(data)
            self._pass_on()

    def close(self) -> None:
        if not self.closing and self._open:
            self.flush()
            self._protocol.send_close(1000)
            self._pass_on()
        super().close()


def _is_of_another_site(origins: Sequence[str]) -> bool:
    """Whether a browser sends it for a page that this machine does not serve: it says whose, and the page cannot change that.

    A page that hides where it is from (``null``) may be anybody's; who says nothing is no browser.
    """
    return not all(_names_this_machine(origin) for origin in origins)


def _names_this_machine(origin: str) -> bool:
    try:
        return is_loopback(urlsplit(origin).hostname or "")
    except ValueError:
        return False
