"""Bytes and kbit/s, seen from the clients: what they sent and received, and what it was for (BYPASS.KOM 6.1.4).

- *upload* is what clients sent: it counts when it was handed to the interface, whether it arrived or not; what the interface
  refused at once (given up in the very microsecond it was handed in) never went out and does not count;
- *download* is what clients received: it counts when it had arrived, once for each client that got it.

The broker is no client.  The whole run is in the table ``traffic``; ``messages`` says when.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from nearcast.errors import UnknownName
from nearcast.metrics.columns import (
    Flags,
    Floats,
    Wholes,
    column,
    instants,
    is_name,
    names_in,
    numbers,
    ratio,
    sums,
    wholes,
)
from nearcast.metrics.windows import Windows

UPLOAD: Final = "upload"
DOWNLOAD: Final = "download"
DIRECTIONS: Final = (DOWNLOAD, UPLOAD)
BROKER: Final = "broker"
OTHER: Final = "other"
"""The class of kinds that a mapping does not name."""

KIND_CLASSES: Final[Mapping[str, str]] = {
    "event": "event",
    "relay": "event",
    "ad hoc event": "event",
    "got": "acknowledgement",
    "subscription": "subscription",
    "subscription 2": "subscription",
    "unsubscription": "subscription",
    "subscribe again": "subscription",
    "all subscriptions": "subscription",
    "context": "context",
    "assignment request": "context",
    "assignment": "context",
    "joining": "context",
    "plan": "coordination",
    "plan done": "coordination",
    "transport": "coordination",
    "alive": "session",
    "goodbye": "session",
    "gateway registration": "session",
    "gateway registered": "session",
    "hello": "neighbourhood",
}
"""What messages are for, by kind: events and that they came, what subscribers want, the context protocol of a filter scheme,
transitions, and who is near."""


@dataclass(frozen=True, eq=False)
class Flows:
    """What passed between clients and a network: arrays with one value for each message, seen from one of its ends."""

    time: Wholes
    """When it counts."""

    client: Wholes
    """Position in ``clients``; -1: whoever heard a broadcast, together."""

    interface: Wholes
    upload: Flags
    kind_class: Wholes
    bytes: Wholes
    copies: Wholes
    """How many clients got it, or 1 that sent it; ``bytes`` are those of all copies."""

    clients: tuple[str, ...]
    interfaces: tuple[str, ...]
    classes: tuple[str, ...]

    def rates(
        self,
        windows: Windows,
        direction: str,
        *,
        interface: str | None = None,
        kind_class: str | None = None,
    ) -> Floats:
        """kbit/s: a row for each window, a column for each of ``clients``, 0 for who was silent.

        Who heard a broadcast is not in ``messages``: downloads of an interface that has broadcasts are those of its unicasts.
        """
        chosen = self._only(direction, interface, kind_class) & (self.client >= 0)
        window = windows.index(self.time)
        chosen &= window >= 0
        width = len(self.clients)
        cells = window[chosen] * width + self.client[chosen]
        carried = sums(cells, self.bytes[chosen], windows.count * width)
        return carried.reshape(windows.count, width) * 8.0 / 1000.0 / windows.seconds[:, np.newaxis]

    def total_rates(
        self, windows: Windows, direction: str, *, interface: str | None = None, kind_class: str | None = None
    ) -> Floats:
        """kbit/s of all clients together in each window, broadcasts included."""
        window = windows.index(self.time)
        chosen = self._only(direction, interface, kind_class) & (window >= 0)
        carried = sums(window[chosen], self.bytes[chosen], windows.count)
        return carried * 8.0 / 1000.0 / windows.seconds

    def totals(self) -> Any:
        """As ``carried``, from messages whose fate is known."""
        return _totals(self.interfaces, self.classes, self.interface, self.upload, self.kind_class, self)

    def _only(self, direction: str, interface: str | None, kind_class: str | None) -> Flags:
        chosen: Flags = self.upload == (_known(direction, DIRECTIONS, "direction") == DIRECTIONS.index(UPLOAD))
        if interface is not None:
            # A run without Wi-Fi has no traffic there; that is an answer, not a mistake.
            chosen &= self.interface == (self.interfaces.index(interface) if interface in self.interfaces else -1)
        if kind_class is not None:
            chosen &= self.kind_class == _known(kind_class, self.classes, "class of messages")
        return chosen


def flows(
    messages: Any, clients: tuple[str, ...], *, classes: Mapping[str, str] = KIND_CLASSES, broker: str = BROKER
) -> Flows:
    """The table ``messages``, seen from the clients; ``clients`` are the columns of ``Flows.rates``.

    Messages of clients that are not among them are left out, as are those between brokers.
    """
    import pyarrow as pa

    names = pa.array(clients, pa.string())
    sender, receiver = column(messages, "sender"), column(messages, "receiver")
    sent, ended = instants(messages, "time"), instants(messages, "ended")
    size, got = wholes(messages, "bytes"), wholes(messages, "received")
    refused = (sent == ended) & (got == 0) & ~is_name(column(messages, "outcome"), "sent")
    source, target = numbers(sender, names), numbers(receiver, names)
    broadcast = ~receiver.is_valid().to_numpy(zero_copy_only=False)
    up = np.flatnonzero((source >= 0) & ~refused & ~is_name(sender, broker))
    down = np.flatnonzero(((target >= 0) | broadcast) & (got > 0) & ~is_name(receiver, broker))
    both = np.concatenate([up, down])
    interface, kind_class = column(messages, "interface"), _classes(column(messages, "kind"), classes)
    interfaces = names_in(interface)
    copies = np.concatenate([np.ones(len(up), np.int64), got[down]])
    return Flows(
        time=np.concatenate([sent[up], ended[down]]),
        client=np.concatenate([source[up], target[down]]),
        interface=numbers(interface, interfaces)[both],
        upload=np.arange(len(both)) < len(up),
        kind_class=kind_class[both],
        bytes=size[both] * copies,
        copies=copies,
        clients=clients,
        interfaces=tuple(interfaces.to_pylist()),
        classes=_class_names(classes),
    )


def carried(traffic: Any, *, classes: Mapping[str, str] = KIND_CLASSES, broker: str = BROKER) -> Any:
    """What all clients together sent and received in the whole run, from the table ``traffic``.

    A row for each interface, direction and class that occurs: ``interface, direction, class, messages, bytes, share``; the share is of
    the bytes of that interface and direction.  Broadcasts count once as sent, and once for each client that received them.
    """
    kept = traffic.filter(~is_name(column(traffic, "host"), broker))
    interface = column(kept, "interface")
    interfaces = names_in(interface)
    return _totals(
        tuple(interfaces.to_pylist()),
        _class_names(classes),
        numbers(interface, interfaces),
        is_name(column(kept, "direction"), "sent"),
        _classes(column(kept, "kind"), classes),
        _Amounts(wholes(kept, "bytes"), wholes(kept, "messages")),
    )


@dataclass(frozen=True, slots=True)
class _Amounts:
    bytes: Wholes
    copies: Wholes


def _totals(
    interfaces: tuple[str, ...],
    classes: tuple[str, ...],
    interface: Wholes,
    upload: Flags,
    kind_class: Wholes,
    amounts: Flows | _Amounts,
) -> Any:
    import pyarrow as pa

    directed = interface * 2 + upload
    cell = directed * len(classes) + kind_class
    count = len(interfaces) * 2 * len(classes)
    rows = np.bincount(cell, minlength=count)
    size, copies = sums(cell, amounts.bytes, count), sums(cell, amounts.copies, count)
    together = sums(directed, amounts.bytes, len(interfaces) * 2)
    used = np.flatnonzero(rows)
    where, what = np.divmod(used, len(classes))
    return pa.table(
        {
            "interface": pa.array([interfaces[number] for number in where // 2], pa.string()),
            "direction": pa.array([DIRECTIONS[number] for number in where % 2], pa.string()),
            "class": pa.array([classes[number] for number in what], pa.string()),
            "messages": pa.array(copies[used].astype(np.int64), pa.int64()),
            "bytes": pa.array(size[used].astype(np.int64), pa.int64()),
            "share": pa.array(ratio(size[used], together[where]), pa.float64(), from_pandas=True),
        }
    )


def _class_names(classes: Mapping[str, str]) -> tuple[str, ...]:
    return (*sorted(set(classes.values()) - {OTHER}), OTHER)


def _classes(kinds: Any, classes: Mapping[str, str]) -> Wholes:
    """The number of the class of each kind."""
    names = names_in(kinds)
    order = _class_names(classes)
    return np.array([order.index(classes.get(kind, OTHER)) for kind in names.to_pylist()], np.int64)[
        numbers(kinds, names)
    ]


def _known(word: str, words: tuple[str, ...], what: str) -> int:
    if word not in words:
        raise UnknownName(f"{word!r} is no {what}; there are {', '.join(words)}")
    return words.index(word)
