"""The radio of THYME's evaluation (6.2), with a count of what is sent on behalf of others, and with losses beyond its own."""

from __future__ import annotations

from typing import Any, Final

from nearcast.crowdstore.geographic.messages import Packet
from nearcast.runtime.messages import Message, kind_in, kind_of
from nearcast.runtime.ports import Address, Sending
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.motion import Motion
from nearcast.runtime.simulation.network import SimulatedLink
from nearcast.runtime.simulation.radio.network import RadioNetwork
from nearcast.runtime.simulation.radio.profile import RadioProfile, wifi_g
from nearcast.runtime.simulation.radio.reports import Outcome

RANGE: Final = 113.0
"""Metres: two hosts anywhere in two neighbouring cells of 40 m are no farther apart; roughly the range of the paper's radio, and of this one."""

PROFILE: Final = wifi_g(
    data_rate=6_000_000,
    rts_threshold=1_500,
    tx_power_dbm=16.0206 + 1.0 + 1.0,  # with the gains of both antennas
    path_loss_exponent=3.0,
    reference_loss_db=46.6777,
    noise_figure_db=7.0,
    reception_threshold_dbm=-96.0,
    carrier_sense_threshold_dbm=-99.0,
    interference_threshold_dbm=-99.0,
    preamble_sinr_db=-10.0,
)
"""What the paper does not mention is as in ns-3.27 (6.2), whose ``YansWifiPhy`` has these powers and thresholds.

The edge of such a radio is not sharp.  A frame of 150 bytes arrives from 100 m nearly always, from 113 m in 97 % of all cases, from 120 m in
69 %, and never from 130 m; what else is on air brings it nearer.  ns-3.27 synchronises with every frame above the first threshold, and
the bits then decide.  Signals below the last one do not exist here, but do there: they are a third of the noise, or less.

Broadcasts go at 6 Mbit/s, too: at the 1 Mbit/s that ns-3 chooses where nobody does, they reach half as far again as the unicasts, DSDV finds
neighbours that it cannot send to, and more than half of PL/SG's notifications get lost, where the paper has above 94 % (``sweep``, TH1.8).
"""

CONTROL: Final = frozenset({"crowd-routes", "crowd-at"})
"""Kinds of messages that only routing needs: tables of DSDV, beacons of cells."""

_ON_AIR: Final = (Outcome.SENT, Outcome.ACKNOWLEDGED, Outcome.RETRIES_EXHAUSTED)


def source(message: Any) -> str | None:
    """Who said it first, of packets for one host or cell."""
    found = getattr(message, "source", None)
    return found if isinstance(found, str) else None


def flooder(message: Any) -> str | None:
    """And of floods: the owner of what they are about."""
    about = getattr(message, "interest", message)
    owner = getattr(getattr(about, "key", None), "owner", None)
    return owner if isinstance(owner, str) else None


CONTENT: Final = frozenset({"crowd-chunk", "crowd-fetched"})
"""Kinds that carry a piece of an object to whoever downloads it."""


class CountingRadio(RadioNetwork):
    """Of all frames that arrive at a host, the share ``loss`` gets lost between radio and application, although it was acknowledged.

    Of broadcasts, which nobody acknowledges, ``broadcast_loss`` if that is given.
    """

    def __init__(
        self,
        simulation: Simulation,
        profile: RadioProfile,
        motion: Motion,
        loss: float = 0.0,
        broadcast_loss: float | None = None,
    ) -> None:
        super().__init__(simulation, profile, motion)
        self.forwarded = self.flooded = 0
        """Bytes of others, once for each hop: routed, and sent on in a flood.

        The paper says that DCS forwards more than PL/SG because it publishes to others (6.3): so it cannot count floods, which are more than that.
        """

        self.pieces = self.hops = 0
        """Pieces of objects that were sent, and how often."""

        self._loss: Final = loss
        self._broadcast_loss: Final = loss if broadcast_loss is None else broadcast_loss
        self._losses: Final = simulation.random.stream("losses")

    def post(self, link: SimulatedLink, to: Address | None, port: int, message: Message) -> Sending:
        first = source(message)
        if first is not None:
            own = first == link.host
            if not own:
                self.forwarded += self.parcel(link, to, port, message).size
            if self._carries(message):
                self.hops += 1
                self.pieces += own
        elif to is None and flooder(message) not in (None, link.host):
            self.flooded += self.parcel(link, to, port, message).size
        return super().post(link, to, port, message)

    def _carries(self, message: Message) -> bool:
        if isinstance(message, Packet):
            return kind_in(message.payload) in CONTENT
        return kind_of(message) in CONTENT

    def _deliver(self, key: int, receivers: list[int]) -> None:
        loss = self._broadcast_loss if self._on_air[key].receiver is None else self._loss
        if loss:
            random = self._losses.random
            receivers = [node for node in receivers if random() >= loss]
            if not receivers:
                self._heard[key] = 0
                return
        super()._deliver(key, receivers)

    def numbers(self) -> dict[str, float]:
        """Retransmissions are data frames on air beyond the first attempt at each."""
        counted = self.statistics()
        control = sum(row.bytes for row in self.traffic() if row.direction == "sent" and row.kind in CONTROL)
        return {
            "bytes sent": counted.bytes_sent,
            "bytes forwarded": self.forwarded,
            "bytes flooded": self.flooded,
            "download hops": self.hops / self.pieces if self.pieces else 0.0,
            "control bytes": control,
            "control share": control / counted.bytes_sent if counted.bytes_sent else 0.0,
            "retransmissions": max(0, counted.data_sent - sum(counted.outcomes.get(it, 0) for it in _ON_AIR)),
            "retries exhausted": counted.outcomes.get(Outcome.RETRIES_EXHAUSTED, 0),
            "expired": counted.outcomes.get(Outcome.EXPIRED, 0),
            "queue full": counted.queue_full,
        }
