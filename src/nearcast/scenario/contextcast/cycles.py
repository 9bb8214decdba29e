"""So many updates and messages in each cycle (4.5.2, 5.4.1).  A cycle is a second here; the document's simulator has no seconds.

70 % of the updates change one attribute of somebody; if that is the place, it goes to one of the ten nearest access networks.
30 % replace somebody by somebody else.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

import numpy as np

from nearcast.matching.entries import EntryTable, questions
from nearcast.model.area import Box
from nearcast.model.event import Event
from nearcast.model.history import POSITION
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.model.values import Value
from nearcast.overlay.handles import Handle
from nearcast.overlay.topology.models import Layout
from nearcast.scenario.contextcast.attributes import Model
from nearcast.scenario.contextcast.audit import Audit
from nearcast.scenario.contextcast.network import RouterNetwork
from nearcast.scenario.contextcast.recording import Told
from nearcast.scenario.contextcast.walking import TOPIC

CHANGED: Final = 0.7
NEAREST: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleSettings:
    clients: int
    updates: float
    """In a cycle (r_u)."""

    messages: float
    """In a cycle (r_m)."""

    senders: tuple[int, ...]
    """Routers."""

    audited: float = 0.0
    """The share of messages that are audited."""


class Cycles:
    """Clients by number, each with one context at one of the access networks."""

    def __init__(
        self, network: RouterNetwork, layout: Layout, areas: dict[int, Box], model: Model, settings: CycleSettings
    ) -> None:
        self.network: Final = network
        self.audit: Final = Audit(network)
        self._told: Final = Told(network)
        self._areas: Final = areas
        """By router, of those that serve clients."""

        self._model: Final = model
        self._settings: Final = settings
        self._random: Final[Random] = network.simulation.random.stream("cycles")
        self._access: Final = sorted(areas)
        self._near: Final = _nearest(layout, self._access)
        self._contexts: Final[list[dict[str, Value]]] = []
        self._at: Final[list[int]] = []
        self._handles: Final[list[Handle]] = []
        self._since: Final[list[Instant]] = []
        self._truth: Final[EntryTable[int]] = EntryTable()
        self._cycle = self._sent = 0
        for _ in range(settings.clients):
            router = self._random.choice(self._access)
            self._handles.append("")
            self._contexts.append({})
            self._at.append(router)
            self._since.append(0)
            self._appear(len(self._contexts) - 1, router, model.context(self._random, areas[router]))

    def run(self, cycles: int) -> None:
        """Let so many pass."""
        for _ in range(cycles):
            start = self.network.simulation.time
            for _ in range(self._number(self._settings.updates)):
                self._later(start, self._update)
            for _ in range(self._number(self._settings.messages)):
                self._later(start, self._publish)
            self.network.run(1.0)
            self._cycle += 1

    def _later(self, start: Instant, what: object) -> None:
        self.network.simulation.at(start + int(self._random.random() * MICROSECONDS), what)  # type: ignore[arg-type]

    def _number(self, rate: float) -> int:
        whole = int(rate)
        return whole + (self._random.random() < rate - whole)

    def _update(self, _: object) -> None:
        random = self._random
        client = random.randrange(len(self._contexts))
        changed = random.random() < CHANGED
        context = self._model.changed(random, self._contexts[client]) if changed else None
        if context is not None:
            self._set(client, context)
            self.network.update(self._handles[client], context)
            self._told.context(f"c{client}", context)
            return
        self.network.remove(self._handles[client])
        self._told.went(f"c{client}")
        if changed:
            router = random.choice(self._near[self._at[client]])
            self._appear(client, router, {**self._contexts[client], POSITION: self._areas[router]})
        else:
            router = random.choice(self._access)
            self._appear(client, router, self._model.context(random, self._areas[router]))

    def _appear(self, client: int, router: int, context: dict[str, Value]) -> None:
        self._set(client, context)
        self._at[client] = router
        self._handles[client] = self.network.register(router, context)
        self._told.came(f"c{client}", self._handles[client])
        self._told.context(f"c{client}", context)

    def _set(self, client: int, context: dict[str, Value]) -> None:
        self._contexts[client] = context
        self._since[client] = self.network.simulation.time
        self._truth.put(client, 0, context)

    def _publish(self, _: object) -> None:
        settings, random = self._settings, self._random
        sender = random.choice(settings.senders)
        self._sent += 1
        now = self.network.simulation.time
        event = Event(f"m{self._sent}", TOPIC, now, to=self._model.message(random, sender, self._cycle))
        if random.random() < settings.audited:
            self._expect(event)
        self._told.published(event)
        self.network.publish(sender, event)

    def _expect(self, event: Event) -> None:
        before = self.network.simulation.time - self.audit.settling
        found = [each for each in self._truth.keys(questions(event.conjuncts)) if self._since[each] <= before]
        since = {self._handles[each]: (each, self._since[each]) for each in found}

        def settled(handle: Handle) -> bool:
            client, time = since[handle]
            return self._since[client] == time

        self.audit.expect(event.id, since, settled)


def _nearest(layout: Layout, access: list[int]) -> dict[int, list[int]]:
    """By access network: the nearest others."""
    places = layout.places[access]
    found = {}
    for number, router in enumerate(access):
        away = np.hypot(*(places - places[number]).T)
        order = np.argsort(away, kind="stable")[1 : NEAREST + 1].tolist()
        found[router] = [access[each] for each in order] or [router]
    return found
