"""The node of an access network (ContextNode, 2.4.2): devices register their contexts with it, and get what is for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from nearcast.errors import InvalidInput, Refused
from nearcast.model.event import Event
from nearcast.model.history import Context
from nearcast.model.time import MICROSECONDS, Instant, instant
from nearcast.overlay.assurance import AssuranceSettings, AssuredEndpoint
from nearcast.overlay.handles import Handle
from nearcast.overlay.routing.access import (
    FROM_DEVICE,
    PORT,
    Present,
    RegisterAgain,
    Registration,
    Relay,
    Relayed,
    Send,
)
from nearcast.overlay.routing.messages import context_of
from nearcast.overlay.routing.router import Router
from nearcast.overlay.routing.wire import Routed, event_in, routed
from nearcast.runtime.host import Component, Host
from nearcast.runtime.ports import Address, Endpoint

Recorder = Callable[[str, Instant, Context | None], None]
"""``recorder(identity, at, context)``: since then this is the context of that virtual identity; none: it has none any more."""


class ContextNode(Component):
    """Beside the router of its host, before which it must not start."""

    def __init__(
        self, interface: str = "access", lease: float = 30.0, assurance: AssuranceSettings | None = None
    ) -> None:
        self._assurance: Final = assurance
        self._interface: Final = interface
        self._lease: Final = lease
        """Seconds after which a device that says nothing is gone."""

        self.recorders: Final[list[Recorder]] = []
        """Are told of all contexts that have an identity, exactly as they are registered."""

        self.relay: Callable[[Address, Relay], None] | None = None
        """Carries what a device has to say to somebody elsewhere."""

        self.malformed = 0
        """What no device could have said."""

        self.refused = 0
        """Messages that a device may not send, or not so fast."""

        self._versions: Final[dict[Address, dict[int, int]]] = {}
        self._floor: Final[dict[Address, int]] = {}
        """By device: the version up to which it has told all that counts."""

        self._handles: Final[dict[tuple[Address, int], Handle]] = {}
        self._owner: Final[dict[Handle, Address]] = {}
        self._identities: Final[dict[tuple[Address, int], str]] = {}
        self._heard: Final[dict[Address, Instant]] = {}
        self._host: Host
        self._router: Router
        self._endpoint: Endpoint

    def start(self, host: Host) -> None:
        self._host, self._router = host, host.component(Router)
        self._router.deliver = self._deliver
        self._endpoint = AssuredEndpoint(
            host, self._interface, PORT, self._receive, FROM_DEVICE, (Routed,), self._assurance
        )
        host.timers.every(self._lease / 2, self._drop_silent)

    def _receive(self, device: Address, message: Any) -> None:
        self._heard[device] = self._host.now()
        try:
            match message:
                case Registration():
                    self._register(device, message)
                case Present():
                    self._compare(device, message)
                case Send():
                    self._router.publish(event_in(message.message), sender=device)
                case Relay() if self.relay is not None:
                    self.relay(device, message)
        except InvalidInput:
            self.malformed += 1
        except Refused:
            self.refused += 1

    def _compare(self, device: Address, message: Present) -> None:
        versions, said = self._versions.setdefault(device, {}), dict(message.contexts)
        for number in [each for each, version in versions.items() if each not in said and version <= message.version]:
            del versions[number]
            self._remove((device, number))
        # Of what is gone nothing is kept but this: no older word can bring it back.
        self._floor[device] = max(self._floor.get(device, 0), message.version)
        if said != {number: version for number, version in versions.items() if (device, number) in self._handles}:
            self._endpoint.send(device, RegisterAgain())

    def _register(self, device: Address, message: Registration) -> None:
        versions = self._versions.setdefault(device, {})
        if versions.get(message.context, self._floor.get(device, 0)) >= message.version:
            return
        context = None if message.attributes is None else context_of(message.attributes)
        key = device, message.context
        handle = self._handles.get(key)
        at = self._host.now() if message.at is None else instant(message.at)
        if context is None:
            self._remove(key, at)
        elif handle is None:
            handle = self._handles[key] = self._router.register(context)
            self._owner[handle] = device
        else:
            self._router.update(handle, context)
        versions[message.context] = message.version
        if context is not None:
            self._record(key, message.identity, at, context)

    def _remove(self, key: tuple[Address, int], at: Instant | None = None) -> None:
        handle = self._handles.pop(key, None)
        if handle is not None:
            del self._owner[handle]
            self._router.remove(handle)
            self._record(key, None, self._host.now() if at is None else at, None)

    def _record(self, key: tuple[Address, int], identity: str | None, at: Instant, context: Context | None) -> None:
        before = self._identities.pop(key, None)
        if before is not None and before != identity:
            for record in self.recorders:
                record(before, at, None)
        if identity is not None:
            self._identities[key] = identity
            for record in self.recorders:
                record(identity, at, context)

    def tell(self, device: Address, sender: Address, body: bytes) -> None:
        """Hand something from elsewhere to a device."""
        self._endpoint.send(device, Relayed(sender, body))

    def _drop_silent(self) -> None:
        before = self._host.now() - round(self._lease * MICROSECONDS)
        for device in [device for device, heard in self._heard.items() if heard <= before]:
            del self._heard[device]
            self._floor.pop(device, None)
            for number in self._versions.pop(device, {}):
                self._remove((device, number))

    def _deliver(self, event: Event, handles: frozenset[Handle]) -> None:
        """One copy for each device, however many of its contexts it is for."""
        devices = sorted({self._owner[handle] for handle in handles if handle in self._owner})
        if devices:
            self._endpoint.send_all(devices, routed(event, self._host.name))
