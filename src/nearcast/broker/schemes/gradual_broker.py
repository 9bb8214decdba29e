"""The broker's filter schemes, exchanged without keeping the loop from anything else for long.

A transition of a thousand clients is seconds of work, most of it to index their subscriptions anew.  It is done in small steps, and in
between everybody is heard and served.  Of plans for some clients only those for one or a few are common: they are done in one go.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final

from nearcast.broker.schemes.gradual_exchange import GradualExchange
from nearcast.dissemination.handed_broker import HandedBroker, TransitionDone
from nearcast.dissemination.scheme_broker import SchemeBroker
from nearcast.errors import TransitionFailed
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.ports import Address, Cancellable
from nearcast.transition.specification import MechanismSpec

log: Final = logging.getLogger(__name__)
AT_ONCE: Final = 4
"""Clients of one step: where each is in a hundred cells, these take some ten milliseconds."""

STRETCH: Final = MICROSECONDS // 100
"""No further step after that time, before others have had their turn."""

PAUSE: Final = 0.0
"""Seconds until the next step: just one turn of the loop."""


class _Schemes(SchemeBroker):
    exchange_type = GradualExchange


class GradualBroker(HandedBroker):
    schemes_type = _Schemes
    _next: Cancellable | None = None
    _then: tuple[Callable[[], None], ...] = ()

    @property
    def remaining(self) -> int:
        """Clients that a transition for everybody has not reached yet."""
        return self.exchange.remaining

    def when_moved(self, then: Callable[[], None]) -> None:
        """As soon as nobody remains."""
        if self.remaining:
            self._then = (*self._then, then)
        else:
            then()

    def scheme_of(self, client: Address) -> MechanismSpec:
        """To which it belongs, or is about to be brought."""
        return self.exchange.coming_to(client)

    def transition(
        self, scheme: MechanismSpec, clients: Iterable[Address] | None = None, *, region: str | None = None
    ) -> None:
        if clients is not None or len(self.clients) <= AT_ONCE:
            super().transition(scheme, clients, region=region)
            return
        before, source, back = self.exchange.memory.clock, self.exchange.scheme, self.aside()
        moved = self.exchange.begin(scheme, AT_ONCE)
        if self._next is not None:
            self._next.cancel()  # of a transition before: this one has taken on who remained
        if self.exchange.memory.clock > before:
            self.transitions_done += 1
            self.transitions.append(
                TransitionDone(
                    self._host.now(), scheme, len(self.clients), everybody=True, before=source, order=self.order
                )
            )
            self._changed(moved)
        try:
            back()
        finally:
            self._go_on()

    @property
    def exchange(self) -> GradualExchange:
        assert isinstance(self.schemes.exchange, GradualExchange)
        return self.schemes.exchange

    def _go_on(self) -> None:
        exchange, until = self.exchange, self._host.now() + STRETCH
        try:
            while exchange.remaining:
                self._changed(exchange.advance(AT_ONCE))
                if self._host.now() >= until and exchange.remaining:
                    self._next = self._host.timers.after(PAUSE, self._go_on)
                    return
        except TransitionFailed as error:
            log.warning("not everybody could be brought to another filter scheme: %s", error)
            exchange.abandon()
        except Exception:  # of a scheme that another package has brought, perhaps: nobody may wait for ever
            log.exception("not everybody could be brought to another filter scheme")
            exchange.abandon()
        waiting, self._then, self._next = self._then, (), None
        for then in waiting:
            then()
