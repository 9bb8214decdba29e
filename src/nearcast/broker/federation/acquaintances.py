"""Brokers that were ever reached: where they were last, and since when they have been missing; also after a restart.

Of who is missing while this broker starts it may be that nobody is left who knows what its clients want: then all is kept for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from nearcast.journal import Journal, Put
from nearcast.model.time import Instant
from nearcast.runtime.ports import Address

TABLE: Final = "federation"
KNOWN: Final = "broker/"
MISSING: Final = "missing/"


class Acquaintances:
    def __init__(self, me: str, journal: Journal, rows: Mapping[str, bytes], now: Instant, longest: int) -> None:
        self._journal: Final = journal
        self._longest: Final = longest
        """Microseconds for which a broker is missed."""

        self.addresses: Final[dict[str, Address]] = {
            name: row.decode() for key, row in rows.items() if (name := _name(key, KNOWN)) not in {None, me}
        }
        since = {_name(key, MISSING): int.from_bytes(row, "big") for key, row in rows.items()}
        self._missing: Final = {name: since.get(name, now) for name in self.addresses}

    def __iter__(self) -> Iterator[str]:
        return iter(self.addresses)

    @property
    def contacts(self) -> tuple[Address, ...]:
        """Whom to ask after a restart."""
        return tuple(sorted(self.addresses.values()))

    def reached(self, addresses: Mapping[str, Address], now: Instant) -> None:
        """These are in reach, and nobody else."""
        puts = [
            Put(TABLE, KNOWN + name, at.encode()) for name, at in addresses.items() if self.addresses.get(name) != at
        ]
        self.addresses.update(addresses)
        for name in self.addresses:
            if name in addresses:
                if self._missing.pop(name, None) is not None:
                    puts.append(Put(TABLE, MISSING + name, None))
            elif name not in self._missing:
                self._missing[name] = now
                puts.append(Put(TABLE, MISSING + name, now.to_bytes(8, "big")))
        if puts:
            self._journal.write(puts=puts)

    def given_up(self, broker: str, now: Instant) -> bool:
        """Whether it has been missing for longer than anything is kept."""
        since = self._missing.get(broker)
        return since is not None and now >= since + self._longest

    def forget(self, broker: str) -> None:
        if self.addresses.pop(broker, None) is not None:
            self._missing.pop(broker, None)
            self._journal.write(puts=(Put(TABLE, KNOWN + broker, None), Put(TABLE, MISSING + broker, None)))


def _name(key: str, prefix: str) -> str | None:
    return key.removeprefix(prefix) if key.startswith(prefix) else None
