"""What a cellular network is like: latency, bandwidth, queues, and what goes wrong in it.

The documents' network is reliable, gives every client 1 Mbit/s and is never overloaded (BYPASS.KOM 6.1.3); so are the defaults.
Losses, outages and overload are there for whoever wants to see what happens without these assumptions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

from nearcast.errors import InvalidInput
from nearcast.runtime.simulation.distributions import Distribution, Uniform

_BYPASS_LATENCY: Final = Uniform(0.075, 0.125)


@dataclass(frozen=True, kw_only=True, slots=True)
class BearerProfile:
    """One direction between a client and the core of the network, where the brokers are."""

    latency: Distribution = _BYPASS_LATENCY
    """Seconds.  The cloud delivers after 200 ms (BYPASS.KOM 6.1.3), over two bearers; what it sends to all clients at one
    instant reaches all of them within 50 ms (6.3.3)."""

    bandwidth: float | None = 1e6
    """Bits per second of each client; None: unlimited."""

    queue_bytes: int = 256_000
    """How much may wait or be in transmission for one client: two seconds' worth by default."""

    loss: float = 0.0
    """Probability that a transmission is lost."""

    cell_bandwidth: float | None = None
    """Bits per second that all clients share; None: never overloaded."""

    cell_queue_bytes: int = 2_000_000
    """How much may wait or be in transmission for all clients, where bandwidth is shared."""

    def __post_init__(self) -> None:
        if self.latency.least < 0:
            raise InvalidInput(f"a latency cannot be negative, but {self.latency} can; truncate it at 0")
        for name in ("bandwidth", "cell_bandwidth"):
            bandwidth = getattr(self, name)
            # `not` also refuses NaN, here and below.
            if bandwidth is not None and not 0 < bandwidth < math.inf:
                raise InvalidInput(f"{name} must be a positive number of bits per second, or None, not {bandwidth!r}")
        for name in ("queue_bytes", "cell_queue_bytes"):
            if not getattr(self, name) > 0:
                raise InvalidInput(f"{name} must be a positive number of bytes, not {getattr(self, name)!r}")
        if not 0 <= self.loss <= 1:
            raise InvalidInput(f"loss is a probability between 0 and 1, not {self.loss!r}")


@dataclass(frozen=True, slots=True)
class Outage:
    """A time in which clients cannot be reached and can reach nobody."""

    start: float
    """Seconds since the run began."""

    end: float
    clients: frozenset[str] | None = None
    """None: all of them."""

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end < math.inf:
            raise InvalidInput(f"an outage from {self.start!r} s to {self.end!r} s is no stretch of a run")

    def concerns(self, client: str) -> bool:
        return self.clients is None or client in self.clients


@dataclass(frozen=True, slots=True)
class Intermittence:
    """Each client by itself loses and regains the network, after exponential times with these means."""

    connected: float
    """Seconds."""

    disconnected: float

    def __post_init__(self) -> None:
        if not (0 < self.connected < math.inf and 0 < self.disconnected < math.inf):
            raise InvalidInput(
                f"mean durations must be positive, not {self.connected!r} s connected, {self.disconnected!r} s disconnected"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class CellularProfile:
    """Everything that distinguishes one cellular network from another."""

    uplink: BearerProfile = field(default_factory=BearerProfile)
    downlink: BearerProfile = field(default_factory=BearerProfile)
    ordered: bool = False
    """Nothing overtakes within one bearer, as under TCP.  The documents give every message a latency of its own."""

    overhead: int = 28
    """Bytes added to each message: the headers of IP and UDP."""

    outages: tuple[Outage, ...] = ()
    intermittence: Intermittence | None = None

    def __post_init__(self) -> None:
        if self.overhead < 0:
            raise InvalidInput(f"the overhead cannot be negative, but is {self.overhead!r} bytes")


BYPASS: Final = CellularProfile()
"""BYPASS.KOM 6.1.3."""

_LCN_BEARER: Final = BearerProfile(latency=Uniform(0.1, 0.3))

LCN2016: Final = CellularProfile(uplink=_LCN_BEARER, downlink=_LCN_BEARER)
"""200 ms ± 100 ms (LCN 2016, Table I), each way: a transition takes a round trip of 400 ms there (section IV-C)."""
