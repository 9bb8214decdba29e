"""The rules of the settings, and what follows from them for a client.

Without any rule, whoever was let in may do everything.  As soon as there is one, nothing is allowed that no rule allows.  A rule
is for the users and groups that it names (``*``: everybody with a password) and, with ``anonymous``, for those without one; with
``clients`` it is for these only if their client id has one of the given forms, which narrows a rule but is no proof of anything:
clients choose their ids themselves.  In its filters ``%u`` stands for the user name and ``%c`` for the client id.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Final

import msgspec

from nearcast.broker.access.grants import Grant
from nearcast.broker.settings import RuleSettings

_PLACEHOLDER: Final = re.compile("%[uc]")
# What would be more than a name inside of a filter.  `$` opens the topics that servers keep for themselves.
_MORE_THAN_A_NAME: Final = re.compile(r"[/+#\0]|^\$|^$")


class Rules:
    """All rules, ready to be asked who may do what."""

    def __init__(self, rules: Sequence[RuleSettings] = (), groups: Mapping[str, Sequence[str]] | None = None) -> None:
        members = {name: frozenset(users) for name, users in (groups or {}).items()}
        self._rules: Final = tuple(
            _Rule(rule, f"rule {rule.name!r}" if rule.name else f"rule {number}", members)
            for number, rule in enumerate(rules, 1)
        )

    def __len__(self) -> int:
        return len(self._rules)

    def grants(
        self, user: str | None, client_id: str, groups: frozenset[str] = frozenset()
    ) -> tuple[Grant, ...] | None:
        """What a client is granted; ``user`` is ``None`` for an anonymous one.  ``None``: there are no rules at all.

        ``groups``: those that a token puts the user into, besides those of the settings.
        """
        if not self._rules:
            return None
        return tuple(rule.grant(user, client_id) for rule in self._rules if rule.applies_to(user, client_id, groups))


class _Rule:
    def __init__(self, rule: RuleSettings, name: str, members: Mapping[str, frozenset[str]]) -> None:
        self._anonymous: Final = rule.anonymous
        self._clients: Final = rule.clients
        self._groups: Final = frozenset(rule.groups)
        self._users: Final = frozenset(rule.users).union(*(members.get(group, ()) for group in rule.groups))
        self._grant: Final = Grant(
            rule=name,
            publish=rule.publish,
            subscribe=rule.subscribe,
            within=rule.area(),
            reach_at_most=rule.reach_at_most,
            history_at_most=rule.history_at_most,
            may_address=rule.may_address,
            plans=rule.plans,
            query=rule.query,
            observe=rule.observe,
            hand_in=rule.hand_in,
            people_per_hour=rule.people_per_hour,
            counted_as=name if rule.name else _known_by(rule),
        )
        self._is_personal: Final = any(_PLACEHOLDER.search(written) for written in (*rule.publish, *rule.subscribe))

    def applies_to(self, user: str | None, client_id: str, groups: frozenset[str] = frozenset()) -> bool:
        if self._clients and not any(fnmatchcase(client_id, form) for form in self._clients):
            return False
        if user is None:
            return self._anonymous
        return user in self._users or "*" in self._users or not self._groups.isdisjoint(groups)

    def grant(self, user: str | None, client_id: str) -> Grant:
        """Most rules say the same to everybody, and then all share one grant."""
        if not self._is_personal:
            return self._grant
        return replace(
            self._grant,
            publish=_personal(self._grant.publish, user, client_id),
            subscribe=_personal(self._grant.subscribe, user, client_id),
        )


def _known_by(rule: RuleSettings) -> str:
    """Of a rule without a name: what it says, but how many people.  Its number would be another rule's when the file is changed."""
    said = repr(msgspec.structs.replace(rule, people_per_hour=None))
    return f"rule {hashlib.sha256(said.encode()).hexdigest()[:16]}"


def _personal(filters: Sequence[str], user: str | None, client_id: str) -> tuple[str, ...]:
    """The filters with names filled in; one whose name is missing, or would be more than a name, allows nothing."""
    names = {"%u": user or "", "%c": client_id}
    return tuple(
        _PLACEHOLDER.sub(lambda found: names[found[0]], written)
        for written in filters
        if not any(_MORE_THAN_A_NAME.search(names[used]) for used in _PLACEHOLDER.findall(written))
    )
