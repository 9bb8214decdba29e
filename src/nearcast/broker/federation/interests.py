"""Which topics are wanted at which broker: ordinary events go where a topic filter asks for them.

Only topic filters, not the rest of a subscription: what comes is matched there as if it had been published there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from nearcast.broker.federation.notices import NoticeBoard
from nearcast.broker.federation.wire import Notice
from nearcast.broker.sessions.session import Session
from nearcast.model.topic import TopicTrie

PREFIX: Final = "t/"
MOST_FILTERS: Final = 1_000
"""Beyond, filters are made coarser: others are told more often than they need to be, and never too seldom."""

_decode: Final = msgspec.msgpack.Decoder(tuple[str, ...]).decode


def coarsened(filters: frozenset[str]) -> tuple[str, ...]:
    if len(filters) > MOST_FILTERS:
        first = {each.split("/", 1)[0] for each in filters}
        filters = frozenset("#" if level in "#+" else f"{level}/#" for level in first)
    if len(filters) > MOST_FILTERS:
        filters = frozenset({"#", *(each for each in filters if each.startswith("$"))})
    if "#" in filters:  # which is not for topics that begin with a dollar (MQTT 5, 4.7.2)
        filters = frozenset(each for each in filters if each == "#" or each.startswith("$"))
    return tuple(sorted(filters))


@dataclass(slots=True, eq=False)
class Interests:
    me: str
    board: NoticeBoard
    sessions: Mapping[str, Session]
    later: Callable[[Callable[[], None]], object]
    """Has a function called a moment later."""

    left: Callable[[Session], bool]
    _own: Counter[str] = field(default_factory=Counter)
    _of_client: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _changed: dict[str, None] = field(default_factory=dict)
    _said: tuple[str, ...] | None = None
    _wanted: TopicTrie = field(default_factory=TopicTrie)
    _numbers: dict[str, int] = field(default_factory=dict)
    _names: list[str] = field(default_factory=list)
    _filters: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def brokers(self) -> list[str]:
        """All others that were ever heard of."""
        return sorted(self._filters)

    def knows(self, broker: str) -> bool:
        """Whether it is known what is wanted there."""
        return broker in self._filters

    @property
    def topics(self) -> dict[str, tuple[str, ...]]:
        """Filters of each of them."""
        return dict(sorted(self._filters.items()))

    # Here

    def changed(self, client: str) -> None:
        if not self._changed:
            self.later(self.flush)
        self._changed[client] = None

    def flush(self) -> None:
        changed, self._changed = self._changed, {}
        for client in changed:
            session = self.sessions.get(client)
            filters = () if session is None or self.left(session) else _filters_of(session)
            before = self._of_client.pop(client, ())
            self._own.subtract(before)
            self._own.update(filters)
            if filters:
                self._of_client[client] = filters
        self._own = +self._own
        self.say()

    def say(self) -> None:
        filters = coarsened(frozenset(self._own))
        if filters != self._said:
            self._said = filters
            self.board.post(PREFIX + self.me, msgspec.msgpack.encode(filters))

    # Elsewhere

    def heard(self, notice: Notice) -> None:
        broker = notice.key.removeprefix(PREFIX)
        if broker == self.me:
            self._said = None  # from an earlier life: say it again
            self.say()
            return
        number = self._numbers.get(broker)
        if number is None:
            number = self._numbers[broker] = len(self._names)
            self._names.append(broker)
        for each in self._filters.pop(broker, ()):
            self._wanted.remove(each, number)
        if not notice.value:  # it was forgotten
            return
        self._filters[broker] = _decode(notice.value)
        for each in self._filters[broker]:
            self._wanted.add(each, number)

    def wanting(self, topic: str) -> list[str]:
        """Brokers at which somebody may want it."""
        return sorted({self._names[number] for number in self._wanted.match(topic)})


def _filters_of(session: Session) -> tuple[str, ...]:
    return tuple(sorted({held.subscription.topic for held in session.held.values() if held.filter[:9] != "$nearcast"}))
