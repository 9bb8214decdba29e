"""The radio of THYME's evaluation (6.2), with a count of what is sent on behalf of others."""

from __future__ import annotations

from typing import Any, Final

from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, Sending
from nearcast.runtime.simulation.network import SimulatedLink
from nearcast.runtime.simulation.radio.network import RadioNetwork
from nearcast.runtime.simulation.radio.profile import Ranges, wifi_g
from nearcast.runtime.simulation.radio.reports import Outcome

RANGE: Final = 115.0
"""Metres: two hosts anywhere in two neighbouring cells of 40 m hear each other at 113.2 m."""

PROFILE: Final = wifi_g(
    Ranges(reception=RANGE, interference=RANGE * 205 / 88), data_rate=6_000_000, rts_threshold=1_500
)
"""Interference reaches as much farther as in BYPASS.KOM's setting; THYME does not name it."""

CONTROL: Final = frozenset({"crowd-routes", "crowd-at"})
"""Kinds of messages that only routing needs: tables of DSDV, beacons of cells."""

_ON_AIR: Final = (Outcome.SENT, Outcome.ACKNOWLEDGED, Outcome.RETRIES_EXHAUSTED)


def origin(message: Any) -> str | None:
    """Who said it first, where it says so: a packet its source, a flood the owner of what it is about."""
    source = getattr(message, "source", None)
    if isinstance(source, str):
        return source
    about = getattr(message, "interest", message)
    owner = getattr(getattr(about, "key", None), "owner", None)
    return owner if isinstance(owner, str) else None


class CountingRadio(RadioNetwork):
    forwarded = 0
    """Bytes, once for each hop."""

    def post(self, link: SimulatedLink, to: Address | None, port: int, message: Message) -> Sending:
        first = origin(message)
        if first is not None and first != link.host:
            self.forwarded += self.parcel(link, to, port, message).size
        return super().post(link, to, port, message)

    def numbers(self) -> dict[str, float]:
        """Retransmissions are data frames on air beyond the first attempt at each."""
        counted = self.statistics()
        control = sum(row.bytes for row in self.traffic() if row.direction == "sent" and row.kind in CONTROL)
        return {
            "bytes sent": counted.bytes_sent,
            "bytes forwarded": self.forwarded,
            "control bytes": control,
            "control share": control / counted.bytes_sent if counted.bytes_sent else 0.0,
            "retransmissions": max(0, counted.data_sent - sum(counted.outcomes.get(it, 0) for it in _ON_AIR)),
            "retries exhausted": counted.outcomes.get(Outcome.RETRIES_EXHAUSTED, 0),
            "expired": counted.outcomes.get(Outcome.EXPIRED, 0),
            "queue full": counted.queue_full,
        }
