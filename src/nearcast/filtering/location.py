"""One stream of fixes for all subscriptions of a host that need its position."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from nearcast.runtime.host import Host
from nearcast.runtime.ports import Accuracy, Cancellable, Fix

_ORDER: Final = (Accuracy.LOW, Accuracy.MEDIUM, Accuracy.HIGH)


@dataclass(frozen=True, slots=True)
class LocationRequest:
    """How often, and how well, the own position is to be known for a subscription around it."""

    seconds: float
    accuracy: Accuracy = Accuracy.HIGH


class LocationFollower:
    """Asks the sensor for the most that anybody asks for, and stops when nobody does (BYPASS.KOM 3.2, 4.2.1).

    It belongs to the host and outlives the mechanisms that use it: a transition does not disturb the sensor.
    """

    def __init__(self, host: Host, moved: Callable[[Fix], None]) -> None:
        self.newest: Fix | None = None
        self._host: Final = host
        self._moved: Final = moved
        self._request: LocationRequest | None = None
        self._running: Cancellable | None = None

    def follow(self, requests: Iterable[LocationRequest]) -> None:
        """What is asked for has changed."""
        wanted = _strictest(list(requests))
        if wanted == self._request:
            return
        if self._running:
            self._running.cancel()
        self._request, self._running = wanted, None
        if wanted and self._host.sensor:
            self._running = self._host.sensor.request(wanted.seconds, self._take, wanted.accuracy)

    def _take(self, fix: Fix) -> None:
        self.newest = fix
        self._moved(fix)


def _strictest(requests: list[LocationRequest]) -> LocationRequest | None:
    if not requests:
        return None
    return LocationRequest(
        min(request.seconds for request in requests),
        max((request.accuracy for request in requests), key=_ORDER.index),
    )
