"""Sessions and subscriptions, to be searched and turned over page by page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TypeVar

from nearcast.broker.core import Broker
from nearcast.broker.sessions.session import Session
from nearcast.dashboard.contract import SessionRow, SessionsTable
from nearcast.model.time import to_text

T = TypeVar("T")


def page_of(rows: Sequence[T], offset: int, limit: int) -> Iterable[T]:
    return islice(rows, offset, offset + limit)


def sessions_of(broker: Broker, search: str, offset: int, limit: int) -> SessionsTable:
    """Those whose client id or user contains the words, in the order in which they came."""
    wanted, users = search.casefold(), broker.sessions.users
    found = [
        session
        for session in broker.sessions
        if not wanted or wanted in session.client.casefold() or wanted in users.get(session.client, "").casefold()
    ]
    addresses = addresses_of(broker)
    return SessionsTable(len(found), [session_row(broker, each, addresses) for each in page_of(found, offset, limit)])


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
