"""Who is looking, and who may.

The broker's own users and rules decide: whoever may have mechanisms exchanged (``plans``) sees the dashboard, and nobody else.  A page logs in
with a password and is given a random cookie, which this process remembers by its digest until it expires, is logged out, or the user's password
changes.  Scripts may use HTTP Basic as on all other routes.

What a browser brings along by itself proves nothing about who asked: changes need a header that no other site's page can send without being
asked for it first, and the WebSocket an Origin that is this one.  Somebody without a password, whom rules let in because of where the
connection comes from, must have called the broker by a name of this machine: else any page could have itself resolved to it.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Final

from litestar import Request
from litestar.datastructures import Cookie

from nearcast.broker.access import Access, Peer, Principal
from nearcast.broker.core import Broker
from nearcast.broker.http.authentication import credentials_in
from nearcast.broker.http.browsers import Asking, check_origin, is_called_by_address
from nearcast.broker.settings import DashboardSettings
from nearcast.errors import Denied, NotAuthenticated, QuotaExceeded
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.buckets import Bucket

CLIENT: Final = "dashboard"
COOKIE: Final = "nearcast_dashboard"
WORD: Final = "x-nearcast"
"""The header that every change needs."""

MOST_LOGINS: Final = 1_000
"""Remembered at a time; the oldest goes first."""

MOST_LOGINS_OF_ONE: Final = 50
"""Of one user; its own oldest goes first, and nobody else's."""

MOST_ADDRESSES: Final = 10_000
ATTEMPTS: Final = 10
"""Wrong passwords from one address in a row; then one in ``PATIENCE`` seconds."""

PATIENCE: Final = 6
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who is looking."""

    user: str | None
    may: bool
    """See and command: one permission for both, since who may command has to see."""


@dataclass(frozen=True, slots=True)
class _Login:
    user: str
    stamp: str
    """Of the password: another one ends the log-in."""

    until: Instant


@dataclass(slots=True)
class _Failures:
    """Of one address."""

    wrong: Bucket
    trying: int = 0
    """Passwords that are just being looked at."""


@dataclass(frozen=True, slots=True)
class DoorsStatistics:
    logins: int
    failed: int
    limited: int
    """Attempts that were not even looked at."""


class Doors:
    """One for each broker."""

    def __init__(self, broker: Broker, settings: DashboardSettings) -> None:
        self._access: Final[Access] = broker.access
        self._now: Final = broker.clock.now
        self._stay: Final = settings.stay
        self._logins: Final[OrderedDict[bytes, _Login]] = OrderedDict()
        self._failures: Final[OrderedDict[str, _Failures]] = OrderedDict()
        self._failed = self._limited = 0

    def statistics(self) -> DoorsStatistics:
        return DoorsStatistics(len(self._logins), self._failed, self._limited)

    # Asking

    async def viewer(self, asking: Asking) -> Viewer:
        """Who that is; ``NotAuthenticated`` for a wrong password only."""
        try:
            principal = await self._principal(asking)
        except _Nobody:
            return Viewer(None, may=False)
        try:
            principal.check_plan()
        except Denied:
            return Viewer(principal.user, may=False)
        return Viewer(principal.user, may=True)

    async def check(self, asking: Asking) -> Viewer:
        """Who that is; ``NotAuthenticated`` or ``Denied`` unless it may see the dashboard."""
        viewer = await self.viewer(asking)
        if not viewer.may:
            if viewer.user is None:
                raise NotAuthenticated("log in as somebody who may see this: a rule with plans = true allows it")
            raise Denied(f"nothing allows user {viewer.user!r} to see this; ask for a rule with plans = true")
        return viewer

    async def check_request(self, request: Request[Any, Any, Any]) -> None:
        """For all routes but the page and the log-in: nothing is answered to whom it does not concern."""
        if request.method not in SAFE:
            check_word(request)
        request.state.viewer = await self.check(request)

    async def _principal(self, asking: Asking) -> Principal:
        peer = _peer(asking)
        token = _token(asking)
        login = None if token is None else self._login(token)
        if login is not None:
            return self._access.known(login.user, CLIENT, peer)
        user, password = credentials_in(asking.headers.get("authorization"))
        if not user and not password:  # also if the header is there and says nothing: a page may send it, too
            if not is_called_by_address(asking):
                raise _Nobody
            try:
                return await self._access.authenticate(CLIENT, None, None, peer)
            except NotAuthenticated:
                raise _Nobody from None
        return await self._authenticate(user, password, peer)

    # Logging in and out

    async def log_in(self, request: Request[Any, Any, Any], user: str, password: str) -> Cookie:
        """``NotAuthenticated`` if the password is wrong, ``QuotaExceeded`` after too many of these."""
        check_word(request)
        if not user:
            raise NotAuthenticated("give a user name")
        principal = await self._authenticate(user, password.encode(), _peer(request))
        stamp = self._access.stamp(user)
        if stamp is None:  # removed meanwhile
            raise NotAuthenticated("wrong user name or password")
        token = secrets.token_urlsafe(32)
        now = self._now()
        self._forget_old(now)
        own = [key for key, login in self._logins.items() if login.user == user]
        if len(own) >= MOST_LOGINS_OF_ONE:
            del self._logins[own[0]]
        # A token may be given as the password: what it is exchanged for holds no longer than it does.
        stay = self._stay if principal.until is None else max(0, min(self._stay, principal.until - now))
        self._logins[_digest(token)] = _Login(user, stamp, now + stay)
        if len(self._logins) > MOST_LOGINS:
            self._logins.popitem(last=False)
        return _cookie(request, token, stay // MICROSECONDS)

    def log_out(self, request: Request[Any, Any, Any]) -> Cookie:
        check_word(request)
        token = _token(request)
        if token is not None:
            self._logins.pop(_digest(token), None)
        return _cookie(request, "", 0)

    async def _authenticate(self, user: str | None, password: bytes | None, peer: Peer) -> Principal:
        """Wrong passwords are counted by address, and after some of them nothing is looked at for a while."""
        failures = self._failures.get(peer.address)
        if failures is None:
            failures = self._failures[peer.address] = _Failures(
                Bucket(1 / PATIENCE, ATTEMPTS * PATIENCE * MICROSECONDS)
            )
            self._forget_addresses()
        # Those whose passwords are just being looked at may turn out to be wrong, too: else many at once would all be let try.
        if failures.trying >= ATTEMPTS or not failures.wrong.has(self._now(), failures.trying + 1):
            self._limited += 1
            raise QuotaExceeded(
                f"too many wrong passwords; try again in {PATIENCE} seconds", wait=PATIENCE * MICROSECONDS
            )
        failures.trying += 1
        try:
            return await self._access.authenticate(CLIENT, user, password, peer)
        except NotAuthenticated:
            self._failed += 1
            failures.wrong.take(self._now())
            raise
        finally:
            failures.trying -= 1

    def _forget_addresses(self) -> None:
        """Of too many the oldest, but none whose passwords are just being looked at."""
        if len(self._failures) > MOST_ADDRESSES:
            idle = next((address for address, each in self._failures.items() if not each.trying), None)
            if idle is not None:
                del self._failures[idle]

    def _login(self, token: str) -> _Login | None:
        key = _digest(token)
        login = self._logins.get(key)
        if login is None:
            return None
        if login.until <= self._now() or self._access.stamp(login.user) != login.stamp:
            del self._logins[key]
            return None
        return login

    def _forget_old(self, now: Instant) -> None:
        for key in [key for key, login in self._logins.items() if login.until <= now]:
            del self._logins[key]


class _Nobody(Exception):
    """Nobody who could be let in."""


def check_word(request: Asking) -> None:
    """``Denied`` for what another site's page may have had a browser send."""
    if request.headers.get(WORD) != "1":
        raise Denied("what changes something needs the header X-Nearcast: 1")
    check_origin(request)


def _peer(asking: Asking) -> Peer:
    address, port = (asking.client.host, asking.client.port) if asking.client else ("", 0)
    return Peer(address, port, asking.scope["scheme"] in {"https", "wss"})


def _token(asking: Asking) -> str | None:
    # By hand: http.cookies finds none at all if another one is odd, and all that runs on this host may have set one.
    for cookie in asking.headers.get("cookie", "").split(";"):
        name, _, value = cookie.strip().partition("=")
        if name == COOKIE and value:
            return value
    return None


def _digest(token: str) -> bytes:
    """What is remembered: whoever reads this process's memory cannot log in by it, and nobody learns from how long a comparison takes."""
    return hashlib.sha256(token.encode(errors="replace")).digest()


def _cookie(request: Asking, value: str, seconds: int) -> Cookie:
    return Cookie(
        COOKIE,
        path="/dashboard",
        value=value,
        max_age=seconds,
        secure=request.scope["scheme"] == "https",
        httponly=True,
        samesite="strict",
    )
