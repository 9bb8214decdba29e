"""One stream of fixes for all subscriptions of a host that need its position."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from nearcast.dissemination.inbox import Interest
from nearcast.dissemination.publisher import LocationRequest
from nearcast.runtime.host import Host
from nearcast.runtime.ports import Accuracy, Cancellable, Fix

_ORDER: Final = (Accuracy.LOW, Accuracy.MEDIUM, Accuracy.HIGH)


class LocationFollower:
    """Asks the sensor for the most that any interest asks for, and stops when none does (BYPASS.KOM 3.2, 4.2.1)."""

    def __init__(self, host: Host, moved: Callable[[Fix], None]) -> None:
        self._host: Final = host
        self._moved: Final = moved
        self._request: LocationRequest | None = None
        self._running: Cancellable | None = None

    def follow(self, interests: Iterable[Interest]) -> None:
        """The interests have changed."""
        wanted = _strictest([interest.request for interest in interests if interest.request])
        if wanted == self._request:
            return
        if self._running:
            self._running.cancel()
        self._request, self._running = wanted, None
        if wanted and self._host.sensor:
            self._running = self._host.sensor.request(wanted.seconds, self._moved, wanted.accuracy)


def _strictest(requests: list[LocationRequest]) -> LocationRequest | None:
    if not requests:
        return None
    return LocationRequest(
        min(request.seconds for request in requests),
        max((request.accuracy for request in requests), key=_ORDER.index),
    )
