"""Letting clients in: a CONNECT becomes a ``Principal``, or is refused."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from nearcast.broker.access.attempts import AT_ONCE, TOKENS_AT_ONCE, Attempts
from nearcast.broker.access.passwords import Passwords, PasswordStatistics
from nearcast.broker.access.principal import Peer, Principal
from nearcast.broker.access.rules import Rules
from nearcast.broker.access.tokens import TokenHolder, Tokens, TokenStatistics
from nearcast.broker.settings import BrokerSettings, is_loopback
from nearcast.errors import NotAuthenticated
from nearcast.model.time import Instant
from nearcast.runtime.live.clock import LiveClock

_NOT_AUTHORIZED: Final = 0x87
_WRONG: Final = "wrong user name or password"  # not which of them: that would tell who has an account


@dataclass(frozen=True, slots=True)
class AccessStatistics:
    admitted: int
    anonymous: int
    """Of those admitted, the ones without a name."""

    refused: int
    rules: int
    passwords: PasswordStatistics
    tokens: TokenStatistics | None
    """None if none are taken."""


class Access:
    """One for each broker."""

    def __init__(self, settings: BrokerSettings, now: Callable[[], Instant] | None = None) -> None:
        self._settings = settings
        self._anonymous = settings.access.anonymous
        self._rules = Rules(settings.access.rules, settings.access.groups)
        self._passwords = Passwords(settings.passwords)
        now, limits = now or LiveClock().now, settings.limits
        self._attempts = Attempts(limits, now, "passwords", limits.wrong_passwords_per_minute, AT_ONCE)
        self._token_attempts = Attempts(limits, now, "tokens", limits.wrong_tokens_per_minute, TOKENS_AT_ONCE)
        jwt = settings.access.jwt
        self._tokens = None if jwt is None else Tokens(jwt, now)
        self.kept_out: Final[set[str]] = set()
        """Users that are being erased."""

        self._admitted = self._admitted_anonymous = self._refused = 0
        self.generation = 0
        """How often the rules have changed."""

    async def authenticate(self, client_id: str, username: str | None, password: bytes | None, peer: Peer) -> Principal:
        """Who that is; ``NotAuthenticated`` carries the reason code for the CONNACK."""
        stamp = None if username is None else self._passwords.stamp(username)  # before it is verified, never after
        try:
            holder = self._holder(username, password, peer)
            user = await self._user(username, password, peer) if holder is None else holder.user
            if user is not None and (self._passwords.is_revoked(user) or user in self.kept_out):
                raise NotAuthenticated(_WRONG)
        except NotAuthenticated:
            self._refused += 1
            raise
        self._admitted += 1
        self._admitted_anonymous += user is None
        trusted = user is not None or _is_from_here(peer)
        shown = stamp if holder is None and peer.certificate_name is None else None
        groups, until = (frozenset[str](), None) if holder is None else (holder.groups, holder.until)
        grants = self._rules.grants(user, client_id, groups)
        return Principal(user, client_id, peer, grants, trusted=trusted, until=until, groups=groups, stamp=shown)

    def adopt(self, other: Access) -> None:
        """Judge by what another one was told, from now on; that one is used up."""
        if other._settings.passwords == self._settings.passwords:
            other._passwords.close()  # the file is read again when it changes, and who was recognised stays so
        else:
            self._passwords.close()
            self._passwords = other._passwords
        if other._settings.access.jwt != self._settings.access.jwt:
            self._tokens = other._tokens
        if other._settings.limits != self._settings.limits:
            self._attempts, self._token_attempts = other._attempts, other._token_attempts
        self._anonymous, self._rules, self._settings = other._anonymous, other._rules, other._settings
        self.generation += 1

    @property
    def takes_tokens(self) -> bool:
        return self._tokens is not None

    def recognised(self, username: str | None, password: bytes | None) -> str | None:
        """Who that is if it was let in with these before; nothing is verified, which may take long."""
        if password is None:
            return None
        if self._tokens is not None and self._tokens.looks_like_one(password):
            holder = self._tokens.recognised(password)
            return None if holder is None else holder.user
        return username if username and self._passwords.recognises(username, password) else None

    def again(self, principal: Principal) -> Principal:
        """The same client, by the rules as they are now: it stays let in, and may do what they say."""
        return Principal(
            principal.user,
            principal.client_id,
            principal.peer,
            self._rules.grants(principal.user, principal.client_id, principal.groups),
            trusted=principal.trusted,
            until=principal.until,
            groups=principal.groups,
            stamp=principal.stamp,
        )

    def version(self) -> object:
        """Changes when users do."""
        return self._passwords.version

    def holds(self, principal: Principal) -> bool:
        """Whether who was let in would still be let in by what it has shown: not with another password, nor revoked or being erased."""
        user = principal.user
        if user is None:
            return True
        if self._passwords.is_revoked(user) or user in self.kept_out:
            return False
        return principal.stamp is None or hmac.compare_digest(self._passwords.stamp(user) or "", principal.stamp)

    def absent(self, user: str | None, client_id: str) -> Principal:
        """Somebody who was let in before a restart and is away: may do what the rules say now."""
        return Principal(user, client_id, Peer(""), self._rules.grants(user, client_id), trusted=False)

    def stamp(self, user: str) -> str | None:
        """What changes with the user's password; none: there is no such user.  A secret as the hash itself is one: not to be told."""
        return self._passwords.stamp(user)

    def known(self, user: str, client_id: str, peer: Peer) -> Principal:
        """Somebody who has shown a password a while ago, by what it was given for it (the caller's business)."""
        return Principal(user, client_id, peer, self._rules.grants(user, client_id), trusted=True)

    def close(self) -> None:
        self._passwords.close()

    def statistics(self) -> AccessStatistics:
        return AccessStatistics(
            admitted=self._admitted,
            anonymous=self._admitted_anonymous,
            refused=self._refused,
            rules=len(self._rules),
            passwords=self._passwords.statistics(),
            tokens=None if self._tokens is None else self._tokens.statistics(),
        )

    def _holder(self, username: str | None, password: bytes | None, peer: Peer) -> TokenHolder | None:
        """Of a token that was given as the password; who has shown a certificate is who that says."""
        if self._tokens is None or peer.certificate_name is not None or not self._tokens.looks_like_one(password):
            return None
        assert password is not None
        tokens = self._tokens
        with self._token_attempts.trying(peer.address, exempt=lambda: tokens.recognised(password) is not None):
            holder = tokens.holder(password)
            if username and username != holder.user:
                raise NotAuthenticated(_WRONG)
        return holder

    async def _user(self, username: str | None, password: bytes | None, peer: Peer) -> str | None:
        if peer.certificate_name is not None:
            if username not in (None, "", peer.certificate_name):
                raise NotAuthenticated(f"the certificate is of {peer.certificate_name!r}; give that user name, or none")
            return peer.certificate_name
        if not username and not password:
            self._check_anonymous(peer)
            return None
        # Who gives a name means to be known by it: a wrong password does not make a client anonymous.
        if not username or password is None:
            raise NotAuthenticated(_WRONG)
        with self._attempts.trying(peer.address, exempt=lambda: self._passwords.recognises(username, password)):
            if not await self._passwords.verify(username, password):
                raise NotAuthenticated(_WRONG)
        return username

    def _check_anonymous(self, peer: Peer) -> None:
        if self._anonymous == "always" or (self._anonymous == "loopback" and _is_from_here(peer)):
            return
        allowed = (
            "from this machine itself, and no page of another site" if self._anonymous == "loopback" else "from nowhere"
        )
        raise NotAuthenticated(
            f"a user name and password are needed: without them clients are let in {allowed} (access.anonymous)",
            _NOT_AUTHORIZED,
        )


def _is_from_here(peer: Peer) -> bool:
    """Whether somebody at this machine means to speak to the broker, and not a page that a browser here has loaded from elsewhere."""
    return is_loopback(peer.address) and not peer.foreign_page
