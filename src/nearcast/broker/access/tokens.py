"""Signed tokens (JWT, RFC 7519) instead of a password: who signed them, for whom, and until when they hold.

What a token says of its own algorithm and key decides nothing: the settings list the algorithms, each key takes only those made for its
kind (RFC 8725, 3.1), and shared secrets and public keys are never in one list, so that no public key is taken for a secret.  A client
that is refused is told one and the same sentence; what was wrong stands in the log, in our own words, without any part of the token.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from nearcast.broker.access.token_keys import keys_in
from nearcast.broker.access.users import is_user_name
from nearcast.broker.settings import JwtSettings
from nearcast.errors import InvalidSettings, NotAuthenticated
from nearcast.model.time import MICROSECONDS, Instant

if TYPE_CHECKING:
    from pathlib import Path

log: Final = logging.getLogger(__name__)
LONGEST_TOKEN: Final = 8_192
"""Bytes; those of large identity providers have two to four thousand."""

REMEMBERED: Final = 10_000
"""Tokens that are recognised when they come again, without verifying them: some 10 MB."""

MOST_GROUPS: Final = 256
REFUSED: Final = "wrong user name or password"
"""The same as of passwords."""


@dataclass(frozen=True, slots=True)
class TokenHolder:
    user: str
    groups: frozenset[str]
    until: Instant
    """Then the token has expired, leeway included."""


@dataclass(frozen=True, slots=True)
class TokenStatistics:
    keys: int
    accepted: int
    refused: int
    unreadable: int
    """Times that the changed file of keys could not be read; then the keys stay what they were."""


class Tokens:
    """Of one issuer; the file of keys is read again when it has changed."""

    def __init__(self, settings: JwtSettings, now: Callable[[], Instant]) -> None:
        self._settings: Final = settings
        self._now: Final = now
        self._path: Final[Path] = settings.file
        self._version = _version(self._path)
        self._keys = keys_in(settings)
        # By a digest keyed with a secret of this process: whoever reads its memory finds no token.
        self._recognised: Final[OrderedDict[bytes, TokenHolder]] = OrderedDict()
        self._secret: Final = secrets.token_bytes(32)
        self._accepted = self._refused = self._unreadable = 0

    def statistics(self) -> TokenStatistics:
        return TokenStatistics(len(self._keys), self._accepted, self._refused, self._unreadable)

    @staticmethod
    def looks_like_one(password: bytes | None) -> bool:
        """Three parts, the first of them the beginning of a JSON object: no password that somebody would think of."""
        return password is not None and password.startswith(b"eyJ") and password.count(b".") == 2

    def holder(self, token: bytes) -> TokenHolder:
        """Whose it is; ``NotAuthenticated`` says the same whatever is wrong."""
        holder = self.recognised(token)
        if holder is None:
            try:
                holder = self._holder(token)
            except _Wrong as wrong:
                self._refused += 1
                log.info("a token was refused: %s", wrong)
                raise NotAuthenticated(REFUSED) from None
            self._recognised[self._digest(token)] = holder
            if len(self._recognised) > REMEMBERED:
                self._recognised.popitem(last=False)
        self._accepted += 1
        return holder

    def recognised(self, token: bytes) -> TokenHolder | None:
        """Whose it is, if it was good before and still is: nothing of it is verified again."""
        self._refresh()
        if len(token) > LONGEST_TOKEN:
            return None
        digest = self._digest(token)
        holder = self._recognised.get(digest)
        if holder is not None and holder.until <= self._now():
            del self._recognised[digest]
            return None
        return holder

    def _digest(self, token: bytes) -> bytes:
        return hashlib.blake2b(token, key=self._secret).digest()

    def _holder(self, token: bytes) -> TokenHolder:
        if len(token) > LONGEST_TOKEN:
            raise _Wrong(f"it is longer than {LONGEST_TOKEN} bytes")
        claims = self._claims(token)
        settings = self._settings
        leeway = settings.leeway // MICROSECONDS
        now = self._now() / MICROSECONDS
        ends = _seconds(claims, "exp")
        if ends is None or ends + leeway <= now:
            raise _Wrong("it has expired, or does not say when it expires")
        for begins in ("nbf", "iat"):
            since = _seconds(claims, begins)
            if since is not None and since - leeway > now:
                raise _Wrong("it does not hold yet")
        user = claims.get(settings.user_claim)
        if not isinstance(user, str) or not is_user_name(user):
            raise _Wrong(f"its claim {settings.user_claim!r} is no user name")
        return TokenHolder(user, self._groups(claims), int((ends + leeway) * MICROSECONDS))

    def _claims(self, token: bytes) -> dict[str, Any]:
        import jwt

        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError:
            raise _Wrong("it cannot be read") from None
        algorithm, name = header.get("alg"), header.get("kid")
        if algorithm not in self._settings.algorithms:
            raise _Wrong("its algorithm is not among access.jwt.algorithms")
        fitting = [key for key in self._keys if algorithm in key.algorithms and key.is_named(name)]
        problem = "there is no key for it"
        for key in fitting:
            try:
                claims: dict[str, Any] = jwt.decode(
                    token,
                    key.key,
                    algorithms=[algorithm],
                    issuer=self._settings.issuer,
                    audience=self._settings.audience,
                    # Times are judged by the broker's clock, above.
                    options={
                        "require": ["exp", "iss", "aud"],
                        "verify_exp": False,
                        "verify_nbf": False,
                        "verify_iat": False,
                    },
                )
            except jwt.InvalidSignatureError:
                problem = "its signature is wrong"
            except jwt.PyJWTError as error:  # not its text, which may quote the token
                raise _Wrong(_words(type(error).__name__)) from None
            except (ValueError, TypeError, RecursionError):
                raise _Wrong("it cannot be read") from None
            else:
                return claims
        raise _Wrong(problem)

    def _groups(self, claims: dict[str, Any]) -> frozenset[str]:
        claim = self._settings.groups_claim
        if claim is None:
            return frozenset()
        said = claims.get(claim, [])
        if isinstance(said, str):
            said = said.split()
        if not isinstance(said, list) or len(said) > MOST_GROUPS or not all(isinstance(each, str) for each in said):
            raise _Wrong(f"its claim {claim!r} is no list of at most {MOST_GROUPS} groups")
        return frozenset(said)

    def _refresh(self) -> None:
        version = _version(self._path)
        if version == self._version:
            return
        self._version = version
        self._recognised.clear()  # a key may have been taken out
        try:
            self._keys = keys_in(self._settings)
        except InvalidSettings:
            # As with the file of users: a slip of the pen does not lock everybody out.
            self._unreadable += 1
            log.warning("access.jwt: the file of keys has changed and cannot be used; the old keys hold")


class _Wrong(Exception):
    """What is wrong with a token, for the log."""


_TOLD: Final = {
    "InvalidIssuerError": "it is of another issuer",
    "InvalidAudienceError": "it is for somebody else",
    "MissingRequiredClaimError": "it does not say when it expires, by whom it is or for whom",
}


def _words(name: str) -> str:
    return _TOLD.get(name, f"it is not valid ({name})")


def _seconds(claims: dict[str, Any], name: str) -> float | None:
    """A NumericDate; one that no clock will ever show counts as wrong."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 253_402_300_799:
        raise _Wrong(f"its claim {name!r} is no time")
    return float(value)


def _version(path: Path) -> tuple[int, int, int] | None:
    try:
        state = os.stat(path)  # noqa: PTH116 - as for the file of users, at every login
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino
