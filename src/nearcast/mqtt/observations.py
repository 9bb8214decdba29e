"""To be told of clients: subscriptions below ``$nearcast/presence/``, and whom a client lets know of it (docs/mqtt.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote

import msgspec

from nearcast.errors import InvalidArea, InvalidProperty, InvalidTopic
from nearcast.model.area import Area, Circle
from nearcast.model.presence import Kind
from nearcast.model.time import duration, duration_text
from nearcast.mqtt import names
from nearcast.mqtt.names import ReservedTopic

PREFIX: Final = ReservedTopic.PRESENCE.topic
_FORMS: Final = f"{PREFIX}<kind>/<client>, where each may be +, or {PREFIX}#"
FARTHEST: Final = 100_000.0
"""Metres around a client: everybody within them is looked at whenever it moves."""

_OF_AREAS: Final = frozenset(Kind) - {Kind.NEAR}


@dataclass(frozen=True, slots=True)
class Observation:
    """What somebody wants to be told of clients."""

    kinds: frozenset[Kind]
    who: str | None
    """This client only; none: whoever lets itself be observed."""

    area: Area
    stay: int | None = None
    """Microseconds."""

    around: str | None = None
    """The client around which the area lies, if it lies nowhere; none: whoever asks."""

    @property
    def metres(self) -> float:
        """How near one must come, to whom the area lies around."""
        assert isinstance(self.area, Circle)
        return self.area.radius

    def properties(self) -> dict[str, str | None]:
        """Those that only observations have."""
        return {names.STAY: None if self.stay is None else duration_text(self.stay), names.AROUND: self.around}


def is_observation(topic_filter: str) -> bool:
    return topic_filter.startswith(PREFIX)


def observation(topic: str, area: Area | None, own: Mapping[str, str]) -> Observation | None:
    """What a subscription asks to be told of; none if it is about events."""
    if not is_observation(topic):
        for name in (names.STAY, names.AROUND):
            if name in own:
                raise InvalidProperty(f"{name} is for subscriptions to {_FORMS}")
        return None
    for name in (names.SINCE, names.UNTIL, names.BATCH):
        if name in own:
            raise InvalidProperty(f"{name} is for events: what clients did in the past is nobody's to be told")
    kinds, who = _taken_apart(topic)
    if area is None:
        raise InvalidProperty(f"{names.AREA} is missing: an area that is watched, or metres around a client")
    stay, around = own.get(names.STAY), own.get(names.AROUND)
    if area.is_relative:
        if not isinstance(area, Circle):
            raise InvalidArea(f"{names.AREA} around a client is a circle: give the metres, such as 50")
        if area.radius > FARTHEST:
            raise InvalidArea(
                f"{names.AREA} around a client reaches {FARTHEST:,.0f} m at most, not {area.radius:,.0f} m"
            )
        if Kind.NEAR not in kinds or stay is not None:
            raise InvalidProperty(
                f"{names.AREA} lies around a client and moves with it, which is for {PREFIX}near/...; give it an `at` to watch a place"
            )
        return Observation(frozenset({Kind.NEAR}), who, area, None, around)
    if around is not None:
        raise InvalidProperty(
            f"{names.AROUND} says around whom an area lies, but this one lies somewhere: leave one out"
        )
    wanted = kinds & _OF_AREAS
    if not wanted:
        raise InvalidProperty(f"{names.AREA} of {PREFIX}near/... lies around a client: give metres, without `at`")
    if stay is None:
        if wanted == {Kind.STAY}:
            raise InvalidProperty(f"{names.STAY} is missing: for how long, such as 10m")
        return Observation(wanted - {Kind.STAY}, who, area)
    if Kind.STAY not in wanted:
        raise InvalidProperty(f"{names.STAY} is for {PREFIX}stay/... or {PREFIX}+/...")
    length = duration(stay)
    if length <= 0:
        raise InvalidProperty(f"{names.STAY} is a time such as 10m, longer than nothing, not {stay!r:.40}")
    return Observation(wanted, who, area, length)


def _taken_apart(topic: str) -> tuple[frozenset[Kind], str | None]:
    levels = topic[len(PREFIX) :].split("/")
    every = frozenset(Kind)
    if levels == ["#"]:
        return every, None
    if levels[0] != "+" and levels[0] not in every:
        raise InvalidTopic(f"there is no presence {levels[0]!r:.40}; there is {', '.join(Kind)}: {_FORMS}")
    kinds = every if levels[0] == "+" else frozenset({Kind(levels[0])})
    if len(levels) != 2 or not levels[1]:
        raise InvalidTopic(f"{topic!r:.80} is no presence to be told of; write {_FORMS}")
    return kinds, None if levels[1] in {"+", "#"} else unquote(levels[1])


def notice_topic(kind: str, client: str) -> str:
    """Where the broker tells of a client; its id is percent-encoded, since it may hold anything."""
    return f"{PREFIX}{kind}/{quote(client, safe='')}"


@dataclass(frozen=True, slots=True)
class Consent:
    """Who may observe a client."""

    everybody: bool = False
    users: frozenset[str] = frozenset()
    clients: frozenset[str] = frozenset()

    def permits(self, client: str, user: str | None) -> bool:
        return self.everybody or client in self.clients or (user is not None and user in self.users)

    @property
    def is_empty(self) -> bool:
        return not (self.everybody or self.users or self.clients)

    def without(self, users: frozenset[str], clients: frozenset[str]) -> Consent:
        """The same, but not for these; itself, if it names none of them."""
        if self.users.isdisjoint(users) and self.clients.isdisjoint(clients):
            return self
        return Consent(self.everybody, self.users - users, self.clients - clients)

    def payload(self) -> bytes:
        if self.everybody or self.is_empty:
            return b"true" if self.everybody else b"false"
        return msgspec.json.encode({"users": sorted(self.users), "clients": sorted(self.clients)})


NOBODY: Final = Consent()
_CONSENT_FORMS: Final = 'true (everybody who may), false (nobody), or {"users": ["ada"], "clients": ["phone-7"]}'
MOST_NAMED: Final = 1_000


def consent_in(payload: bytes) -> Consent:
    """Read what a client says on ``$nearcast/observable``; nothing: nobody."""
    if not payload:
        return NOBODY
    try:
        tree = msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InvalidProperty(f"{payload[:40]!r} does not say who may observe; send {_CONSENT_FORMS}") from None
    match tree:
        case bool():
            return Consent(everybody=tree)
        case {**said} if said and not said.keys() - {"users", "clients"}:
            return Consent(users=_names(said.get("users", [])), clients=_names(said.get("clients", [])))
        case _:
            raise InvalidProperty(f"{payload[:40]!r} does not say who may observe; send {_CONSENT_FORMS}")


def consent_of(users: Iterable[str], clients: Iterable[str]) -> Consent:
    return Consent(users=_names(list(users)), clients=_names(list(clients)))


def _names(said: Any) -> frozenset[str]:
    if not isinstance(said, list) or not all(isinstance(name, str) and name for name in said):
        raise InvalidProperty(f"users and clients are lists of names; send {_CONSENT_FORMS}")
    if len(said) > MOST_NAMED:
        raise InvalidProperty(f"at most {MOST_NAMED} users and as many clients can be named; or say true")
    return frozenset(said)
