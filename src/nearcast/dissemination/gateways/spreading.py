"""From a gateway to those near it: a second ad hoc dissemination, beside that for local events (BYPASS.KOM 4.4).

It has a proxy and a port of its own, so that plans change one and leave the other, and no geofence: whom an event is for was decided at
the broker.  What is heard goes to the gateway's part (``client``), which hands it to the inbox and acknowledges.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from nearcast.dissemination.adhoc.carrier import AdHoc, AdHocSettings
from nearcast.dissemination.wire import EventMessage
from nearcast.model.event import Event
from nearcast.runtime.ports import Address
from nearcast.transition.specification import MechanismSpec

GATEWAY: Final = "gw"
"""The proxy on every client."""

PORT: Final = 6
UNICAST: Final = "UNICAST"
"""The one mechanism for which gateways must be told whom an event is for."""


def gateway_settings(mechanism: MechanismSpec, *, self_healing: bool = True, foreign: bool = True) -> AdHocSettings:
    return AdHocSettings(mechanism, GATEWAY, PORT, geofence=False, self_healing=self_healing, foreign=foreign)


class GatewaySpreading(AdHoc):
    """Before the ``GatewayClient`` among the components of its host."""

    TO_INBOX: ClassVar = False
    arrived: Callable[[EventMessage, int], None]

    def spread(self, message: EventMessage, targets: tuple[Address, ...] | None) -> None:
        self.disseminate(message, targets or ())

    def carry(self, event: Event, *, local: bool) -> None:
        """Events of this host go other ways."""

    def _hand_over(self, message: EventMessage, _event: Event, hops: int) -> bool:
        self.arrived(message, hops)
        return True
