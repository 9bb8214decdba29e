"""Where a broker is: ``mqtt://user:password@host:port``."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from nearcast.errors import InvalidInput

_PORTS: Final = {"mqtt": 1883, "mqtts": 8883, "ws": 80, "wss": 443}
_SECURE: Final = frozenset({"mqtts", "wss"})
_WEBSOCKET: Final = frozenset({"ws", "wss"})
_WEBSOCKET_PATH: Final = "/mqtt"


@dataclass(frozen=True, slots=True)
class Address:
    """A broker, and how it is reached."""

    scheme: str
    host: str
    port: int
    path: str = _WEBSOCKET_PATH
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def is_secure(self) -> bool:
        return self.scheme in _SECURE

    @property
    def is_websocket(self) -> bool:
        return self.scheme in _WEBSOCKET

    def __str__(self) -> str:
        """As it may be shown: without the password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path if self.is_websocket else ''}"


def address_in(url: str, user: str | None = None, password: str | None = None) -> Address:
    """Read a URL; user and password given beside it take precedence over those in it."""
    parts, port = _split(url)
    if parts.scheme not in _PORTS:
        raise InvalidInput(
            f"{url!r:.80} does not say how to reach the broker: begin with mqtt://, mqtts://, ws:// or wss://"
        )
    if not parts.hostname:
        raise InvalidInput(f"{url!r:.80} names no host; write {parts.scheme}://localhost, for example")
    if parts.scheme not in _WEBSOCKET and parts.path not in ("", "/"):
        raise InvalidInput(
            f"{url!r:.80} has a path, which only ws:// and wss:// have; write {parts.scheme}://{parts.hostname}"
        )
    user = user if user is not None else _decoded(parts.username)
    password = password if password is not None else _decoded(parts.password)
    path = parts.path if parts.path not in ("", "/") else _WEBSOCKET_PATH
    return Address(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], path, user, password)


def tls_context(address: Address, tls: ssl.SSLContext | str | None) -> ssl.SSLContext | None:
    """How the broker proves who it is: by the authorities of this machine, by those in a file, or as the caller decides."""
    if not address.is_secure:
        if tls is not None:
            raise InvalidInput(
                f"{address} is not encrypted, so `tls` would do nothing; write mqtts:// or wss://, or leave it out"
            )
        return None
    if isinstance(tls, ssl.SSLContext):
        return tls
    try:
        return ssl.create_default_context(cafile=tls)
    except (OSError, ssl.SSLError) as error:
        raise InvalidInput(f"`tls` names {tls!r}, which is no readable file of certificates (PEM): {error}") from None


def _split(url: str) -> tuple[SplitResult, int | None]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidInput(f"{url!r:.80} is no address of a broker: {error}") from None
    return parts, port


def _decoded(text: str | None) -> str | None:
    return None if text is None else unquote(text)
