"""What a radio is like: ranges, times, rates, overheads and energy of one 802.11 variety, or of Bluetooth, with closed forms for airtime and range.

Powers follow from ranges, because that is what the documents give: reception up to 88 m and interference up to 205 m at
a path loss exponent of 3.8 (BYPASS §6.1.3).  A signal below the interference threshold does not exist for a station:
it neither disturbs nor occupies the medium.  ns-3 says the same with ``RxSensitivity`` = ``CcaEdThreshold`` = interference
threshold and ``MinimumRssi`` = reception threshold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from nearcast.errors import InvalidInput
from nearcast.runtime.energy import BLUETOOTH_LE_ENERGY, WIFI_ENERGY, EnergyProfile

BOLTZMANN: Final = 1.3803e-23  # joule per kelvin, as ns-3 writes it
TEMPERATURE: Final = 290.0  # kelvin, to which noise figures refer

RTS_BYTES: Final = 20
CTS_BYTES: Final = 14
ACK_BYTES: Final = 14

LONGEST_FRAME: Final = 4095
"""Bytes on air, the frame check sequence included: the length field of an OFDM header has 12 bits."""


class Family(IntEnum):
    """How bits become a signal."""

    DSSS = 0  # 802.11 and 802.11b
    OFDM = 1  # 802.11g without protection of 802.11b


DSSS_RATES: Final = (1_000_000, 2_000_000, 5_500_000, 11_000_000)
OFDM_RATES: Final = (6_000_000, 9_000_000, 12_000_000, 18_000_000, 24_000_000, 36_000_000, 48_000_000, 54_000_000)

MANDATORY_RATES: Final = {Family.DSSS: DSSS_RATES, Family.OFDM: (6_000_000, 12_000_000, 24_000_000)}
"""Rates that every station of the family understands (IEEE 802.11-2016, 16.2.3 and 17.2.3)."""

LONG_PREAMBLE_NS: Final = (192_000, 48_000)
"""Of DSSS, and the part of it that is its header (IEEE 802.11-2016, 16.2.2)."""

OFDM_SYMBOL_NS: Final = 4_000
OFDM_SERVICE_AND_TAIL_BITS: Final = 16 + 6


def path_loss_db(distance: float, exponent: float, reference_loss_db: float) -> float:
    """Loss over ``distance`` metres by the log-distance law; within the reference distance of 1 m it stays the same."""
    return reference_loss_db + 10.0 * exponent * math.log10(max(distance, 1.0))


def airtime_ns(family: Family, rate: int, frame_bytes: int, preamble_ns: int, signal_extension_ns: int) -> int:
    """How long a frame occupies the medium: preamble and header, then the bits at ``rate``.

    DSSS rounds up to a whole microsecond, OFDM to a whole symbol (IEEE 802.11-2016, 16.3.4 and 17.4.3).
    """
    bits = 8 * frame_bytes
    if family is Family.DSSS:
        return preamble_ns + -(-bits * 1_000_000 // rate) * 1_000
    bits_per_symbol = rate * OFDM_SYMBOL_NS // 1_000_000_000
    symbols = -(-(bits + OFDM_SERVICE_AND_TAIL_BITS) // bits_per_symbol)
    return preamble_ns + symbols * OFDM_SYMBOL_NS + signal_extension_ns


@dataclass(frozen=True, kw_only=True, slots=True)
class RadioProfile:
    """Everything that distinguishes one kind of radio from another.  Make one with ``wifi_b``, ``wifi_g`` or ``bluetooth_le``."""

    family: Family

    # Propagation and thresholds
    tx_power_dbm: float
    reception_threshold_dbm: float
    interference_threshold_dbm: float
    carrier_sense_threshold_dbm: float
    path_loss_exponent: float = 3.8
    reference_loss_db: float = 46.6777
    noise_figure_db: float = 7.0
    bandwidth_hz: int
    preamble_sinr_db: float = 4.0
    preamble_detection_ns: int = 4_000

    # Medium access
    slot_ns: int
    sifs_ns: int = 10_000
    cw_min: int
    cw_max: int = 1023
    retry_limit: int = 7
    """Attempts at a frame (ns-3: MaxSlrc, MaxSsrc)."""
    rts_threshold: int = 65_535
    """Unicast frames whose bytes on air exceed it are preceded by RTS and CTS."""
    queue_frames: int = 500
    lifetime_ns: int = 500_000_000
    """Frames that waited longer are dropped instead of sent (ns-3: MaxDelay)."""
    eifs_ack_ns: int = 304_000
    """The ACK that is awaited after a frame that could not be read: at the lowest rate of 2.4 GHz, 1 Mbit/s."""

    # Frames
    preamble_ns: int
    header_ns: int
    """The part of ``preamble_ns`` that carries the PLCP header and can be hit by errors."""
    signal_extension_ns: int = 0
    basic_rate: int
    """Bits per second of RTS and CTS, and of broadcasts."""
    broadcast_rate: int | None = None
    """Of broadcasts, where they go at another one.  802.11g may send them as 802.11b does, with a long preamble: everybody can read that, and
    from farther away."""
    data_rate: int
    """Bits per second of unicast data."""
    mac_header_bytes: int = 24
    frame_check_bytes: int = 4
    link_overhead_bytes: int = 8
    """LLC and SNAP."""
    network_overhead_bytes: int = 28
    """IPv4 and UDP."""

    energy: EnergyProfile = WIFI_ENERGY

    def __post_init__(self) -> None:
        rates = DSSS_RATES if self.family is Family.DSSS else OFDM_RATES
        for name in ("basic_rate", "data_rate"):
            if getattr(self, name) not in rates:
                raise InvalidInput(
                    f"{name} {getattr(self, name)} is no rate of {self.family.name}; choose among {', '.join(map(str, rates))}"
                )
        if self.broadcast_rate not in {None, *DSSS_RATES, *rates}:
            raise InvalidInput(f"broadcast_rate {self.broadcast_rate} is no rate of {self.family.name}, nor of DSSS")
        if self.reception_threshold_dbm < self.interference_threshold_dbm:
            raise InvalidInput(
                f"reception threshold {self.reception_threshold_dbm} dBm below interference threshold"
                f" {self.interference_threshold_dbm} dBm: what is received must also be sensed"
            )
        if self.carrier_sense_threshold_dbm > self.reception_threshold_dbm:
            raise InvalidInput(
                f"carrier sense threshold {self.carrier_sense_threshold_dbm} dBm above reception threshold"
                f" {self.reception_threshold_dbm} dBm: a frame that is being received occupies the medium"
            )
        if not 0 < self.cw_min <= self.cw_max:
            raise InvalidInput(f"contention window {self.cw_min}..{self.cw_max}: give 0 < cw_min <= cw_max")
        for name in ("slot_ns", "sifs_ns", "retry_limit", "queue_frames", "lifetime_ns", "bandwidth_hz"):
            if getattr(self, name) <= 0:
                raise InvalidInput(f"{name} is {getattr(self, name)}: must be positive")

    @property
    def difs_ns(self) -> int:
        return self.sifs_ns + 2 * self.slot_ns

    @property
    def eifs_ns(self) -> int:
        """The pause after a frame that could not be read, so that its ACK gets through (IEEE 802.11-2016, 10.3.2.3.7)."""
        return self.sifs_ns + self.eifs_ack_ns + self.difs_ns

    @property
    def noise_dbm(self) -> float:
        """Thermal noise over the bandwidth, plus what the receiver adds."""
        watts = BOLTZMANN * TEMPERATURE * self.bandwidth_hz
        return 10.0 * math.log10(watts * 1e3) + self.noise_figure_db

    @property
    def reception_range(self) -> float:
        """Metres up to which a signal can be received."""
        return self.range_of(self.reception_threshold_dbm)

    @property
    def interference_range(self) -> float:
        """Metres up to which a signal exists."""
        return self.range_of(self.interference_threshold_dbm)

    @property
    def carrier_sense_range(self) -> float:
        """Metres up to which one signal alone makes the medium busy."""
        return self.range_of(self.carrier_sense_threshold_dbm)

    def power_at(self, distance: float) -> float:
        """Received power in dBm at ``distance`` metres."""
        return self.tx_power_dbm - path_loss_db(distance, self.path_loss_exponent, self.reference_loss_db)

    def range_of(self, threshold_dbm: float) -> float:
        """The distance in metres at which the received power is ``threshold_dbm``; the inverse of ``power_at``."""
        loss = self.tx_power_dbm - threshold_dbm - self.reference_loss_db
        return float(max(1.0, 10.0 ** (loss / (10.0 * self.path_loss_exponent))))

    def frame_bytes(self, size: int) -> int:
        """Bytes on air for ``size`` bytes of payload."""
        overhead = self.network_overhead_bytes + self.link_overhead_bytes
        return size + overhead + self.mac_header_bytes + self.frame_check_bytes

    @property
    def rate_of_broadcasts(self) -> int:
        return self.basic_rate if self.broadcast_rate is None else self.broadcast_rate

    def family_at(self, rate: int) -> Family:
        """How bits become a signal at ``rate``: an OFDM radio can send as DSSS does, never the other way round."""
        return Family.DSSS if rate in DSSS_RATES else self.family

    def preamble_at(self, rate: int) -> tuple[int, int]:
        """Nanoseconds of the preamble of a frame at ``rate``, and of the header in it."""
        return (self.preamble_ns, self.header_ns) if self.family_at(rate) is self.family else LONG_PREAMBLE_NS

    def airtime_ns(self, frame_bytes: int, rate: int) -> int:
        return airtime_ns(self.family_at(rate), rate, frame_bytes, self.preamble_at(rate)[0], self.signal_extension_ns)

    def broadcast_ns(self, size: int) -> int:
        """Airtime of a broadcast of ``size`` bytes of payload."""
        return self.airtime_ns(self.frame_bytes(size), self.rate_of_broadcasts)

    def unicast_ns(self, size: int) -> int:
        """Airtime of the data frame of a unicast of ``size`` bytes of payload."""
        return self.airtime_ns(self.frame_bytes(size), self.data_rate)

    @property
    def rts_ns(self) -> int:
        return self.airtime_ns(RTS_BYTES, self.basic_rate)

    @property
    def cts_ns(self) -> int:
        return self.airtime_ns(CTS_BYTES, self.basic_rate)

    @property
    def ack_rate(self) -> int:
        """The highest rate that everybody understands and that is not above that of the data (ibid., 10.7.6.5)."""
        return max(rate for rate in MANDATORY_RATES[self.family] if rate <= self.data_rate)

    @property
    def ack_ns(self) -> int:
        return self.airtime_ns(ACK_BYTES, self.ack_rate)

    @property
    def longest_payload(self) -> int:
        """Bytes that fit into one frame."""
        return LONGEST_FRAME - self.frame_bytes(0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranges:
    """Distances in metres from which powers and thresholds follow."""

    reception: float = 88.0
    interference: float = 205.0
    carrier_sense: float | None = None
    """As far as interference, if not given."""
    power_at_reception_dbm: float = -82.0
    path_loss_exponent: float = 3.8
    reference_loss_db: float = 46.6777

    def __post_init__(self) -> None:
        for distance in (self.reception, self.interference, self.carrier_sense or self.interference):
            if not 1.0 <= distance < math.inf:
                raise InvalidInput(f"a range of {distance} m: ranges are finite and at least 1 m")

    def powers(self) -> dict[str, float]:
        """The fields of a profile that follow."""
        tx_power = self.power_at_reception_dbm + self._loss(self.reception)
        return {
            "tx_power_dbm": tx_power,
            "reception_threshold_dbm": self.power_at_reception_dbm,
            "interference_threshold_dbm": tx_power - self._loss(self.interference),
            "carrier_sense_threshold_dbm": tx_power - self._loss(self.carrier_sense or self.interference),
            "path_loss_exponent": self.path_loss_exponent,
            "reference_loss_db": self.reference_loss_db,
        }

    def _loss(self, distance: float) -> float:
        return path_loss_db(distance, self.path_loss_exponent, self.reference_loss_db)


_WIFI_B: Final[dict[str, Any]] = {
    "family": Family.DSSS,
    "bandwidth_hz": 22_000_000,
    "slot_ns": 20_000,
    "cw_min": 31,
    "preamble_ns": 192_000,
    "header_ns": 48_000,
    "basic_rate": 1_000_000,
    "data_rate": 11_000_000,
}

_WIFI_G: Final[dict[str, Any]] = {
    "family": Family.OFDM,
    "bandwidth_hz": 20_000_000,
    "slot_ns": 9_000,
    "cw_min": 15,
    "preamble_ns": 20_000,
    "header_ns": 4_000,
    "signal_extension_ns": 6_000,
    "basic_rate": 6_000_000,
    "data_rate": 54_000_000,
}


def wifi_b(ranges: Ranges | None = None, **changes: Any) -> RadioProfile:
    """802.11b with long preambles: broadcasts at 1 Mbit/s, unicasts at 11.  ``changes`` replace single fields."""
    return RadioProfile(**{**(ranges or Ranges()).powers(), **_WIFI_B, **changes})


def wifi_g(ranges: Ranges | None = None, **changes: Any) -> RadioProfile:
    """802.11g without 802.11b around: broadcasts at 6 Mbit/s, unicasts at 54 (THYME: ``data_rate=6_000_000``)."""
    return RadioProfile(**{**(ranges or Ranges()).powers(), **_WIFI_G, **changes})


BLE_CO_CHANNEL_DB: Final = 8.0
"""By how much a signal must be stronger than others on its channel: what receivers on the market need, where the standard tolerates up to
21 dB (Bluetooth Core 5, Vol 6, Part A, 4.2)."""

_BLE_POINTER_NS: Final = 136_000
"""ADV_EXT_IND: 17 bytes, preamble included, which say on what other channel the message follows; sent on three primary channels."""

_BLE_PAUSE_NS: Final = 300_000
"""T_MAFS: the least time between such a pointer and what it points to (ibid., Part B, 4.1.2)."""

_BLUETOOTH_LE: Final[dict[str, Any]] = {
    # Bits come at 1 Mbit/s, as those of the slowest Wi-Fi: its closed form for airtime holds.  Whether a frame survives others is decided
    # by the ratio above; the Barker code of that Wi-Fi would be more robust than GFSK, but what is above 8 dB survives either way.
    "family": Family.DSSS,
    "bandwidth_hz": 1_000_000,
    "basic_rate": 1_000_000,
    "data_rate": 1_000_000,
    "preamble_sinr_db": BLE_CO_CHANNEL_DB,
    # Advertisers sense nothing: they wait for a random while of up to 10 ms (advDelay), in steps of 625 µs here, and while they receive.
    "slot_ns": 625_000,
    "sifs_ns": 150_000,
    "cw_min": 15,
    "cw_max": 15,
    "preamble_ns": 3 * _BLE_POINTER_NS + _BLE_PAUSE_NS + 8_000,
    "header_ns": _BLE_POINTER_NS,
    "mac_header_bytes": 16,  # access address, header, extended header with address and set
    "frame_check_bytes": 3,
    "link_overhead_bytes": 4,  # length, type and company of the advertising data
    "network_overhead_bytes": 0,
    "energy": BLUETOOTH_LE_ENERGY,
}


def bluetooth_le(
    *,
    tx_power_dbm: float = 10.0,
    sensitivity_dbm: float = -93.0,
    path_loss_exponent: float = 3.8,
    reference_loss_db: float = 46.6777,
    **changes: Any,
) -> RadioProfile:
    """Bluetooth Low Energy, extended advertising at 1 Mbit/s, in the streets of the documents: a link budget of 103 dB reaches 30 m.

    10 dBm is the most that Bluetooth 4 allows, -93 dBm what receivers of phones manage (the standard asks for -70).  A signal can
    disturb as long as it is not weaker by ``BLE_CO_CHANNEL_DB`` than the weakest that is received.
    """
    powers = {
        "tx_power_dbm": tx_power_dbm,
        "reception_threshold_dbm": sensitivity_dbm,
        "interference_threshold_dbm": sensitivity_dbm - BLE_CO_CHANNEL_DB,
        "carrier_sense_threshold_dbm": sensitivity_dbm,
        "path_loss_exponent": path_loss_exponent,
        "reference_loss_db": reference_loss_db,
    }
    return RadioProfile(**{**powers, **_BLUETOOTH_LE, **changes})
