"""Failed log-ins, by where they come from: after some of them nothing is looked at from there for a while.

But for those who were let in with the same before: an attacker behind the same address does not lock them out.  Passwords and tokens are counted apart: a
password may be guessed; a wrong token is only work, and devices whose tokens have expired must not keep those of their network out who log in with a password.
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
TOKENS_AT_ONCE: Final = 50
MOST_ADDRESSES: Final = 10_000


@dataclass(slots=True)
class _Address:
    wrong: Bucket
    trying: int = 0


class Attempts:
    """Of one kind (``passwords``, ``tokens``)."""

    def __init__(
        self, limits: LimitSettings, now: Callable[[], Instant], kind: str, per_minute: float, at_once: int
    ) -> None:
        self._limits: Final = limits
        self._now: Final = now
        self._kind: Final = kind
        self._rate: Final = per_minute / 60
        self._at_once: Final = at_once
        self._addresses: Final[OrderedDict[str, _Address]] = OrderedDict()

    @contextmanager
    def trying(self, address: str, exempt: Callable[[], bool]) -> Iterator[None]:
        """One is looked at; ``QuotaExceeded`` if too many from there were wrong, unless it is known already."""
        if not self._rate or is_exempt(self._limits, address) or exempt():
            yield
            return
        known = self._of(network_of(address))
        # Those that are just being looked at may turn out wrong, too.
        wait = known.wrong.until(self._now(), known.trying + 1)
        if wait:
            raise QuotaExceeded(f"too many wrong {self._kind} from this address; wait a minute", wait=wait)
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
            burst = int(self._at_once / self._rate * MICROSECONDS)
            known = self._addresses[network] = _Address(Bucket(self._rate, burst))
            if len(self._addresses) > MOST_ADDRESSES:
                idle = next((name for name, each in self._addresses.items() if not each.trying), None)
                if idle is not None:
                    del self._addresses[idle]
        return known
