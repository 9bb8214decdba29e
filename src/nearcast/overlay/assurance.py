"""Links on which nothing is lost, as an option: what was handed over is acknowledged, and until then sent again.

The document's service is best effort, and names this as an extension (2.4.4).  Hop by hop: who acknowledges has taken a message over.  It is
sent again after a while, each time after a longer one, until it is acknowledged, or whoever it is for is gone; who gets it twice takes it once and
acknowledges it twice.  To know that, receivers need no long memory: with each message comes the number below which nothing is sent again.
A host that fails takes along what it had not passed on yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from nearcast.errors import InvalidSettings
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.host import Host
from nearcast.runtime.messages import Codec, Message, encoded
from nearcast.runtime.ports import Address, Cancellable, Endpoint, Receive, Sending

_MOST_TAKEN: Final = 100_000


class Assured(Message, frozen=True, tag="assured", dict=True):
    """A message that wants to be acknowledged."""

    number: int
    oldest: int
    """Nothing below that number comes again."""

    body: bytes


class Received(Message, frozen=True, tag="received"):
    """The message of that number, whether it could be read or not."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AssuranceSettings:
    """Times are seconds."""

    first: float = 0.5
    """After which a message is sent again: longer than there and back, mostly."""

    growth: float = 2.0
    longest: float = 4.0
    """Between two attempts."""

    give_up: float = 600.0
    """At the latest, where nobody says that a neighbour is gone."""

    most_waiting: int = 10_000
    """Messages that wait for an acknowledgement; what is more is sent once."""

    def __post_init__(self) -> None:
        if not 0 < self.first <= self.longest or not self.growth >= 1:
            raise InvalidSettings("the second attempt comes after a while, and the next ones not sooner")
        if not self.give_up > 0 or self.most_waiting < 1:
            raise InvalidSettings("somebody waits for an acknowledgement, for a while")


@dataclass(frozen=True, slots=True)
class AssuranceStatistics:
    sent: int
    resent: int
    repeated: int
    """That came once more."""

    waiting: int
    given_up: int
    malformed: int


@dataclass(slots=True)
class _Waiting:
    message: Message
    body: bytes
    attempts: int
    until: int
    timer: Cancellable


class _Taken:
    """What came from one sender."""

    __slots__ = ("_floor", "_numbers")

    def __init__(self) -> None:
        self._floor = 0
        self._numbers: set[int] = set()

    def add(self, number: int, oldest: int) -> bool:
        """Whether that is new."""
        if oldest > self._floor:
            self._floor = oldest
            self._numbers = {each for each in self._numbers if each >= oldest}
        if number < self._floor or number in self._numbers:
            return False
        self._numbers.add(number)
        if len(self._numbers) > _MOST_TAKEN:
            self._numbers.remove(min(self._numbers))  # nobody who means well has so many under way
        return True


class AssuredEndpoint(Endpoint):
    """An endpoint that acknowledges, and with ``settings`` has messages of some kinds acknowledged."""

    def __init__(
        self,
        host: Host,
        interface: str,
        port: int,
        receive: Receive,
        kinds: tuple[type[Message], ...],
        assured: tuple[type[Message], ...],
        settings: AssuranceSettings | None,
    ) -> None:
        self._host: Final = host
        self._receive: Final = receive
        self._settings: Final = settings
        self._assured: Final = assured
        self._codec: Final[Codec[Message]] = Codec(*kinds)
        self._random: Final = host.random("assurance")
        self._number = host.now()  # above those of an earlier life
        self._waiting: Final[dict[Address, dict[int, _Waiting]]] = {}
        """By number, in their order."""

        self._taken: Final[dict[Address, _Taken]] = {}
        self._sent = self._resent = self._repeated = self._given_up = self._malformed = 0
        self._endpoint: Final = host.link(interface).open(port, self._hear, Assured, Received, *kinds)

    def statistics(self) -> AssuranceStatistics:
        return AssuranceStatistics(
            sent=self._sent,
            resent=self._resent,
            repeated=self._repeated,
            waiting=self._all_waiting(),
            given_up=self._given_up,
            malformed=self._malformed,
        )

    def send(self, to: Address, message: Message) -> Sending:
        settings = self._settings
        if settings is None or not isinstance(message, self._assured) or self._all_waiting() >= settings.most_waiting:
            return self._endpoint.send(to, message)
        self._number += 1
        number = self._number
        until = self._host.now() + round(settings.give_up * MICROSECONDS)
        waiting = _Waiting(message, encoded(message), 0, until, self._again_later(to, number, 0, settings))
        self._waiting.setdefault(to, {})[number] = waiting
        self._sent += 1
        return self._send(to, number, waiting)

    def _send(self, to: Address, number: int, waiting: _Waiting) -> Sending:
        wrapped = Assured(number, next(iter(self._waiting[to])), waiting.body)
        wrapped.__dict__["message"] = waiting.message  # in one process nobody has to read it
        return self._endpoint.send(to, wrapped)

    def _all_waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    def forget(self, neighbour: Address) -> list[Message]:
        """It is gone; what it has not acknowledged."""
        waiting = self._waiting.pop(neighbour, {})
        for each in waiting.values():
            each.timer.cancel()
        self._taken.pop(neighbour, None)
        self._given_up += len(waiting)
        return [each.message for each in waiting.values()]

    def send_all(self, to: Iterable[Address], message: Message) -> None:
        if self._settings is None or not isinstance(message, self._assured):
            self._endpoint.send_all(to, message)
        else:
            super().send_all(to, message)

    def broadcast(self, message: Message) -> Sending:
        return self._endpoint.broadcast(message)

    def close(self) -> None:
        for neighbour in list(self._waiting):
            self.forget(neighbour)
        self._endpoint.close()

    def _again_later(self, to: Address, number: int, attempts: int, settings: AssuranceSettings) -> Cancellable:
        pause = min(settings.longest, settings.first * settings.growth ** min(attempts, 64))
        # Not all at one instant, after a link was down.
        return self._host.timers.after(
            pause * self._random.uniform(1.0, 1.2), lambda: self._again(to, number, settings)
        )

    def _again(self, to: Address, number: int, settings: AssuranceSettings) -> None:
        waiting = self._waiting[to][number]
        if self._host.now() >= waiting.until:
            del self._waiting[to][number]
            self._given_up += 1
            return
        waiting.attempts += 1
        waiting.timer = self._again_later(to, number, waiting.attempts, settings)
        self._resent += 1
        self._send(to, number, waiting)

    def _hear(self, sender: Address, message: Any) -> None:
        if isinstance(message, Assured):
            self._endpoint.send(sender, Received(message.number))
            if self._taken.setdefault(sender, _Taken()).add(message.number, message.oldest):
                self._open(sender, message)
            else:
                self._repeated += 1
        elif isinstance(message, Received):
            waiting = self._waiting.get(sender, {}).pop(message.number, None)
            if waiting is not None:
                waiting.timer.cancel()
        else:
            self._receive(sender, message)

    def _open(self, sender: Address, message: Assured) -> None:
        inside: Message | None = message.__dict__.get("message")
        if inside is None:
            try:
                inside = self._codec.decoded(message.body)
            except msgspec.DecodeError:
                self._malformed += 1
                return
        self._receive(sender, inside)
