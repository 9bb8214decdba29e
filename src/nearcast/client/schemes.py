"""The client's half of the filter schemes, live: what the broker is told of where the client is, as little as it needs to know.

Nothing here touches a socket: messages for the broker go out through ``send``, to be published on ``$nearcast/scheme`` with quality of
service 1, and what comes on that topic is handed to ``receive``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from nearcast.dissemination.cloud_messages import Context
from nearcast.dissemination.handed_link import HandedLink
from nearcast.dissemination.scheme_client import ClientSettings, Happening, SchemeClient
from nearcast.dissemination.scheme_messages import GREETINGS, INTERFACE, PORT, Ground, Hello, Inquiry, territory_in
from nearcast.errors import InvalidInput
from nearcast.filtering.messages import Assignment
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.runtime.host import Component, Host, Ports
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Address, Clock, Endpoint, Fix, Sending, Timers
from nearcast.runtime.random import RandomStreams
from nearcast.transition.agent import AgentStatistics, TransitionAgent
from nearcast.transition.engine import HostEngine
from nearcast.transition.specification import MechanismSpec

BROKER: Final = "broker"
FIRST: Final = MechanismSpec("RADIAL")
"""Until the broker says otherwise."""


@dataclass(frozen=True, slots=True)
class ClientSchemesStatistics:
    scheme: MechanismSpec | None
    """None before the broker has said how the ground is divided."""

    plans: AgentStatistics | None
    messages_in: int
    messages_out: int
    unread: int
    """Messages for which it was too early."""


class _Half(Component):
    """What this client runs on one ground; another ground, another half."""

    def __init__(self, ground: Ground, settings: ClientSettings) -> None:
        self.ground: Final = ground
        self._settings: Final = settings
        self._endpoint: Endpoint
        self.agent: TransitionAgent
        self.schemes: SchemeClient

    def start(self, host: Host) -> None:
        self.agent = host.component(TransitionAgent)
        self._endpoint = host.link(INTERFACE).open(PORT, self._receive, Assignment)
        self.schemes = SchemeClient(host, territory_in(self.ground), self._settings, self._say)

    def _say(self, message: Context) -> None:
        self._endpoint.send(BROKER, message)

    def _receive(self, _sender: Address, message: Assignment) -> None:
        self.schemes.assigned(message)


class ClientSchemes:
    """One client's part in the filter schemes of its broker, over all its connections."""

    def __init__(
        self,
        name: str,
        clock: Clock,
        timers: Timers,
        send: Callable[[bytes], None],
        *,
        pinned: MechanismSpec | None = None,
        observers: Observers | None = None,
    ) -> None:
        """``pinned``: a scheme that this client insists on, whatever others run; a private one keeps its position to itself."""
        self._name: Final = name
        self._clock: Final = clock
        self._timers: Final = timers
        self._send: Final = send
        self._observers: Final = observers or Observers()
        self._pinned: Final = pinned
        self._settings: Final = ClientSettings(pinned or FIRST, pinned=pinned is not None)
        self._wanted: Final[dict[str, Subscription]] = {}
        self._newest: Fix | None = None
        self._connected = False
        self._greeted = False
        self._link: Final = HandedLink(INTERFACE, name, self._observers, self._carry)
        self._greetings: Endpoint = self._listen()
        self._half: _Half | None = None
        self._unread = 0

    @property
    def ready(self) -> bool:
        """Whether the broker has said how the ground is divided: its first words on a connection."""
        return self._half is not None

    @property
    def running(self) -> MechanismSpec | None:
        """The scheme that this client runs; none as long as it is not ready."""
        return None if self._half is None else self._half.schemes.running

    def statistics(self) -> ClientSchemesStatistics:
        traffic = list(self._link.traffic())
        return ClientSchemesStatistics(
            scheme=self.running,
            plans=self._half.agent.statistics() if self._half else None,
            messages_in=sum(row.messages for row in traffic if row.direction == "received"),
            messages_out=sum(row.messages for row in traffic if row.direction == "sent"),
            unread=self._unread,
        )

    # The application's side

    def moved(self, fix: Fix) -> None:
        """The client knows where it is."""
        self._newest = fix
        if self._half is not None:
            if self._wanted:
                self._half.schemes.moved(fix)
            else:
                self._half.schemes.newest = fix  # nobody needs to know

    def interested(self, subscription: Subscription) -> None:
        """It wants what happens in an area around it.

        To be called before the subscription goes out: then the broker knows where the client is by the time that it comes.
        """
        self._wanted[subscription.id] = subscription
        if self._half is not None:
            self._half.schemes.interested(subscription)
            self._speak()

    def uninterested(self, subscription_id: str) -> None:
        """It does not want that any more; to be called when the subscription has ended."""
        if self._wanted.pop(subscription_id, None) is not None and self._half is not None:
            self._half.schemes.uninterested(subscription_id)

    def channel_for(self, place: Point) -> Happening:
        """What to put on an event that happens where the client is, at ``place``: a channel perhaps, and perhaps a coarser place."""
        if self._half is not None:
            return self._half.schemes.happening(place)
        if self._pinned is not None:
            raise InvalidInput(
                "nothing can be published from a place that is to be kept private, before the broker has said how the ground is "
                "divided: wait until the client is connected"
            )
        return Happening(None, place)

    # The broker's side

    def disconnected(self) -> None:
        """The connection is lost; the next one begins with the broker's words."""
        self._connected = self._greeted = False

    def receive(self, payload: bytes) -> None:
        """What came on ``$nearcast/scheme``; raises ``InvalidInput`` if it is not of the schemes."""
        if self._half is None and payload[:1] != bytes((GREETINGS,)):
            self._unread += 1  # left over from an earlier life of this client: the broker will say it again
            return
        endpoint, message = self._link.read(payload)
        endpoint.receive(BROKER, message)

    def _met(self, _sender: Address, message: Ground | Inquiry) -> None:
        match message:
            case Ground():
                self._connected, self._greeted = True, False
                if self._half is None or self._half.ground != message:
                    self._settle(message)
                if self._wanted:
                    self._greet()
            case Inquiry():
                self._greet()

    def _settle(self, ground: Ground) -> None:
        """Begin with the first scheme on that ground; plans lead to the present one."""
        self._link.switch(on=False)  # whoever listened on the old ground
        self._link.switch(on=True)
        self._greetings = self._listen()
        half, agent = _Half(ground, self._settings), TransitionAgent(INTERFACE)
        streams = RandomStreams(self._clock.now())
        ports = Ports(
            self._clock, self._timers, {INTERFACE: self._link}, None, streams.stream, observers=self._observers
        )
        Host(self._name, ports, [HostEngine(), agent, half]).start()
        half.schemes.newest = self._newest
        for subscription in self._wanted.values():
            half.schemes.interested(subscription)
        self._half = half

    def _listen(self) -> Endpoint:
        return self._link.open(GREETINGS, self._met, Ground, Inquiry)

    def _speak(self) -> None:
        """What the scheme has to say, now that areas of interest have changed."""
        assert self._half is not None
        if not self._greeted:
            self._greet()
            return
        context = self._half.schemes.context()
        if context is not None:
            self._half.schemes.say_context(context)

    def _greet(self) -> None:
        assert self._half is not None
        schemes = self._half.schemes
        hello = Hello(schemes.running, schemes.plan, schemes.context(), schemes.pinned)
        self._greeted = self._greetings.send(BROKER, schemes.tagged(hello)) is Sending.ACCEPTED

    def _carry(self, _broker: Address, payload: bytes) -> bool:
        # What could not be said while there was no connection is not said later: the next one begins with what is true then.
        if self._connected:
            self._send(payload)
        return self._connected
