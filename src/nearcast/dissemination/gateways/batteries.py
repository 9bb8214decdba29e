"""What remains of clients' batteries, as the State Information System knows (BYPASS.KOM 4.3.4, 5.2.4)."""

from __future__ import annotations

from functools import partial
from typing import Final

from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.host import Host
from nearcast.runtime.ports import Address
from nearcast.runtime.state import Information

BATTERY: Final = Information("battery", float)
"""Of a host, between 0 and 1; whoever measures it there provides it."""


class Batteries:
    """What was last heard of them; asks again now and then, because batteries change slowly."""

    def __init__(self, host: Host, every: float = 60.0) -> None:
        self._host: Final = host
        self._every: Final = round(every * MICROSECONDS)
        self._asked: Final[dict[Address, Instant]] = {}
        self._known: Final[dict[Address, float]] = {}

    def of(self, client: Address) -> float | None:
        now, asked = self._host.now(), self._asked.get(client)
        if asked is None or now - asked >= self._every:
            self._asked[client] = now
            self._host.state.request(BATTERY, partial(self._answered, client), about=client, remote=True)
        return self._known.get(client)

    def forget(self, client: Address) -> None:
        self._asked.pop(client, None)
        self._known.pop(client, None)

    def _answered(self, client: Address, battery: float) -> None:
        if client in self._asked:
            self._known[client] = min(max(battery, 0.0), 1.0)
