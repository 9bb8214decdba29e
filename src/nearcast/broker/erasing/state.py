"""What of the broker's durable state is a person's.

Of most tables keys begin with a client id.  Which client ids are meant: those of sessions that are the person's, and those of
the person's that nobody has now; one that somebody else uses by now is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from nearcast.broker.federation.custody import DESTINATIONS, PARCELS, ParcelRow
from nearcast.broker.federation.event_ids import TABLE as FEDERATED
from nearcast.broker.federation.event_ids import TAKEN_BACK
from nearcast.broker.federation.replicas import TABLE as REPLICAS
from nearcast.broker.federation.replicas import ReplicaRow
from nearcast.broker.federation.roaming import HOMES
from nearcast.broker.federation.wire import RELAY, UNPUBLISH, event_body, relay_body, unpublish_body
from nearcast.broker.observation.notices import NOTICES, NoticeRow
from nearcast.broker.observation.stays import STAYS, StayRow
from nearcast.broker.presence import PRESENCE, PresenceRow
from nearcast.broker.proximities import PROXIMITIES
from nearcast.broker.publishing.retained import RETAINED, RetainedRow
from nearcast.broker.schemes.scheming import CLIENTS as SCHEME_CLIENTS
from nearcast.broker.schemes.scheming import NAMED
from nearcast.broker.sessions.session import OUTGOING
from nearcast.broker.sessions.sessions import INCOMING, SESSIONS, SUBSCRIPTIONS, SessionRow, SubscriptionRow
from nearcast.broker.temporal.addressing import MOMENTS, AddressedRow
from nearcast.broker.temporal.replays import REPLAYS
from nearcast.errors import InvalidInput
from nearcast.journal import Journal, Put
from nearcast.journal.erasure.subject import Subject
from nearcast.mqtt import names
from nearcast.mqtt.observations import consent_in
from nearcast.mqtt.requests import subscription_request

_BY_CLIENT: Final = frozenset(
    {
        SESSIONS,
        SUBSCRIPTIONS,
        INCOMING,
        OUTGOING,
        PRESENCE,
        PROXIMITIES,
        REPLAYS,
        SCHEME_CLIENTS,
        NAMED,
        HOMES,
        NOTICES,
        STAYS,
    }
)


def identities_of(journal: Journal, user: str | None, subject: Subject) -> set[str]:
    """Under which sessions of the person are recorded: one that came from another broker brought its identity with it."""
    found = set()
    for client, data in journal.load(SESSIONS).items():
        row = msgspec.msgpack.decode(data, type=SessionRow)
        own = row.user == user if user is not None else row.user is None and client in subject.clients
        if own and row.identity is not None:
            found.add(row.identity)
    return found


def clients_of(journal: Journal, subject: Subject) -> frozenset[str]:
    """The client ids of the person that nobody else has now."""
    mine, taken = set(subject.clients), set[str]()
    for client, data in journal.load(SESSIONS).items():
        row = msgspec.msgpack.decode(data, type=SessionRow)
        (mine if subject.is_one(row.identity) else taken).add(client)
    return frozenset(mine - taken)


def rows_of(
    journal: Journal, subject: Subject, clients: frozenset[str], users: frozenset[str] = frozenset()
) -> Iterator[Put]:
    """What is to be deleted, or to stand in its place; ``users``: the person's names.  For a worker thread."""
    needles = [identity.encode() for identity in subject.identities]
    for table in journal.tables():
        judge = _JUDGES.get(table, _nobodys)
        for key, value in journal.load(table).items():
            by_client = table in _BY_CLIENT and key.partition("\0")[0] in clients
            # An identity is 128 bits: wherever it stands, it is meant.
            named = any(needle in value or needle in key.encode() for needle in needles)
            if by_client or named or judge(subject, clients, key, value):
                yield Put(table, key, None)
            elif table == PRESENCE and (rest := _agreed_without(value, users, clients)) is not None:
                yield Put(table, key, rest)


def _agreed_without(value: bytes, users: frozenset[str], clients: frozenset[str]) -> bytes | None:
    """Somebody else lets the person observe it, by name: what is left of that; nothing, if it does not."""
    row = msgspec.msgpack.decode(value, type=PresenceRow)
    consent = consent_in(row.observable)
    rest = consent.without(users, clients)
    return None if rest is consent else msgspec.msgpack.encode(msgspec.structs.replace(row, observable=rest.payload()))


def _nobodys(_subject: Subject, _clients: frozenset[str], _key: str, _value: bytes) -> bool:
    return False


def _notice(_subject: Subject, clients: frozenset[str], _key: str, value: bytes) -> bool:
    """What waits for somebody else tells of the person."""
    row = msgspec.msgpack.decode(value, type=NoticeRow)
    told = msgspec.json.decode(row.payload)
    return told["who"] in clients or told.get("near") in clients


def _stay(_subject: Subject, clients: frozenset[str], _key: str, value: bytes) -> bool:
    return msgspec.msgpack.decode(value, type=StayRow).client in clients


def _watch(_subject: Subject, clients: frozenset[str], _key: str, value: bytes) -> bool:
    """Somebody else asked to be told of the person by name."""
    row = msgspec.msgpack.decode(value, type=SubscriptionRow)
    if names.RESERVED not in row.filter:
        return False
    try:
        wanted = subscription_request(row.filter, row.properties).observation
    except InvalidInput:
        return False
    return wanted is not None and (wanted.who in clients or wanted.around in clients)


def _retained(subject: Subject, _clients: frozenset[str], _key: str, value: bytes) -> bool:
    row = msgspec.msgpack.decode(value, type=RetainedRow)
    # Those of an earlier version do not say whose they are.
    return subject.is_one(row.publisher) or (row.publisher is None and row.event in subject.ids)


def _moment(subject: Subject, _clients: frozenset[str], _key: str, value: bytes) -> bool:
    row = msgspec.msgpack.decode(value, type=AddressedRow)
    return row.offset in subject.offsets or subject.published(row.event)


def _parcel(subject: Subject, clients: frozenset[str], key: str, value: bytes) -> bool:
    row = msgspec.msgpack.decode(value, type=ParcelRow)
    if row.kind == UNPUBLISH:
        return unpublish_body(row.body).key in subject.keys
    if row.kind == RELAY:
        relay = relay_body(row.body)
        return relay.client in clients or relay.event in subject.keys
    return key.partition(" ")[0] in subject.keys or subject.published(event_body(row.body).entry)


def _replica(subject: Subject, _clients: frozenset[str], _key: str, value: bytes) -> bool:
    row = msgspec.msgpack.decode(value, type=ReplicaRow)
    return subject.published(event_body(row.body).entry)


def _keyed(subject: Subject, _clients: frozenset[str], key: str, _value: bytes) -> bool:
    return key in subject.keys or key.partition("\0")[0].partition(" ")[0] in subject.keys


_JUDGES: Final[dict[str, Callable[[Subject, frozenset[str], str, bytes], bool]]] = {
    NOTICES: _notice,
    STAYS: _stay,
    SUBSCRIPTIONS: _watch,
    RETAINED: _retained,
    MOMENTS: _moment,
    PARCELS: _parcel,
    REPLICAS: _replica,
    FEDERATED: _keyed,
    DESTINATIONS: _keyed,
    TAKEN_BACK: _keyed,
}
