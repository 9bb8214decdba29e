"""Doing again what a log of operations says, and keeping such a log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from nearcast.dissemination.publisher import EventService, LocationRequest, Notify, Tally
from nearcast.errors import InvalidTrace
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.predicate_text import to_text
from nearcast.model.subscription import Subscription
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.host import Component, Host
from nearcast.runtime.ports import Cancellable
from nearcast.scenario.operations import Operation, Scalar
from nearcast.scenario.workload import EventIds, Published, event_service


@dataclass(frozen=True, slots=True)
class ReplayStatistics:
    done: int
    missed: int
    """Publications that were due before the client joined."""

    received: int


class Replay(Component):
    """The operations of one client, each at its time.

    A client that joins late, or returns, subscribes at once to what it is subscribed to by then; events that it should have
    published before are missed.
    """

    def __init__(
        self,
        operations: Sequence[Operation],
        *,
        run_start: Instant,
        request: LocationRequest,
        ids: EventIds,
        published: Published,
    ) -> None:
        self._operations: Final = operations
        self._start: Final = run_start
        self._request: Final = request
        self._ids: Final = ids
        self._tell: Final = published
        self._subscriptions: Final[dict[str, Cancellable]] = {}
        self._next = 0
        self._tally: Final = Tally()
        self._done = self._missed = 0
        self._host: Host
        self._service: EventService

    def start(self, host: Host) -> None:
        self._host = host
        self._service = event_service(host)
        held: dict[str, Operation] = {}
        while self._next < len(self._operations) and self._due() <= host.now():
            operation = self._operations[self._next]
            if operation.operation == "publish" and self._due() == host.now():
                break  # not missed: it is due now
            self._next += 1
            if operation.operation == "subscribe":
                held[operation.id] = operation
            elif operation.operation == "unsubscribe":
                del held[operation.id]
            else:
                self._missed += 1
        # Who returned in the run that was logged subscribed anew at this instant: once is enough.
        for operation in held.values():
            self._do(operation)
        self._wait()

    def statistics(self) -> ReplayStatistics:
        return ReplayStatistics(self._done, self._missed, self._tally.count)

    def _due(self) -> Instant:
        return self._start + self._operations[self._next].microseconds

    def _wait(self) -> None:
        if self._next < len(self._operations):
            self._host.timers.after((self._due() - self._host.now()) / MICROSECONDS, self._catch_up)

    def _catch_up(self) -> None:
        while self._next < len(self._operations) and self._due() <= self._host.now():
            operation = self._operations[self._next]
            self._next += 1
            self._do(operation)
        self._wait()

    def _do(self, operation: Operation) -> None:
        self._done += 1
        if operation.operation == "publish":
            self._publish(operation)
        elif operation.operation == "subscribe":
            request = None if operation.radius is None else self._request
            subscription = operation.subscription()
            self._subscriptions[operation.id] = self._service.subscribe(subscription, self._tally, request)
        else:
            self._subscriptions.pop(operation.id).cancel()

    def _publish(self, operation: Operation) -> None:
        name = operation.id or self._ids.next(self._host.name)
        event = operation.event(name, self._host.now(), self._here() if operation.local else None)
        self._tell(event, "log")
        self._service.publish(event, local=operation.local)

    def _here(self) -> Point | None:
        return self._host.position()


class LoggedService(EventService):
    """A mechanism, and a log of what applications ask of it."""

    def __init__(self, service: EventService, run_start: Instant, log: Callable[[Operation], None]) -> None:
        self._service: Final = service
        self._start: Final = run_start
        self._log: Final = log
        self._held: Final[dict[str, _Logged]] = {}
        self._host: Host

    def start(self, host: Host) -> None:
        self._host = host
        self._service.start(host)

    def stop(self) -> None:
        self._service.stop()

    def publish(self, event: Event, *, local: bool = False) -> None:
        for part in ("reach", "to", "when", "lifetime"):
            if getattr(event, part) is not None:
                raise InvalidTrace(f"event {event.id!r} has {part!r}, for which a log of operations has no column")
        place = None if local else event.place
        self._log(
            Operation(
                self._seconds(),
                self._host.name,
                "publish",
                event.id,
                event.topic,
                lat=place.lat if place else None,
                lon=place.lon if place else None,
                local=local,
                payload=len(event.payload),
                attributes=_plain(event),
                tags=tuple(sorted(event.tags)),
            )
        )
        self._service.publish(event, local=local)

    def subscribe(
        self, subscription: Subscription, notify: Notify, request: LocationRequest | None = None
    ) -> Cancellable:
        self._log(
            Operation(
                self._seconds(),
                self._host.name,
                "subscribe",
                subscription.id,
                subscription.topic,
                radius=_radius(subscription),
                where=to_text(subscription.where) if subscription.where else "",
            )
        )
        held = _Logged(self, subscription.id, self._service.subscribe(subscription, notify, request))
        self._held[subscription.id] = held
        return held

    def unsubscribed(self, held: _Logged) -> None:
        # One that another of the same id has replaced ended then, and nothing ends now.
        if self._held.get(held.subscription) is held:
            del self._held[held.subscription]
            self._log(Operation(self._seconds(), self._host.name, "unsubscribe", held.subscription))

    def _seconds(self) -> float:
        return (self._host.now() - self._start) / MICROSECONDS


@dataclass(eq=False, slots=True)
class _Logged(Cancellable):
    service: LoggedService
    subscription: str
    held: Cancellable | None

    def cancel(self) -> None:
        if self.held is not None:
            self.service.unsubscribed(self)
            self.held.cancel()
            self.held = None


def _radius(subscription: Subscription) -> float | None:
    match subscription.area:
        case None:
            return None
        case Circle(radius=radius, center=None):
            return radius
    raise InvalidTrace(
        f"a log of operations has no column for {subscription.area!r}, only for circles around the client"
    )


def _plain(event: Event) -> dict[str, Scalar]:
    plain: dict[str, Scalar] = {}
    for name, value in event.attributes.items():
        if not isinstance(value, (bool, int, float, str)):
            raise InvalidTrace(f"a log of operations has plain values only, not {value!r} of event {event.id!r}")
        plain[name] = value
    return plain
