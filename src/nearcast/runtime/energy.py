"""What sending, receiving and listening cost the battery, by kind of radio.

The model is linear, as measured cards are (Feeney and Nilsson, Investigating the energy consumption of a wireless network interface in an
ad hoc networking environment, INFOCOM 2001): so much for each message, so much for each of its bytes, both on top of what it costs to
be there and listen.  A radio on which nobody listens is off.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from nearcast.errors import InvalidInput
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.links import SENT, Traffic


@dataclass(frozen=True, kw_only=True, slots=True)
class EnergyProfile:
    """Joules and watts of one kind of radio."""

    listening_watts: float
    sent_message_joules: float
    sent_byte_joules: float
    received_message_joules: float
    received_byte_joules: float

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not 0.0 <= getattr(self, name) < float("inf"):
                raise InvalidInput(f"{name} is {getattr(self, name)}: energy is finite and not negative")

    def spent(self, traffic: Iterable[Traffic], listened: int) -> Spent:
        """For these rows of the books, and so many microseconds of listening."""
        sent = received = 0.0
        for row in traffic:
            if row.direction == SENT:
                sent += row.messages * self.sent_message_joules + row.bytes * self.sent_byte_joules
            else:
                received += row.messages * self.received_message_joules + row.bytes * self.received_byte_joules
        return Spent(sent, received, listened / MICROSECONDS * self.listening_watts)


@dataclass(frozen=True, slots=True)
class Spent:
    """Joules."""

    sent: float
    received: float
    listening: float

    @property
    def joules(self) -> float:
        return self.sent + self.received + self.listening


WIFI_ENERGY: Final = EnergyProfile(
    # Feeney and Nilsson, broadcasts of a 2 Mbit/s card: 1.9 µJ per byte and 266 µJ to send, 0.5 and 56 to receive, 843 mW idle.
    listening_watts=0.843,
    sent_message_joules=266e-6,
    sent_byte_joules=1.9e-6,
    received_message_joules=56e-6,
    received_byte_joules=0.5e-6,
)

_BLE_VOLTS: Final = 3.0
_BLE_RADIO_AMPERES: Final = 17.5e-3
"""Of a CC2541, while it sends at 0 dBm as while it receives (Kamath and Lindh, Measuring Bluetooth Low Energy power consumption, TI AN092)."""

_BLE_PROCESSING: Final = 6.0e-3 * 400e-6 + 7.4e-3 * (340e-6 + 1_280e-6) + 4.1e-3 * 160e-6
"""Coulombs around each event of the radio (ibid.): waking up, before, after, and before it sleeps."""

_BLE_BYTE_SECONDS: Final = 8e-6
_BLE_POINTER_SECONDS: Final = 3 * 136e-6
"""Three packets on the primary channels say where the message is (``radio.profile.bluetooth_le``)."""

BLUETOOTH_LE_ENERGY: Final = EnergyProfile(
    listening_watts=_BLE_VOLTS * _BLE_RADIO_AMPERES,
    sent_message_joules=_BLE_VOLTS * (_BLE_PROCESSING + _BLE_RADIO_AMPERES * _BLE_POINTER_SECONDS),
    sent_byte_joules=_BLE_VOLTS * _BLE_RADIO_AMPERES * _BLE_BYTE_SECONDS,
    # The radio draws the same whether it receives or waits for something to receive: only what follows is more.
    received_message_joules=_BLE_VOLTS * _BLE_PROCESSING,
    received_byte_joules=0.0,
)
