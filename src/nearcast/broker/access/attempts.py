"""Wrong passwords, by where they come from: after some of them nothing is looked at from there for a while.

But for those who have shown their password before: an attacker behind the same address does not lock them out.  Tokens and certificates cannot be guessed, and are
not counted.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from nearcast.broker.access.limits import is_exempt, network_of
from nearcast.broker.settings import LimitSettings
from nearcast.errors import NotAuthenticated, QuotaExceeded
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.buckets import Bucket

AT_ONCE: Final = 5
MOST_ADDRESSES: Final = 10_000


@dataclass(slots=True)
class _Address:
    wrong: Bucket
    trying: int = 0


class Attempts:
    def __init__(self, limits: LimitSettings, now: Callable[[], Instant]) -> None:
        self._limits: Final = limits
        self._now: Final = now
        self._rate: Final = limits.wrong_passwords_per_minute / 60
        self._addresses: Final[OrderedDict[str, _Address]] = OrderedDict()

    @contextmanager
    def trying(self, address: str, exempt: Callable[[], bool]) -> Iterator[None]:
        """A password is looked at; ``QuotaExceeded`` if too many from there were wrong, unless it is known already."""
        if not self._rate or is_exempt(self._limits, address) or exempt():
            yield
            return
        known = self._of(network_of(address))
        # Those that are just being looked at may turn out wrong, too.
        if not known.wrong.has(self._now(), known.trying + 1):
            raise QuotaExceeded("too many wrong passwords from this address; wait a minute")
        known.trying += 1
        try:
            yield
        except NotAuthenticated:
            known.wrong.take(self._now())
            raise
        finally:
            known.trying -= 1

    def _of(self, network: str) -> _Address:
        known = self._addresses.get(network)
        if known is None:
            burst = int(AT_ONCE / self._rate * MICROSECONDS)
            known = self._addresses[network] = _Address(Bucket(self._rate, burst))
            if len(self._addresses) > MOST_ADDRESSES:
                idle = next((name for name, each in self._addresses.items() if not each.trying), None)
                if idle is not None:
                    del self._addresses[idle]
        return known
