"""Sessions and subscriptions, to be searched and turned over page by page."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TypeVar

import msgspec

from nearcast.broker.core import Broker
from nearcast.broker.sessions.session import Held, Session
from nearcast.dashboard.contract import SessionRow, SessionsTable, SubscriptionRow, SubscriptionsTable
from nearcast.errors import InvalidProperty
from nearcast.model.area_text import area_text
from nearcast.model.predicate_text import to_text as predicate_text
from nearcast.model.time import to_text

T = TypeVar("T", bound=msgspec.Struct)


def page_of(rows: Sequence[T], kind: type[T], sort: str, offset: int, limit: int) -> list[T]:
    """A page of rows, sorted by a column (with a minus: the other way round), what is not known last."""
    column = sort.removeprefix("-")
    if column and column not in kind.__struct_fields__:
        raise InvalidProperty(f"there is no column {column!r:.40}; sort by {', '.join(kind.__struct_fields__)}")
    if column:
        known = [row for row in rows if getattr(row, column) is not None]
        known.sort(key=lambda row: getattr(row, column), reverse=sort.startswith("-"))
        rows = [*known, *(row for row in rows if getattr(row, column) is None)]
    return list(islice(rows, offset, offset + limit))


def sessions_of(broker: Broker, search: str, sort: str, offset: int, limit: int) -> SessionsTable:
    """Those whose client id or user contains the words; in the order in which they came, if no other is asked for."""
    wanted, users = search.casefold(), broker.sessions.users
    found = [
        session
        for session in broker.sessions
        if not wanted or wanted in session.client.casefold() or wanted in users.get(session.client, "").casefold()
    ]
    addresses = addresses_of(broker)
    # Without an order, rows are made for the page only.
    chosen = found if sort else found[offset : offset + limit]
    rows = [session_row(broker, each, addresses) for each in chosen]
    return SessionsTable(len(found), page_of(rows, SessionRow, sort, offset if sort else 0, limit))


def subscriptions_of(broker: Broker, search: str, sort: str, offset: int, limit: int) -> SubscriptionsTable:
    """Those whose client, topic filter or condition contains the words."""
    wanted = search.casefold()
    found = [
        (session, held)
        for session in broker.sessions
        for held in session.held.values()
        if not wanted
        or wanted in session.client.casefold()
        or wanted in held.filter.casefold()
        or (held.subscription.where is not None and wanted in predicate_text(held.subscription.where).casefold())
    ]
    chosen = found if sort else found[offset : offset + limit]
    rows = [subscription_row(session, held) for session, held in chosen]
    return SubscriptionsTable(len(found), page_of(rows, SubscriptionRow, sort, offset if sort else 0, limit))


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


def addresses_of(broker: Broker) -> dict[str, str]:
    """From where each client has connected."""
    return {
        conversation.session.client: conversation.address
        for conversation in broker.services.open
        if conversation.session is not None
    }


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
