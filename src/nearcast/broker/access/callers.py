"""What those who ask by HTTP may cost: each by its user name if it was let in with what it shows before, everybody else by address.

So somebody unknown spends only what there is for strangers of that address, and whoever is known from there goes on.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from nearcast.broker.access.limits import ClientLimits, is_exempt, network_of
from nearcast.broker.settings import LimitSettings
from nearcast.errors import QuotaExceeded
from nearcast.model.time import Instant
from nearcast.runtime.buckets import Bucket, bucket

MOST_CALLERS: Final = 10_000
"""Remembered at a time; whoever was silent for longest goes first, and has rested."""


@dataclass(frozen=True, slots=True)
class CallersStatistics:
    known: int
    """Users and addresses of which something is remembered."""

    refused: int
    """Requests that came too fast."""


@dataclass(frozen=True, slots=True)
class _Caller:
    requests: Bucket | None
    limits: ClientLimits


class Callers:
    """One for each broker."""

    def __init__(self, limits: LimitSettings) -> None:
        self._limits = limits
        self._known: Final[OrderedDict[tuple[bool, str], _Caller]] = OrderedDict()
        self._refused = 0

    def change(self, limits: LimitSettings) -> None:
        """These hold from now on, for everybody afresh."""
        self._limits = limits
        self._known.clear()

    def check_request(self, user: str | None, address: str, now: Instant) -> None:
        """``QuotaExceeded`` if they come too fast; ``user``: none unless it is known already."""
        if is_exempt(self._limits, address):
            return
        requests = self._caller(user, address).requests
        if requests is not None and not requests.take(now):
            self._refused += 1
            raise QuotaExceeded("requests come too fast; wait a moment", wait=requests.until(now))

    def check_publish(self, user: str | None, address: str, messages: int, size: int, now: Instant) -> None:
        """``QuotaExceeded`` if that is more than a client may publish."""
        if not is_exempt(self._limits, address):
            self._caller(user, address).limits.check_publish(messages, size, now)

    def statistics(self) -> CallersStatistics:
        return CallersStatistics(len(self._known), self._refused)

    def _caller(self, user: str | None, address: str) -> _Caller:
        key = (False, network_of(address)) if user is None else (True, user)
        caller = self._known.get(key)
        if caller is None:
            limits = self._limits
            caller = self._known[key] = _Caller(bucket(limits.requests_per_second, limits.burst), ClientLimits(limits))
            if len(self._known) > MOST_CALLERS:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(key)
        return caller
