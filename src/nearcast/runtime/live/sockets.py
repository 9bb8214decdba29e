"""How the sockets of a UDP link are opened, and what to tell whoever cannot have them."""

from __future__ import annotations

import errno
import socket
import sys
from functools import lru_cache
from typing import Final

from nearcast.errors import SetupError
from nearcast.runtime.ports import Address

SocketAddress = tuple[str, int]

_RECEIVE_BUFFER: Final = 1 << 20
"""Bytes: the kernel keeps what arrives while a callback is at work, and drops silently what does not fit."""

_IP_MULTICAST_ALL: Final = 49
"""Linux, ``linux/in.h``; Python does not name it."""

_ADVICE: Final = {
    errno.EADDRINUSE: "another process uses that port: choose another one (0: any that is free), or stop that process",
    errno.EADDRNOTAVAIL: "this machine has no such address: give one of an interface that is up (`ip -4 address`)",
    errno.EACCES: "ports below 1024 are for the administrator: choose a higher one",
    errno.ENODEV: "no interface has that address: give one of an interface that is up (`ip -4 address`)",
}


def address_text(address: SocketAddress) -> Address:
    return f"{address[0]}:{address[1]}"


@lru_cache(maxsize=4_096)
def socket_address(text: Address) -> SocketAddress | None:
    """Read ``127.0.0.1:40001``; none if it is not the address of one host."""
    host, _, port = text.rpartition(":")
    if not is_unicast(host) or not port.isdecimal() or not port.isascii() or not 0 < int(port) < 65_536:
        return None
    return host, int(port)


def is_unicast(host: str) -> bool:
    return 0 < first_byte(host) < 224


def is_multicast(host: str) -> bool:
    return 224 <= first_byte(host) < 240


def first_byte(host: str) -> int:
    """Of an IPv4 address in its usual form; -1 if it is none."""
    try:
        return socket.inet_pton(socket.AF_INET, host)[0]
    except (OSError, ValueError):
        return -1


def own_socket(address: SocketAddress) -> socket.socket:
    """A socket at one host's address: everything is sent from here, so that receivers know whom to answer."""
    return _bound(address, address[0])


def group_socket(group: SocketAddress, interface: str) -> socket.socket:
    """A socket that hears what is sent to the group on that interface, as do all others of this machine."""
    return _bound(group, interface, group[0])


def _bound(address: SocketAddress, interface: str, group: str | None = None) -> socket.socket:
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        opened.setblocking(False)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        if group is None:
            _send_to_groups(opened, interface)
        else:
            _share(opened)
        opened.bind(address)
        if group is not None:
            _join(opened, group, interface)
    except OSError as error:
        opened.close()
        where = f"{address_text(address)} (interface {interface})"
        advice = _ADVICE.get(error.errno or 0, "check that the interface is up and may be used")
        raise SetupError(f"cannot open UDP {where}: {error.strerror or error}; {advice}") from error
    return opened


def _send_to_groups(opened: socket.socket, interface: str) -> None:
    # To those nearby and no router's further (TTL 1); to other processes of this machine too (LOOP).
    opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(interface))
    opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
    opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)


def _share(opened: socket.socket) -> None:
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if sys.platform != "linux":  # where SO_REUSEADDR alone does not let two sockets listen to one group
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)


def _join(opened: socket.socket, group: str, interface: str) -> None:
    membership = socket.inet_aton(group) + socket.inet_aton(interface)
    opened.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
    if sys.platform == "linux":
        # Otherwise we would also hear what comes in on interfaces on which somebody else joined the group.
        opened.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
