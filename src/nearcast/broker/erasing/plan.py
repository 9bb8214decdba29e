"""Who is being erased, in the data folder, until nothing of it is left: whoever is interrupted finds there what to go on with.

It names the person, so it is readable by the broker's account only, and it goes last.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from nearcast.errors import InvalidRecord
from nearcast.files import clear_drafts, write_whole
from nearcast.journal.erasure.journal import Erased
from nearcast.journal.erasure.subject import Subject
from nearcast.journal.identities import Identities

PLAN: Final = "erasing.json"
PROGRESS: Final = "erasing.progress.json"


class Counts(msgspec.Struct, frozen=True):
    """What was erased, or would be."""

    records: int = 0
    """Of the journal."""

    receivers: int = 0
    """Records of others in the journal that no longer name it."""

    rows: int = 0
    """Of the lake."""

    rows_receivers: int = 0
    state: int = 0
    """Rows of the durable state: sessions, subscriptions, retained messages, ..."""

    def with_journal(self, erased: Erased) -> Counts:
        return msgspec.structs.replace(self, records=erased.records, receivers=erased.receivers)

    def with_lake(self, erased: Erased) -> Counts:
        return msgspec.structs.replace(self, rows=erased.records, rows_receivers=erased.receivers)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A user, with all its clients; or a client that has no user."""

    user: str | None = None
    clients: tuple[str, ...] = ()
    identities: tuple[str, ...] = ()
    secret: bytes | None = None
    offsets: tuple[int, ...] = ()
    ids: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    dry: bool = False
    """Only count."""

    named: bool = False
    """All its identities are in the plan."""

    done: bool = False
    """Nothing is left in journal, lake and map; what jobs have made is still to come."""

    counts: Counts = Counts()
    """If it is done, or dry."""

    problem: str | None = None
    """Why it could not be carried out."""

    @property
    def users(self) -> frozenset[str]:
        """Its names, as others know them."""
        return frozenset() if self.user is None else frozenset({self.user})

    def subject(self) -> Subject:
        return Subject(
            frozenset(self.identities),
            self.secret,
            frozenset(self.clients),
            set(self.offsets),
            set(self.ids),
            set(self.keys),
        )

    def learnt(self, subject: Subject) -> Plan:
        return msgspec.structs.replace(
            self,
            offsets=tuple(sorted(subject.offsets)),
            ids=tuple(sorted(subject.ids)),
            keys=tuple(sorted(subject.keys)),
        )

    def is_same(self, other: Plan) -> bool:
        """Whether both are about the same person."""
        return (self.user, self.user is None and self.clients) == (other.user, other.user is None and other.clients)

    def described(self) -> str:
        return f"user {self.user!r}" if self.user is not None else f"client {', '.join(map(repr, self.clients))}"


class Progress(msgspec.Struct, frozen=True):
    step: str
    done: int
    total: int


def read_plan(data: Path) -> Plan | None:
    path = data / PLAN
    try:
        return msgspec.json.decode(path.read_bytes(), type=Plan)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise InvalidRecord(f"{path} cannot be read: {error}; delete it, and erase again") from None


def read_progress(data: Path) -> Progress | None:
    try:
        return msgspec.json.decode((data / PROGRESS).read_bytes(), type=Progress)
    except (OSError, msgspec.MsgspecError):
        return None


def write_plan(data: Path, plan: Plan) -> None:
    write_whole(data / PLAN, msgspec.json.encode(plan), mode=0o600)


def forget_plan(data: Path) -> None:
    """Last of all."""
    for name in (PROGRESS, PLAN):
        clear_drafts(data / name)
        (data / name).unlink(missing_ok=True)


def known_as(identities: Identities, plan: Plan) -> Plan:
    """The plan with all that the map knows of that person, in addition to what the plan knew before."""
    if plan.user is not None:
        found = identities.of_user(plan.user)
        secret = plan.secret or identities.secret_of(plan.user)
    else:
        found = {client: each for client in plan.clients if (each := identities.known(client)) is not None}
        secret = None
    return msgspec.structs.replace(
        plan,
        clients=tuple(sorted({*plan.clients, *found})),
        identities=tuple(sorted({*plan.identities, *found.values()})),
        secret=secret,
    )
