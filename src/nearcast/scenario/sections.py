"""The sections of which there is one variety each.  Defaults are those of BYPASS.KOM 6.1."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from nearcast.model.time import LARGEST, MICROSECONDS, Instant
from nearcast.runtime.ports import Accuracy
from nearcast.runtime.simulation.cellular_profile import BearerProfile, CellularProfile, Intermittence, Outage
from nearcast.runtime.simulation.distributions import Distribution
from nearcast.runtime.simulation.radio.profile import (
    DSSS_RATES,
    OFDM_RATES,
    RadioProfile,
    Ranges,
    bluetooth_le,
    wifi_b,
    wifi_g,
)
from nearcast.scenario.kinds import (
    Count,
    Flag,
    Moment,
    Number,
    OneOf,
    Optional,
    Quantity,
    Range,
    Row,
    Several,
    Text,
    entry,
)
from nearcast.scenario.problems import Contradiction
from nearcast.scenario.quantities import BIT_RATE, DURATION, LENGTH, POWER, PROBABILITY, SIZE
from nearcast.scenario.spreads import Spread
from nearcast.scenario.tables import Section, Table

# A millisecond at least: what happens again and again must leave time for the rest.
_SPAN: Final = Quantity(DURATION, Range(least=1e-3))
_SHARE: Final = Quantity(PROBABILITY, Range(least=0.0, most=1.0))
_BANDWIDTH: Final = Quantity(BIT_RATE, Range(least=1))
_BYTES: Final = Quantity(SIZE, Range(least=1))
_RADIO_RANGE: Final = Quantity(LENGTH, Range(least=1.0, most=100_000.0))
_YEAR: Final = 366 * 86_400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Run(Section):
    """The run as a whole."""

    title: str = entry(Text(), "AR game in the city centre", "what it shows, in a few words")
    duration: float = entry(Quantity(DURATION, Range(least=1e-3, most=_YEAR)), "25 min", "how long it lasts")
    start: Instant = entry(Moment(), "2026-01-01T00:00:00Z", "the instant at which it starts")
    position_samples: float = entry(_SPAN, "5 s", "how often everybody's true position is recorded")
    metric_samples: float = entry(_SPAN, "10 s", "how often metrics are sampled")

    def contradictions(self) -> Iterator[Contradiction]:
        if self.start + self.duration * MICROSECONDS >= LARGEST:
            yield Contradiction(("start", "duration"), "the run would last beyond the year 9999; start it earlier")


@dataclass(frozen=True, kw_only=True, slots=True)
class SensorErrors(Section):
    """Of each accuracy that may be asked for, the standard deviation of a fix in each of east and north."""

    low: float = entry(Quantity(LENGTH, Range(least=0.0)), "0 m", "of accuracy 'low'")
    medium: float = entry(Quantity(LENGTH, Range(least=0.0)), "0 m", "of accuracy 'medium'")
    high: float = entry(Quantity(LENGTH, Range(least=0.0)), "0 m", "of accuracy 'high'")

    def contradictions(self) -> Iterator[Contradiction]:
        if not self.low >= self.medium >= self.high:
            yield Contradiction(("low", "medium", "high"), "a lower accuracy has a larger error, or an equal one")


@dataclass(frozen=True, kw_only=True, slots=True)
class Clients(Section):
    """Those who carry a phone."""

    number: int = entry(Count(Range(least=1, most=1_000_000)), 297, "how many there are")
    location_interval: float = entry(_SPAN, "5 s", "how often each asks its sensor where it is")
    accuracy: str = entry(OneOf(tuple(level.value for level in Accuracy)), "high", "how well it asks to know it")
    sensor_errors: SensorErrors = entry(Table(SensorErrors), {}, "how far off fixes are")

    def names(self) -> tuple[str, ...]:
        """Of their hosts: ``client-000`` and so on, in the order of the alphabet as well."""
        digits = len(str(self.number - 1))
        return tuple(f"client-{index:0{digits}}" for index in range(self.number))

    def errors(self) -> dict[Accuracy, float]:
        return {level: getattr(self.sensor_errors, level.value) for level in Accuracy}


@dataclass(frozen=True, kw_only=True, slots=True)
class Cellular(Section):
    """The cellular network.  It is reliable and never overloaded, as in the documents, unless told otherwise."""

    enabled: bool = entry(Flag(), True, "whether there is one")
    latency: Distribution = entry(
        Spread(DURATION, Range(least=0.0)), "uniform 75 ms .. 125 ms", "between a client and the cloud, each way"
    )
    bandwidth_up: int = entry(_BANDWIDTH, "1 Mbit/s", "of each client, to the cloud")
    bandwidth_down: int = entry(_BANDWIDTH, "1 Mbit/s", "of each client, from the cloud")
    queue: int = entry(_BYTES, "256 kB", "how much may wait for each client and direction; what exceeds it is dropped")
    loss: float = entry(_SHARE, 0, "probability that a message is lost on its way to or from a client")
    cell_bandwidth_up: int | None = entry(
        Optional(_BANDWIDTH), None, "what all clients share, to the cloud; unlimited if not given"
    )
    cell_bandwidth_down: int | None = entry(
        Optional(_BANDWIDTH), None, "what all clients share, from the cloud; unlimited if not given"
    )
    cell_queue: int = entry(_BYTES, "2 MB", "how much may wait for the bandwidth that is shared, for each direction")
    ordered: bool = entry(Flag(), False, "whether messages never overtake each other, as under TCP")
    overhead: int = entry(Quantity(SIZE, Range(least=0)), "28 B", "headers that are added to each message")
    outages: tuple[tuple[float, float], ...] = entry(
        Several(Row((Quantity(DURATION, Range(least=0.0)), _SPAN), '["5 min", "6 min"]')),
        [],
        "times from and until which nobody is reached, counted from the start",
    )
    connected: float | None = entry(
        Optional(_SPAN), None, "mean time until a client loses the network; never if not given"
    )
    disconnected: float | None = entry(Optional(_SPAN), None, "mean time until it has it again")

    def contradictions(self) -> Iterator[Contradiction]:
        for start, end in self.outages:
            if end <= start:
                yield Contradiction(("outages",), f"an outage from {start:g} s until {end:g} s ends before it starts")
        if (self.connected is None) != (self.disconnected is None):
            given, missing = ("disconnected", "connected") if self.connected is None else ("connected", "disconnected")
            yield Contradiction((given,), f"means nothing without '{missing}'; give both or none")

    def profile(self) -> CellularProfile:
        intermittence = None
        if self.connected is not None and self.disconnected is not None:
            intermittence = Intermittence(self.connected, self.disconnected)
        return CellularProfile(
            uplink=self._bearer(self.bandwidth_up, self.cell_bandwidth_up),
            downlink=self._bearer(self.bandwidth_down, self.cell_bandwidth_down),
            ordered=self.ordered,
            overhead=self.overhead,
            outages=tuple(Outage(start, end) for start, end in self.outages),
            intermittence=intermittence,
        )

    def _bearer(self, bandwidth: int, cell_bandwidth: int | None) -> BearerProfile:
        return BearerProfile(
            latency=self.latency,
            bandwidth=bandwidth,
            queue_bytes=self.queue,
            loss=self.loss,
            cell_bandwidth=cell_bandwidth,
            cell_queue_bytes=self.cell_queue,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Radio(Section):
    """The radio between those who are near each other: Wi-Fi in ad hoc mode (BYPASS.KOM 6.1.3)."""

    enabled: bool = entry(Flag(), True, "whether phones have one")
    standard: str = entry(OneOf(("802.11b", "802.11g")), "802.11b", "which kind of Wi-Fi")
    range: float = entry(_RADIO_RANGE, "88 m", "up to which a message can be received")
    interference: float = entry(_RADIO_RANGE, "205 m", "up to which a sender disturbs others")
    carrier_sense: float | None = entry(
        Optional(_RADIO_RANGE), None, "up to which a sender makes others wait; as far as it disturbs if not given"
    )
    exponent: float = entry(Number(Range(least=1.0, most=10.0)), 3.8, "of the path loss: how fast signals fade")
    sensitivity: float = entry(
        Quantity(POWER, Range(least=-200.0, most=100.0)),
        "-82 dBm",
        "the power that is received at the end of the range",
    )
    broadcast_rate: int | None = entry(
        Optional(_BANDWIDTH), None, "of broadcasts; the slowest of the standard if not given"
    )
    unicast_rate: int | None = entry(
        Optional(_BANDWIDTH), None, "of messages to one receiver; the fastest of the standard if not given"
    )
    rts: bool = entry(Flag(), True, "whether messages to one receiver are announced (RTS/CTS)")
    retries: int = entry(Count(Range(least=1, most=1_000)), 7, "how often a message to one receiver is tried")
    queue: int = entry(Count(Range(least=1, most=1_000_000)), 500, "how many messages may wait on a phone")
    lifetime: float = entry(
        Quantity(DURATION, Range(least=1e-3, most=3_600.0)), "500 ms", "a message that has waited longer is dropped"
    )

    def contradictions(self) -> Iterator[Contradiction]:
        if self.range > self.interference:
            yield Contradiction(
                ("range", "interference"),
                f"reaches {self.range:g} m, but interference only {self.interference:g} m; what is received also disturbs",
            )
        if self.carrier_sense is not None and self.carrier_sense < self.range:
            yield Contradiction(
                ("carrier_sense", "range"),
                f"reaches {self.carrier_sense:g} m, less than the range, {self.range:g} m; who receives must also wait",
            )
        rates = DSSS_RATES if self.standard == "802.11b" else OFDM_RATES
        for key in ("broadcast_rate", "unicast_rate"):
            rate = getattr(self, key)
            if rate is not None and rate not in rates:
                known = ", ".join(BIT_RATE.text(known) for known in rates)
                yield Contradiction(
                    (key, "standard"), f"{BIT_RATE.text(rate)} is no rate of {self.standard}; choose among {known}"
                )

    @property
    def longest_message(self) -> int:
        """Bytes that can be sent at once."""
        return self._standard()().longest_payload

    def profile(self) -> RadioProfile:
        """The radio of that standard, with powers that follow from the ranges."""
        ranges = Ranges(
            reception=self.range,
            interference=self.interference,
            carrier_sense=self.carrier_sense,
            power_at_reception_dbm=self.sensitivity,
            path_loss_exponent=self.exponent,
        )
        changes: dict[str, Any] = {
            "retry_limit": self.retries,
            "queue_frames": self.queue,
            "lifetime_ns": round(self.lifetime * 1e9),
        }
        for name, power in ranges.powers().items():
            # No threshold is above that of reception, not even by a rounding where two ranges are equal.
            changes[name] = min(power, self.sensitivity) if name.endswith("threshold_dbm") else power
        if self.broadcast_rate is not None:
            changes["basic_rate"] = self.broadcast_rate
        if self.unicast_rate is not None:
            changes["data_rate"] = self.unicast_rate
        if self.rts:
            changes["rts_threshold"] = 0
        return self._standard()(**changes)

    def _standard(self) -> Callable[..., RadioProfile]:
        return wifi_b if self.standard == "802.11b" else wifi_g


@dataclass(frozen=True, kw_only=True, slots=True)
class Bluetooth(Section):
    """The other radio, where a transport needs it: Bluetooth Low Energy.  Its range follows from the powers."""

    power: float = entry(Quantity(POWER, Range(least=-20.0, most=20.0)), "10 dBm", "with which phones send")
    sensitivity: float = entry(
        Quantity(POWER, Range(least=-120.0, most=-70.0)), "-93 dBm", "the least power that can be received"
    )
    exponent: float = entry(Number(Range(least=1.0, most=10.0)), 3.8, "of the path loss: how fast signals fade")

    def profile(self) -> RadioProfile:
        return bluetooth_le(tx_power_dbm=self.power, sensitivity_dbm=self.sensitivity, path_loss_exponent=self.exponent)


@dataclass(frozen=True, kw_only=True, slots=True)
class Delivery(Section):
    """How events get to those whom they concern."""

    mechanism: str = entry(
        OneOf(("cloud", "adhoc", "offload", "augment", "gateway", "broadcast", "both")),
        "cloud",
        "by way of a broker; from host to host; the latter for what happened where its publisher was, the former for the rest"
        " (offload) or for all (augment), which may also reach some by way of others (gateway); to those in radio range; or both ways",
    )
    forget_after: float = entry(_SPAN, "60 s", "the broker takes a client for gone that was silent for so long")
    piggyback: float = entry(
        Quantity(DURATION, Range(least=0.0)),
        "0 s",
        "how long a client's position waits for an event that can take it along",
    )
