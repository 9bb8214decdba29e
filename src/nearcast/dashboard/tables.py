"""Sessions and subscriptions, to be searched and turned over page by page.

There may be many thousands, and the loop belongs to the broker: they are looked through some at a time, and sorted in a worker thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from itertools import islice
from typing import Final, TypeVar

import msgspec

from nearcast.broker.core import Broker
from nearcast.broker.sessions.session import Held, Session
from nearcast.dashboard.contract import SessionRow, SessionsTable, SubscriptionRow, SubscriptionsTable
from nearcast.errors import InvalidProperty
from nearcast.model.area_text import area_text
from nearcast.model.predicate_text import to_text as predicate_text
from nearcast.model.time import to_text

T = TypeVar("T", bound=msgspec.Struct)
E = TypeVar("E")

AT_ONCE: Final = 250
"""Sessions or subscriptions that are looked at before it is somebody else's turn."""


async def _in_turns(everything: Sequence[E]) -> AsyncIterator[Sequence[E]]:
    for first in range(0, len(everything), AT_ONCE):
        if first:
            await asyncio.sleep(0)
        yield everything[first : first + AT_ONCE]


async def _page(
    found: Sequence[E], row: Callable[[E], T], kind: type[T], sort: str, offset: int, limit: int
) -> list[T]:
    """Without an order, rows are made for the page only."""
    if not sort:
        return [row(each) for each in found[offset : offset + limit]]
    check_column(kind, sort)
    rows: list[T] = []
    async for some in _in_turns(found):
        rows += [row(each) for each in some]
    return await asyncio.to_thread(page_of, rows, kind, sort, offset, limit)


def check_column(kind: type[msgspec.Struct], sort: str) -> None:
    column = sort.removeprefix("-")
    if column not in kind.__struct_fields__:
        raise InvalidProperty(f"there is no column {column!r:.40}; sort by {', '.join(kind.__struct_fields__)}")


def page_of(rows: Sequence[T], kind: type[T], sort: str, offset: int, limit: int) -> list[T]:
    """A page of rows, sorted by a column (with a minus: the other way round), what is not known last."""
    check_column(kind, sort)
    column = sort.removeprefix("-")
    known = [row for row in rows if getattr(row, column) is not None]
    known.sort(key=lambda row: getattr(row, column), reverse=sort.startswith("-"))
    rows = [*known, *(row for row in rows if getattr(row, column) is None)]
    return list(islice(rows, offset, offset + limit))


async def sessions_of(broker: Broker, search: str, sort: str, offset: int, limit: int) -> SessionsTable:
    """Those whose client id or user contains the words; in the order in which they came, if no other is asked for."""
    wanted, users = search.casefold(), broker.sessions.users
    found: list[Session] = []
    async for some in _in_turns(list(broker.sessions)):
        found += [
            each
            for each in some
            if not wanted or wanted in each.client.casefold() or wanted in users.get(each.client, "").casefold()
        ]
    addresses = await addresses_of(broker)
    rows = await _page(found, lambda each: session_row(broker, each, addresses), SessionRow, sort, offset, limit)
    return SessionsTable(len(found), rows)


async def subscriptions_of(broker: Broker, search: str, sort: str, offset: int, limit: int) -> SubscriptionsTable:
    """Those whose client, topic filter or condition contains the words."""
    wanted = search.casefold()
    found: list[tuple[Session, Held]] = []
    async for some in _in_turns(list(broker.sessions)):
        everything = [(session, held) for session in some for held in session.held.values()]
        async for those in _in_turns(everything):
            found += [each for each in those if not wanted or any(wanted in text.casefold() for text in _texts(*each))]
    rows = await _page(found, lambda each: subscription_row(*each), SubscriptionRow, sort, offset, limit)
    return SubscriptionsTable(len(found), rows)


def _texts(session: Session, held: Held) -> Iterable[str]:
    """In which a subscription is searched for; what is dear last."""
    yield session.client
    yield held.filter
    if held.subscription.where is not None:
        yield predicate_text(held.subscription.where)


def subscription_row(session: Session, held: Held) -> SubscriptionRow:
    subscription = held.subscription
    until = subscription.frame.until
    return SubscriptionRow(
        session.client,
        subscription.id,
        held.filter,
        None if subscription.where is None else predicate_text(subscription.where),
        None if subscription.area is None else area_text(subscription.area),
        held.qos,
        to_text(held.since),
        None if until is None else to_text(until),
    )


async def addresses_of(broker: Broker, client: str | None = None) -> dict[str, str]:
    """From where each client has connected, or one of them."""
    addresses: dict[str, str] = {}
    async for some in _in_turns(list(broker.services.open)):
        for conversation in some:
            session = conversation.session
            if session is not None and client in (None, session.client):
                addresses[session.client] = conversation.address
    return addresses


def session_row(broker: Broker, session: Session, addresses: dict[str, str]) -> SessionRow:
    position = broker.presence.position(session.client)
    live = broker.scheming.live
    return SessionRow(
        session.client,
        broker.sessions.users.get(session.client),
        session.connection is not None,
        None if session.ended is None or session.connection is not None else to_text(session.ended),
        None if position is None else position.lat,
        None if position is None else position.lon,
        str(live.scheme_of(session.client)) if live.takes_part(session.client) else "",
        len(session.held),
        len(session.queue) + len(session.in_flight),
        session.dropped,
        addresses.get(session.client),
    )
