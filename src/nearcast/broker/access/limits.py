"""Rates and quotas: what one client can cost the others.

Publishing too fast is answered by reading more slowly (``ClientLimits.published`` says for how long not to read): nothing is lost,
and TCP tells the client.  Subscribing or moving too fast is refused, and publishing by HTTP, where every request has an answer.  Clients of this machine have no rates unless the settings
say ``loopback = true``; sizes and counts hold for everybody.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from nearcast.broker.access.principal import Peer
from nearcast.broker.settings import LimitSettings, is_loopback
from nearcast.errors import QuotaExceeded, Refused
from nearcast.model.time import Instant
from nearcast.mqtt import names
from nearcast.runtime.buckets import Bucket, bucket

CONNECTION_RATE_EXCEEDED: Final = 0x9F
TOPIC_NAME_INVALID: Final = 0x90
CLIENT_ID_NOT_VALID: Final = 0x85
UNDERSTOOD: Final = 16
"""By so much more work is a byte of a user property (0.4 us), as measured, or more."""

FILTERED: Final = 128
"""The same of a byte of a filter (3 us, and 12 until a subscription can be matched by it)."""

ONE_SUBSCRIPTION: Final = 16 * 1024
"""So much work counts as one subscription more: 128 bytes of a filter."""

_FILTERS: Final = frozenset({names.TO, names.WHERE})


@dataclass(frozen=True, slots=True)
class ClientLimitStatistics:
    slowed: int
    """Publishes after which the client was not read from for a while."""

    refused: int
    """Subscriptions, positions and what is published by HTTP, if they came too fast."""


def work_of(properties: Iterable[tuple[str, str]]) -> int:
    """What it takes to understand them, in bytes of a payload that is only passed on."""
    return sum(
        len(name) * UNDERSTOOD + len(value) * (FILTERED if name in _FILTERS else UNDERSTOOD)
        for name, value in properties
    )


class ClientLimits:
    """How fast one client is; all may be unlimited."""

    __slots__ = ("_bytes", "_positions", "_publishes", "_refused", "_slowed", "_subscribes", "limited")

    def __init__(self, limits: LimitSettings | None) -> None:
        self.limited: Final = limits is not None
        """Whether it is worth asking."""

        self._publishes = bucket(limits.publishes_per_second, limits.burst) if limits else None
        self._bytes = bucket(limits.bytes_per_second, limits.burst) if limits else None
        self._positions = bucket(limits.positions_per_second, limits.burst) if limits else None
        self._subscribes = bucket(limits.subscribes_per_second, limits.burst) if limits else None
        self._slowed = self._refused = 0

    def published(self, size: int, now: Instant) -> int:
        """It has published so many bytes: for so many microseconds (mostly 0) nothing more is to be read from it."""
        pause = self._publishes.spend(now) if self._publishes is not None else 0
        if self._bytes is not None:
            pause = max(pause, self._bytes.spend(now, size))
        self._slowed += pause > 0
        return pause

    def check_publish(self, messages: int, size: int, now: Instant) -> None:
        """All of them, or none: of whom is told to come again later instead of being read more slowly."""
        asked = [(rate, n) for rate, n in ((self._publishes, messages), (self._bytes, size)) if rate is not None]
        wait = max((rate.until(now, amount) for rate, amount in asked), default=0)
        if wait:
            self._refused += 1
            raise QuotaExceeded("messages are published too fast; wait a moment", wait=wait)
        for rate, amount in asked:
            rate.take(now, amount)

    def check_position(self, now: Instant) -> None:
        self._check(self._positions, now, "positions are reported too fast")

    def check_subscribe(self, now: Instant, filters: int = 1, work: int = 0) -> None:
        """``work``: for each of them."""
        self._check(self._subscribes, now, "subscriptions come too fast", filters * (1 + work // ONE_SUBSCRIPTION))

    def statistics(self) -> ClientLimitStatistics:
        return ClientLimitStatistics(self._slowed, self._refused)

    def _check(self, allowed: Bucket | None, now: Instant, problem: str, amount: int = 1) -> None:
        if allowed is not None and not allowed.take(now, amount):
            self._refused += 1
            raise QuotaExceeded(f"{problem}; wait a moment", wait=allowed.until(now, amount))


_UNLIMITED: Final = ClientLimits(None)


class Quotas:
    """How much there may be: asked with what there is already."""

    def __init__(self, limits: LimitSettings) -> None:
        self._limits = limits

    def change(self, limits: LimitSettings) -> None:
        """These hold from now on; what there is already stays."""
        self._limits = limits

    def of_client(self, peer: Peer) -> ClientLimits:
        """Rates of a client; those without any share one object."""
        return _UNLIMITED if is_exempt(self._limits, peer.address) else ClientLimits(self._limits)

    def check_topic(self, topic: str) -> None:
        """Of topics and of filters."""
        if topic.count("/") >= self._limits.topic_levels:
            raise QuotaExceeded(f"a topic has at most {self._limits.topic_levels} levels here", TOPIC_NAME_INVALID)
        # A character has at most four bytes: most topics need not be encoded to be measured.
        if len(topic) * 4 > self._limits.topic_bytes and len(topic.encode()) > self._limits.topic_bytes:
            raise QuotaExceeded(f"a topic has at most {self._limits.topic_bytes} bytes here", TOPIC_NAME_INVALID)

    def check_client(self, client: str) -> None:
        """Of client ids: each is remembered as long as its session."""
        if len(client.encode()) > self._limits.topic_bytes:
            raise Refused(f"a client id has at most {self._limits.topic_bytes} bytes here", CLIENT_ID_NOT_VALID)

    def check_properties(self, properties: Sequence[tuple[str, str]]) -> None:
        """Of one packet."""
        most = self._limits.properties
        if properties and sum(len(name) + len(value) for name, value in properties) > most:
            raise QuotaExceeded(f"a packet has at most {most} of user properties here")

    def check_contexts(self, held: int) -> None:
        _check(held, self._limits.contexts_per_client, "a client has at most {} contexts; deregister one first")

    def check_sessions(self, held: int) -> None:
        _check(held, self._limits.sessions, "the broker keeps at most {} sessions; try again later")

    def check_retained(self, messages: int, size: int) -> None:
        """``size``: of all retained messages, with the new one."""
        _check(messages, self._limits.retained_messages, "the broker retains at most {} messages; clear one first")
        if size > self._limits.retained_bytes:
            raise QuotaExceeded(f"the broker retains at most {self._limits.retained_bytes}; clear something first")


@dataclass(frozen=True, slots=True)
class AdmissionStatistics:
    connections: int
    addresses: int
    """Of which something is remembered."""

    refused: int


class Admission:
    """How many connections there are, from where, and how fast they come."""

    def __init__(self, limits: LimitSettings) -> None:
        self._limits = limits
        self._arrivals = bucket(limits.connects_per_second, limits.burst)
        self._addresses: Final[OrderedDict[str, _Address]] = OrderedDict()
        self._connections = self._refused = 0

    def change(self, limits: LimitSettings) -> None:
        """These hold from now on; connections beyond them stay open."""
        self._limits = limits
        self._arrivals = bucket(limits.connects_per_second, limits.burst)
        for known in self._addresses.values():
            known.arrivals = bucket(limits.connects_per_second_per_address, limits.burst)

    def opened(self, address: str, now: Instant) -> None:
        """A connection from there; ``QuotaExceeded`` if it is to be closed again (without ``closed``)."""
        try:
            self._open(address, now)
        except QuotaExceeded:
            self._refused += 1
            raise

    def closed(self, address: str) -> None:
        """A connection that ``opened`` took has ended."""
        self._connections -= 1
        known = self._addresses.get(network_of(address))
        if known is not None:
            known.connections -= 1

    def statistics(self) -> AdmissionStatistics:
        return AdmissionStatistics(self._connections, len(self._addresses), self._refused)

    def _open(self, address: str, now: Instant) -> None:
        limits = self._limits
        _check(self._connections, limits.connections, "the broker has at most {} connections; try again later")
        if not is_exempt(limits, address):
            self._forget_some(now)
            known = self._known(network_of(address))
            _check(
                known.connections, limits.connections_per_address, "at most {} connections from one address; close one"
            )
            # First the one that only its own address can use up: nobody spends what is there for all.
            for arrivals in (known.arrivals, self._arrivals):
                if arrivals is not None and not arrivals.take(now):
                    raise QuotaExceeded("connections come too fast; wait a moment", CONNECTION_RATE_EXCEEDED)
            known.connections += 1
        self._connections += 1

    def _known(self, network: str) -> _Address:
        known = self._addresses.get(network)
        if known is None:
            limits = self._limits
            known = self._addresses[network] = _Address(bucket(limits.connects_per_second_per_address, limits.burst))
        return known

    def _forget_some(self, now: Instant) -> None:
        """Two at each arrival, which adds at most one: so what is remembered does not grow with the addresses ever seen."""
        for _ in range(min(2, len(self._addresses))):
            network, known = self._addresses.popitem(last=False)
            if known.connections or not (known.arrivals is None or known.arrivals.is_full(now)):
                self._addresses[network] = known  # to the end: looked at again when all others were


class _Address:
    __slots__ = ("arrivals", "connections")

    def __init__(self, arrivals: Bucket | None) -> None:
        self.arrivals = arrivals
        self.connections = 0


def is_exempt(limits: LimitSettings, address: str) -> bool:
    return not limits.loopback and is_loopback(address)


@lru_cache(maxsize=4096)
def network_of(address: str) -> str:
    """Whoever has one IPv6 address usually has all of its /64."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    return str(parsed.ipv4_mapped or ipaddress.ip_network((int(parsed) >> 64 << 64, 64)))


def _check(held: int, most: int, message: str) -> None:
    if held >= most:
        raise QuotaExceeded(message.format(most))
