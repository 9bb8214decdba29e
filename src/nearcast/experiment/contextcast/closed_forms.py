"""What the Contextcast dissertation computes and does not measure: E14, E15 and E17 (6.4.2).

A calculator: each figure from its closed form, with the numbers of the document as defaults.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nearcast.errors import InvalidInput

KILOBYTE: Final = 1_000
MEGABYTE: Final = 1_000 * KILOBYTE
GIGABYTE: Final = 1_000 * MEGABYTE
MEBI: Final = 1_024
"""The document divides megabytes by 1,024 where it speaks of gigabytes (E15)."""

DAYS_IN_A_YEAR: Final = 365


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """E14: what a historical message carries on its way, from when its recipients are known.

    Each trusted node is named once, however many of its identities are meant: so names are bounded by the trusted nodes that there
    are, and identities by area, period, and how often clients change theirs.
    """

    trusted_nodes: int = 300
    """All that there are (6.4.1)."""

    clients: float
    """Whose contexts match, of all access networks in the target."""

    identities_per_client: float = 1.0
    """That a client has used in the period."""

    name_bytes: int = 32
    """Of a trusted node; ours."""

    identity_bytes: int = 8
    """The timestamp of a virtual identity, whose trusted node is named once; ours."""

    def __post_init__(self) -> None:
        _not_negative(
            self.trusted_nodes, self.clients, self.identities_per_client, self.name_bytes, self.identity_bytes
        )

    @property
    def identities(self) -> float:
        return self.clients * self.identities_per_client

    @property
    def named_nodes(self) -> float:
        """Expected, if each identity comes from any of them: N (1 - (1 - 1/N)^v)."""
        nodes = self.trusted_nodes
        return nodes * (1.0 - (1.0 - 1.0 / nodes) ** self.identities) if nodes else 0.0

    @property
    def bytes(self) -> float:
        return self.named_nodes * self.name_bytes + self.identities * self.identity_bytes

    @property
    def largest(self) -> float:
        """Bytes, if each trusted node is named."""
        return self.trusted_nodes * self.name_bytes + self.identities * self.identity_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """E15: what the archive of one access network takes."""

    clients: int = 10_000
    updates_per_day: float = 5.0
    entry_bytes: int = 2 * KILOBYTE
    years: float = 3.0

    def __post_init__(self) -> None:
        _not_negative(self.clients, self.updates_per_day, self.entry_bytes, self.years)

    @property
    def inserts_per_day(self) -> float:
        return self.clients * self.updates_per_day

    @property
    def megabytes_per_day(self) -> float:
        return self.inserts_per_day * self.entry_bytes / MEGABYTE

    @property
    def megabytes(self) -> float:
        return self.megabytes_per_day * DAYS_IN_A_YEAR * self.years

    @property
    def gigabytes(self) -> float:
        """As the document counts them."""
        return self.megabytes / MEBI


@dataclass(frozen=True, slots=True, kw_only=True)
class FutureStore:
    """E17: how many messages to the future a router can keep, and how many may come in a day."""

    storage_bytes: float = 100 * GIGABYTE
    message_bytes: float = 100 * KILOBYTE
    days: float = 60.0
    """For so long each of them is kept, at most."""

    def __post_init__(self) -> None:
        if not (self.message_bytes > 0 and self.days > 0):
            raise InvalidInput("a message has a size, and is kept for some time")
        _not_negative(self.storage_bytes)

    @property
    def messages(self) -> float:
        return self.storage_bytes / self.message_bytes

    @property
    def messages_per_day(self) -> float:
        """Little's law: what is kept is what comes in a day times the days."""
        return self.messages / self.days


def _not_negative(*numbers: float) -> None:
    if any(not number >= 0 for number in numbers):
        raise InvalidInput(f"none of these numbers can be negative: {', '.join(map(str, numbers))}")
