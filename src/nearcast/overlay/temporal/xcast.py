"""To the trusted nodes of many identities at once: one copy for each neighbour behind which some of them are (Xcast, Alg. 6.5, 6.6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from nearcast.overlay.routing.tree import NoTree, TreeView
from nearcast.overlay.routing.wire import Routed
from nearcast.overlay.temporal.messages import Confirmed, Resolution, Span, trusted_node_of
from nearcast.runtime.ports import Address, Timers

Tell = Callable[[Address, Confirmed, Callable[[], None] | None], None]
"""``tell(neighbour, message, failed)``."""

Resolve = Callable[[Routed, tuple[Span, ...], bool], None]
"""``resolve(message, spans, whole)``: for the trusted node that is here."""

_LATER: Final = 2.0
_MOST_TRIES: Final = 10
"""A tree that changes may have no way for a while: twenty seconds are more than it takes to repair."""


def shares(
    spans: Iterable[Span], me: Address, next_hop: Callable[[Address], Address | None]
) -> dict[Address | None, list[Span]]:
    """By neighbour, the spans whose trusted nodes lie behind it; by the own name those of the own; by none what cannot be reached."""
    found: dict[Address | None, list[Span]] = {}
    hops: dict[Address, Address | None] = {me: me}
    for span in spans:
        node = trusted_node_of(span.vid)
        if node not in hops:
            hops[node] = next_hop(node)
        found.setdefault(hops[node], []).append(span)
    return found


class Xcast:
    """Of one router."""

    def __init__(self, me: Address, tell: Tell, timers: Timers) -> None:
        self._me: Final = me
        self._tell: Final = tell
        self._timers: Final = timers
        self.resolve: Resolve | None = None
        self.tree: TreeView = NoTree()
        self.sent = 0
        self.lost = 0
        """Spans whose trusted node could not be reached, or is none."""

    def send(self, message: Routed, spans: Iterable[Span], *, whole: bool) -> None:
        """On their way, from here."""
        self._pass_on(message, spans, whole, None, _MOST_TRIES)

    def hear(self, sender: Address, resolution: Resolution) -> None:
        self._pass_on(resolution.message, resolution.spans, resolution.whole, sender, _MOST_TRIES)

    def _pass_on(
        self, message: Routed, spans: Iterable[Span], whole: bool, came_from: Address | None, tries: int
    ) -> None:
        for hop, share in shares(spans, self._me, self.tree.next_hop).items():
            if hop == self._me:
                if self.resolve is not None:
                    self.resolve(message, tuple(share), whole)
                else:
                    self.lost += len(share)
            elif hop is None or hop == came_from:
                # Routers do not agree on the tree just now.
                self._later(message, share, whole, tries)
            else:
                self.sent += 1
                resolution = Resolution(message=message, spans=tuple(share), whole=whole)
                self._tell(hop, resolution, lambda share=share: self._later(message, share, whole, tries))  # type: ignore[misc]

    def _later(self, message: Routed, spans: list[Span], whole: bool, tries: int) -> None:
        if not tries:
            self.lost += len(spans)
            return
        self._timers.after(_LATER, lambda: self._pass_on(message, spans, whole, None, tries - 1))
