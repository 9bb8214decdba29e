"""Sessions and subscriptions, to be searched and turned over page by page.

There may be many thousands: they are looked through in turns, and sorted by the one column that is asked for.  Rows are made for the page only.
Nothing is left to a thread: a list is sorted in one piece, for which the interpreter stops all others, wherever that is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import merge
from itertools import chain, islice
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from nearcast.broker.core import Broker
from nearcast.broker.sessions.session import Held, Session
from nearcast.dashboard.contract import SessionRow, SessionsTable, SubscriptionRow, SubscriptionsTable
from nearcast.dashboard.turns import Turns
from nearcast.errors import InvalidProperty
from nearcast.model.area_text import area_text
from nearcast.model.geometry import Point
from nearcast.model.predicate_text import to_text as predicate_text
from nearcast.model.time import to_text

T = TypeVar("T", bound=msgspec.Struct)
E = TypeVar("E")

Key = Callable[[E], Any]
"""By what a row is sorted: what stands in a column, or what it is written from; none if that is not known."""


A_RUN: Final = 1_000
"""That are sorted at a time."""


class Subscribed(NamedTuple):
    session: Session
    held: Held


async def _page(
    found: Sequence[E],
    keys: Mapping[str, Key[E]],
    row: Callable[[E], T],
    sort: str,
    offset: int,
    limit: int,
    turns: Turns,
) -> list[T]:
    column = sort.removeprefix("-")
    if sort and column not in keys:
        raise InvalidProperty(f"there is no column {column!r:.40}; sort by {', '.join(keys)}")
    wanted: Iterable[E] = found[offset : offset + limit]
    if sort:
        wanted = await sorted_page(found, keys[column], offset, limit, turns, backwards=sort.startswith("-"))
    rows: list[T] = []
    async for some in turns.over(wanted):
        rows += [row(each) for each in some]
    return rows


async def sorted_page(
    found: Sequence[E], key: Key[E], offset: int, limit: int, turns: Turns, *, backwards: bool = False
) -> list[E]:
    """A part of all in their order (or the other way round); of whom it is not known comes last."""
    values: list[Any] = []
    async for some in turns.over(found):
        values += [key(each) for each in some]
    known, unknown = list[int](), list[int]()
    async for numbers in turns.over(range(len(values))):
        for number in numbers:
            (unknown if values[number] is None else known).append(number)
    runs = [known[first : first + A_RUN] for first in range(0, len(known), A_RUN)]
    async for several in turns.over(runs, 1):
        for run in several:
            run.sort(key=values.__getitem__, reverse=backwards)
    page: list[E] = []
    in_order = chain(merge(*runs, key=values.__getitem__, reverse=backwards), unknown)
    async for numbers in turns.over(islice(in_order, offset + limit)):
        page += [found[number] for number in numbers]
    return page[offset:]


async def sessions_of(broker: Broker, search: str, sort: str, offset: int, limit: int) -> SessionsTable:
    """Those whose client id or user contains the words; in the order in which they came, if no other is asked for."""
    wanted, users, turns = search.casefold(), broker.sessions.users, Turns()
    found: list[Session] = []
    async for some in turns.over(list(broker.sessions)):
        found += [
            each
            for each in some
            if not wanted or wanted in each.client.casefold() or wanted in users.get(each.client, "").casefold()
        ]
    addresses = await addresses_of(broker, turns=turns)
    keys = session_keys(broker, addresses)
    rows = await _page(found, keys, lambda each: session_row(broker, each, addresses), sort, offset, limit, turns)
    return SessionsTable(len(found), rows)


async def subscriptions_of(broker: Broker, search: str, sort: str, offset: int, limit: int) -> SubscriptionsTable:
    """Those whose client, topic filter or condition contains the words."""
    wanted, turns = search.casefold(), Turns()
    found: list[Subscribed] = []
    async for some in turns.over(list(broker.sessions)):
        for session in some:
            async for those in turns.over([Subscribed(session, held) for held in session.held.values()]):
                found += [
                    each for each in those if not wanted or any(wanted in text.casefold() for text in _texts(each))
                ]
    rows = await _page(found, SUBSCRIPTION_KEYS, subscription_row, sort, offset, limit, turns)
    return SubscriptionsTable(len(found), rows)


def _texts(each: Subscribed) -> Iterable[str]:
    """In which a subscription is searched for; what is dear last."""
    yield each.session.client
    yield each.held.filter
    where = _where(each)
    if where is not None:
        yield where


def _where(each: Subscribed) -> str | None:
    where = each.held.subscription.where
    return None if where is None else predicate_text(where)


def _area(each: Subscribed) -> str | None:
    area = each.held.subscription.area
    return None if area is None else area_text(area)


SUBSCRIPTION_KEYS: Final[Mapping[str, Key[Subscribed]]] = {
    "client": lambda each: each.session.client,
    "id": lambda each: each.held.subscription.id,
    "filter": lambda each: each.held.filter,
    "where": _where,
    "area": _area,
    "qos": lambda each: each.held.qos,
    "since": lambda each: each.held.since,
    "until": lambda each: each.held.subscription.frame.until,
}


def subscription_row(each: Subscribed) -> SubscriptionRow:
    values = {column: key(each) for column, key in SUBSCRIPTION_KEYS.items()}
    for column in ("since", "until"):
        values[column] = _time(values[column])
    return SubscriptionRow(**values)


async def addresses_of(broker: Broker, client: str | None = None, *, turns: Turns | None = None) -> dict[str, str]:
    """From where each client has connected, or one of them."""
    addresses: dict[str, str] = {}
    async for some in (turns or Turns()).over(list(broker.services.open)):
        for conversation in some:
            session = conversation.session
            if session is not None and client in (None, session.client):
                addresses[session.client] = conversation.address
    return addresses


def session_keys(broker: Broker, addresses: Mapping[str, str]) -> Mapping[str, Key[Session]]:
    live, position = broker.scheming.live, broker.presence.position

    def place(session: Session) -> Point | None:
        return position(session.client)

    return {
        "client": lambda each: each.client,
        "user": lambda each: broker.sessions.users.get(each.client),
        "connected": lambda each: each.connection is not None,
        "since": lambda each: None if each.connection is not None else each.ended,
        "lat": lambda each: None if (at := place(each)) is None else at.lat,
        "lon": lambda each: None if (at := place(each)) is None else at.lon,
        "scheme": lambda each: str(live.scheme_of(each.client)) if live.takes_part(each.client) else "",
        "subscriptions": lambda each: len(each.held),
        "queued": lambda each: len(each.queue) + len(each.in_flight),
        "dropped": lambda each: each.dropped,
        "address": lambda each: addresses.get(each.client),
    }


def session_row(broker: Broker, session: Session, addresses: Mapping[str, str]) -> SessionRow:
    values = {column: key(session) for column, key in session_keys(broker, addresses).items()}
    values["since"] = _time(values["since"])
    return SessionRow(**values)


def _time(value: int | None) -> str | None:
    return None if value is None else to_text(value)
