"""Other ways to select gateways, and to pass events on from them, at set times (BYPASS.KOM 4.3.4).

Which algorithm selects is the broker's affair alone, and costs no message.  How gateways reach those near them is known to all clients,
who are told by a plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from nearcast.dissemination.broker_settings import EVERYBODY
from nearcast.dissemination.gateways.broker import ByGateways
from nearcast.dissemination.gateways.registry import PROXY
from nearcast.dissemination.gateways.spreading import GATEWAY, UNICAST
from nearcast.dissemination.planned_broker import PlannedBroker
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.host import Component, Host
from nearcast.runtime.ports import Cancellable
from nearcast.transition.coordinator import UNDERWAY
from nearcast.transition.engine import HostEngine
from nearcast.transition.plan import Exchange
from nearcast.transition.specification import MechanismSpec


@dataclass(frozen=True, slots=True)
class GatewayEntry:
    """So many seconds after the start of the timetable: that algorithm, that mechanism, or both."""

    seconds: float
    selection: MechanismSpec | None = None
    mechanism: MechanismSpec | None = None


class GatewayTimetable(Component):
    """After ``HostEngine``, ``TransitionCoordinator`` and ``PlannedBroker`` among the components of the broker's host."""

    def __init__(self, entries: Sequence[GatewayEntry], start: Instant, gateways: ByGateways) -> None:
        """A broker that restarts takes up what the entries before said of it; clients know what they were told."""
        self._entries: Final = sorted(entries, key=lambda entry: entry.seconds)
        self._start: Final = start
        self._gateways: Final = gateways
        self._second: Cancellable | None = None
        self._host: Host

    def start(self, host: Host) -> None:
        self._host = host
        elapsed = (host.now() - self._start) / MICROSECONDS
        for entry in self._entries:
            if entry.seconds >= elapsed:
                host.timers.after(entry.seconds - elapsed, lambda entry=entry: self._execute(entry))  # type: ignore[misc]
            else:
                self._select(entry.selection)
                self._address(entry.mechanism)

    def _execute(self, entry: GatewayEntry) -> None:
        self._select(entry.selection)
        if entry.mechanism is None:
            return
        # With UNICAST a gateway reaches nobody of whom it was not told; all others do without: addresses come first, and go last.
        steps = [self._address, self._tell] if entry.mechanism.name == UNICAST else [self._tell, self._address]
        if self._second is not None:
            # What an entry of less than a second ago had still to do is not wanted any more.
            self._second.cancel()
        steps[0](entry.mechanism)
        self._second = self._host.timers.after(UNDERWAY, lambda: steps[1](entry.mechanism))

    def _select(self, selection: MechanismSpec | None) -> None:
        if selection is not None:
            self._host.component(HostEngine).engine.execute(PROXY, selection)

    def _tell(self, mechanism: MechanismSpec | None) -> None:
        if mechanism is not None:
            broker = self._host.component(PlannedBroker)
            broker.exchange.tell([Exchange(GATEWAY, mechanism)], broker.clients, EVERYBODY)

    def _address(self, mechanism: MechanismSpec | None) -> None:
        if mechanism is not None:
            self._gateways.settings = replace(self._gateways.settings, addressed=mechanism.name == UNICAST)
