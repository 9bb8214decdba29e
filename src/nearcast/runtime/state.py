"""The State Information System: where mechanisms of a host exchange what they know (BYPASS.KOM 5.2.4).

Whoever knows something (the neighbours heard lately, the last position, the battery) registers as its *provider*; whoever
wants it asks the hub, not the mechanism, so that mechanisms can be exchanged without knowing each other.  A question is
answered on this host if anyone here can; only if the asker allows it, and the host has a way to ask others, does it leave
the host.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from nearcast.errors import UnknownName
from nearcast.runtime.ports import Address, Cancellable

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Information(Generic[T]):
    """A kind of knowledge, by name; the type says what an answer looks like."""

    name: str
    of: type[T]


Answer = Callable[[T], None]
Remote = Callable[[Information[Any], Address | None, Callable[[Any], None]], None]
"""Ask other hosts: what, whom (or whoever knows), and where the answer goes, if one ever comes."""


@dataclass(frozen=True, slots=True)
class StateStatistics:
    providers: int
    consumers: int
    answered: int
    asked_others: int


@dataclass(eq=False, slots=True)
class _Registration(Cancellable):
    entries: dict[int, Any]
    key: int

    def cancel(self) -> None:
        self.entries.pop(self.key, None)


class StateInformation:
    """The hub of one host."""

    def __init__(self, remote: Remote | None = None) -> None:
        self._remote = remote
        # In order of registration: the newest provider answers, because a mechanism that took over knows better.
        self._providers: dict[str, dict[int, Callable[[], Any]]] = {}
        self._consumers: dict[str, dict[int, Callable[[Any], None]]] = {}
        self._registered = 0
        self._answered = 0
        self._asked_others = 0

    def provide(self, information: Information[T], supply: Callable[[], T | None]) -> Cancellable:
        """Answer questions with ``supply()``; ``None`` means that it is not known just now."""
        return self._register(self._providers, information, supply)

    def consume(self, information: Information[T], changed: Callable[[T], None]) -> Cancellable:
        """Be told whenever a provider announces a new value."""
        return self._register(self._consumers, information, changed)

    def announce(self, information: Information[T], value: T) -> None:
        """Tell all consumers of this host; called by a provider when what it knows has changed."""
        for changed in list(self._consumers.get(information.name, {}).values()):
            changed(value)

    def get(self, information: Information[T]) -> T | None:
        """What this host knows now; ``None`` if nobody does."""
        for supply in reversed(list(self._providers.get(information.name, {}).values())):
            value = supply()
            if value is not None:
                self._answered += 1
                return cast("T", value)
        return None

    def request(
        self, information: Information[T], answer: Answer[T], *, about: Address | None = None, remote: bool = False
    ) -> bool:
        """Have ``answer`` called: at once if this host knows, later if another does and ``remote`` allows to ask.

        ``about`` names another host; that can only be answered by asking.  Says whether an answer came or may come.
        """
        if about is None and (value := self.get(information)) is not None:
            answer(value)
            return True
        if not remote or self._remote is None:
            return False
        self._asked_others += 1
        self._remote(information, about, answer)
        return True

    def need(self, information: Information[T]) -> T:
        """What this host knows now, or an error that names what nobody provides."""
        value = self.get(information)
        if value is None:
            raise UnknownName(f"nobody on this host provides {information.name!r} now")
        return value

    def statistics(self) -> StateStatistics:
        return StateStatistics(
            providers=sum(map(len, self._providers.values())),
            consumers=sum(map(len, self._consumers.values())),
            answered=self._answered,
            asked_others=self._asked_others,
        )

    def _register(self, where: dict[str, dict[int, Any]], information: Information[Any], entry: Any) -> Cancellable:
        entries = where.setdefault(information.name, {})
        self._registered += 1
        entries[self._registered] = entry
        return _Registration(entries, self._registered)
