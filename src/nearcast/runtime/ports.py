"""The contracts between mechanisms and the world they run in: everything a mechanism may use.

Each has two implementations, ``simulation`` and ``live``; which of them a mechanism gets, it cannot tell.  All calls return at
once; all callbacks come one at a time, never from inside the call that asked for them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from nearcast.model.geometry import Point
from nearcast.model.time import Instant
from nearcast.runtime.messages import Message

Address = str
"""How a host is reached on one link.  The same host has another address on another link."""


class Clock(ABC):
    """The only source of time; a mechanism that reads the wall clock is a bug."""

    @abstractmethod
    def now(self) -> Instant: ...


class Cancellable(ABC):
    """Something asked for that can be called off."""

    @abstractmethod
    def cancel(self) -> None:
        """No further callback comes; cancelling twice, or what is over, is fine."""


class Timers(ABC):
    """Timers of one host: when it stops or fails, they end with it."""

    @abstractmethod
    def after(self, seconds: float, callback: Callable[[], None]) -> Cancellable:
        """Call back once, ``seconds`` from now (0: after whatever happens at this instant)."""

    @abstractmethod
    def every(self, seconds: float, callback: Callable[[], None], *, first: float | None = None) -> Cancellable:
        """Call back again and again; the first time after ``first`` seconds (default: one period).

        Periods are counted from the first call, so they do not drift.
        """


class Sending(Enum):
    """What became of a message that was handed to a link: there is back-pressure, and it can be seen."""

    ACCEPTED = "accepted"  # on its way
    QUEUED = "queued"  # behind others
    DROPPED = "dropped"  # the queue is full, or the link is down: nobody will get it


Receive = Callable[[Address, Any], None]
"""``receive(sender, message)``; the message is one of the kinds that the endpoint was opened for."""


U = TypeVar("U")
ReceiveAll = Callable[[Iterable[tuple[U, Any]]], None]
"""``receive_all((receiver, message), ...)``: messages for receivers on several hosts, in the order in which they came in.

While it goes through them, the clock shows when each of them came.  It may not act: send, schedule, open or close anything.
"""


ReceiveTogether = Callable[[Iterable[U], Address, Any], None]
"""``receive_together(receivers, sender, message)``: one message that receivers on several hosts get now, one after the other."""


Unacknowledged = Callable[[Address, Any], None]
"""``in_vain(receiver, message)``: the very message that was sent."""


Repeated = Callable[[Hashable], None]
"""``repeated(name)``: no more messages of that name."""


class Endpoint(ABC):
    """One port of a link: what is sent here arrives at the same port of the receiver."""

    @abstractmethod
    def send(self, to: Address, message: Message) -> Sending:
        """To one host."""

    def send_all(self, to: Iterable[Address], message: Message) -> None:
        """The same message to several hosts, one by one."""
        for address in to:
            self.send(address, message)

    @abstractmethod
    def broadcast(self, message: Message) -> Sending:
        """To whoever is near enough to hear it; only local links can (``Link.local``)."""

    def later(self, kind: type[Message], receiver: U | None, receive_all: ReceiveAll[U]) -> None:
        """From now on messages of this kind may be told to the receiver later than they come in, together with those of others.

        For who only keeps books of what comes in; none: no longer.  A runtime makes use of that or does not.  Nobody can tell,
        because the receiver is told before anything else happens to its host.
        """

    def together(self, kind: type[Message], receiver: U, receive_together: ReceiveTogether[U]) -> None:
        """Messages of this kind that several hosts hear at one instant may be told to their receivers by one call of that function.

        It goes through the receivers in their order and does for each of them what ``receive`` would.  A runtime makes use of
        that or does not.
        """

    def repeater(self) -> Repeated:
        """To be told of messages that need not be handed over here any more, only counted: they make no difference (``attend``).

        It takes a name, the one that a message has as its ``repetition``, if it has one: what is sent again and again, by many, has
        the same.  A runtime makes use of that or does not, and may forget it.
        """
        return _nothing

    def once(self, group: Hashable | None) -> None:
        """From now on, of messages of this group each has to be handed over here once only: as if ``repeated`` were called with its
        name then.  The group is the first part of a name that is a tuple.  None: that of no group.
        """

    def attend(self) -> None:
        """From now on every message is handed over again (``once``: once again)."""

    @property
    def unread(self) -> int:
        """How many were only counted."""
        return 0

    def unacknowledged(self, in_vain: Unacknowledged) -> None:
        """To be told of messages to one host that it has not acknowledged, however often the link tried; it may have got them.

        A link whose radio acknowledges frames can tell; others do not.
        """

    @abstractmethod
    def close(self) -> None:
        """Nothing more is received here; closing twice is fine."""


class Link(ABC):
    """A network interface of one host."""

    interface: str
    """``cellular``, ``wifi``, ...: the name under which bytes are counted."""

    address: Address
    local: bool
    """Whether it reaches those nearby, and only those."""

    largest: int | None = None
    """Bytes of an encoded message at most: longer ones are dropped; none: whoever sends one need not care."""

    @abstractmethod
    def open(self, port: int, receive: Receive, *kinds: type[Message]) -> Endpoint:
        """Listen on a port (0 to 255) for these kinds of messages; anything else that comes in is dropped and counted."""


class Accuracy(Enum):
    """How well a position is to be known, as Android's location requests say it (BYPASS.KOM 4.2.1)."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


@dataclass(frozen=True, slots=True)
class Fix:
    """What the location sensor says."""

    time: Instant
    position: Point
    accuracy: float
    """Standard deviation in metres, per axis."""

    speed: float
    """Metres per second over ground."""

    heading: float | None
    """Degrees clockwise from north; none while standing."""


class LocationSensor(ABC):
    """Where this host is: GPS, a trace, or a mobility model."""

    @abstractmethod
    def fix(self) -> Fix | None:
        """The newest fix; none as long as there was none."""

    def position(self) -> Point | None:
        """Only where, of the newest fix."""
        fix = self.fix()
        return fix.position if fix else None

    def within(self, metres: float, place: Point) -> bool | None:  # noqa: ARG002 - for whoever knows a short cut
        """Whether the newest fix lies so near to the place, where that is beyond doubt; none: its position tells.

        For who asks with every event that arrives, and hardly ever in vain.
        """
        return None

    @abstractmethod
    def request(
        self, seconds: float, moved: Callable[[Fix], None], accuracy: Accuracy = Accuracy.HIGH, *, first: float = 0.0
    ) -> Cancellable:
        """Ask for a fix every so many seconds, the first one after ``first``, until cancelled."""


def _nothing(_name: Hashable) -> None:
    """All messages are handed over."""
