"""Addresses of hosts that are reached by TCP: a name, and where it listens: ``berlin@10.0.0.1:7400``."""

from __future__ import annotations

import re
from typing import Final

from nearcast.errors import InvalidInput
from nearcast.runtime.ports import Address

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
HIGHEST_PORT: Final = 65_535


def checked_name(name: str) -> str:
    if NAME.fullmatch(name) is None:
        raise InvalidInput(
            f"{name!r:.80} cannot be the name of a broker: up to 64 letters, digits, dots, dashes and underscores, a letter or digit first"
        )
    return name


def host_and_port(text: str, *, free: bool = False) -> tuple[str, int]:
    """Read ``localhost:7400`` or ``[::1]:7400``; ``free``: 0 stands for any port."""
    host, separator, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    number = int(port) if port.isascii() and port.isdecimal() and len(port) < 6 else -1
    if not separator or not host or not (0 if free else 1) <= number <= HIGHEST_PORT:
        raise InvalidInput(f"{text!r:.80} does not say where a broker is; write HOST:PORT, such as 10.0.0.1:7400")
    return host, number


def address_of(name: str, host: str, port: int) -> Address:
    return f"{checked_name(name)}@{f'[{host}]' if ':' in host else host}:{port}"


def name_of(address: Address) -> str:
    return address.partition("@")[0]


def where(address: Address) -> tuple[str, int] | None:
    """Where it listens; none if that is no such address."""
    name, separator, rest = address.partition("@")
    try:
        return host_and_port(rest) if separator and NAME.fullmatch(name) else None
    except InvalidInput:
        return None
