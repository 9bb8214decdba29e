"""A town whose routers keep messages for whoever will be there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.overlay.temporal.worlds import Town

from nearcast.model.area import Area
from nearcast.model.event import Event
from nearcast.model.temporal import TemporalPredicate
from nearcast.model.time import MICROSECONDS
from nearcast.overlay.routing.knowledge import Knowledge
from nearcast.overlay.routing.reference import Reference
from nearcast.overlay.routing.reporting import Exact, ServiceArea
from nearcast.overlay.routing.router import Router
from nearcast.overlay.temporal.future import Future, FutureSettings
from nearcast.overlay.temporal.messages import Keep
from nearcast.overlay.temporal.settings import TemporalSettings
from nearcast.runtime.host import Component


class WaitingTown(Town):
    def __init__(
        self,
        size: int,
        edges: Sequence[tuple[int, int]],
        settings: TemporalSettings | None = None,
        *,
        future: FutureSettings | None = None,
        knowledge: Callable[[], Knowledge] = Reference,
        service_areas: bool = False,
        **more: Any,
    ) -> None:
        """``service_areas``: instead of positions routers are told the areas in which they lie."""
        self.knowledge = knowledge
        self.service_areas = service_areas
        self.future_settings = future or FutureSettings(settle=2.0)
        self.futures: dict[str, Future] = {}
        super().__init__(size, edges, settings, **more)

    def _parts(self, name: str, area: Area | None, trusted: bool, last: bool) -> list[Component]:
        _, *others = super()._parts(name, area, trusted, last)
        reporting = ServiceArea(area) if area is not None and self.service_areas else Exact()
        router = self.routers[name] = Router(self.knowledge(), reporting)
        future = self.futures[name] = Future(self.future_settings)
        return [router, *others, future]

    def message(
        self,
        relation: str,
        a: float | None,
        b: float | None,
        z: float = 0.0,
        *,
        to: str = "role = 'staff'",
        name: str = "e",
        lifetime: float | None = None,
        reach: Area | None = None,
        payload: bytes = b"...",
    ) -> Event:
        """Bounds in seconds from now."""
        start, end = (None if bound is None else self.now + round(bound * MICROSECONDS) for bound in (a, b))
        return Event(
            name,
            "news",
            self.now,
            to=to,
            when=TemporalPredicate(relation, start, end, round(z * MICROSECONDS)),
            lifetime=None if lifetime is None else round(lifetime * MICROSECONDS),
            reach=reach,
            payload=payload,
        )

    def holding(self, name: str = "e") -> list[str]:
        """Routers at which the message waits."""
        return [router for router, future in self.futures.items() if name in future]

    def keeps(self) -> int:
        """Copies that were sent on to wait elsewhere."""
        kind = str(Keep.__struct_config__.tag)
        return sum(link.books.get(("sent", kind), (0, 0))[0] for link in self.wires.links.values())
