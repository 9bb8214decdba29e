"""By which keys tokens are verified, and for which algorithms each of them is."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nearcast.broker.settings import JwtSettings
from nearcast.errors import InvalidSettings

MOST_KEYS: Final = 16
"""Of those without a name each is tried, so that a forged token costs as many verifications."""

SMALLEST_RSA: Final = 2_048
_SECRETS: Final = {"HS256": 32, "HS384": 48, "HS512": 64}
"""Bytes that a shared secret has at least (RFC 7518, 3.2)."""

_RSA: Final = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
_CURVES: Final = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_PEM: Final = re.compile(rb"-----BEGIN [A-Z ]+-----.*?-----END [A-Z ]+-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TokenKey:
    key: Any
    algorithms: frozenset[str]
    name: str | None = None
    """``kid`` of a JWKS."""

    def is_named(self, name: object) -> bool:
        """Whether a token that names its key may mean this one; one of either side without a name may."""
        return name is None or self.name is None or name == self.name

    def __repr__(self) -> str:
        return f"TokenKey({sorted(self.algorithms)}, {self.name!r})"  # never the key


def keys_in(settings: JwtSettings) -> tuple[TokenKey, ...]:
    """Of the file of the settings, or ``InvalidSettings`` that quotes nothing of it."""
    try:
        content = settings.file.read_bytes()
    except OSError as error:
        raise InvalidSettings(f"access.jwt: {settings.file} cannot be read: {error.strerror}") from None
    if settings.secret is not None:
        return (_secret(content, settings),)
    keys = _of_jwks(content, settings.file) if content.lstrip()[:1] == b"{" else _of_pem(content, settings.file)
    if not 0 < len(keys) <= MOST_KEYS:
        raise InvalidSettings(f"access.jwt.keys: {settings.file} holds {len(keys)} public keys; give 1 to {MOST_KEYS}")
    for algorithm in settings.algorithms:
        if not any(algorithm in key.algorithms for key in keys):
            raise InvalidSettings(f"access.jwt.algorithms: {settings.file} has no key for {algorithm}; leave it out")
    return keys


def _secret(content: bytes, settings: JwtSettings) -> TokenKey:
    secret = content.strip()
    least = max(_SECRETS[algorithm] for algorithm in settings.algorithms)
    if len(secret) < least:
        raise InvalidSettings(
            f"access.jwt.secret: the secret in {settings.file} has {len(secret)} bytes; {least} at least are needed, made at random"
        )
    if b"-----BEGIN" in secret:
        raise InvalidSettings(f"access.jwt.secret: {settings.file} holds a PEM key; name it in access.jwt.keys")
    return TokenKey(secret, frozenset(settings.algorithms))


def _of_pem(content: bytes, path: Path) -> tuple[TokenKey, ...]:
    from cryptography.hazmat.primitives.serialization import load_pem_public_key
    from cryptography.x509 import load_pem_x509_certificate

    found = []
    for block in _PEM.findall(content):
        if b"PRIVATE" in block.split(b"\n", 1)[0]:
            raise InvalidSettings(f"access.jwt.keys: {path} holds a private key; the broker needs the public one only")
        try:
            key: Any = (
                load_pem_x509_certificate(block).public_key()
                if b"CERTIFICATE" in block.split(b"\n", 1)[0]
                else load_pem_public_key(block)
            )
        except Exception:  # noqa: BLE001 - whatever the library makes of it
            raise InvalidSettings(f"access.jwt.keys: {path} holds something that is no public key") from None
        found.append(TokenKey(key, _algorithms(key, path)))
    return tuple(found)


def _of_jwks(content: bytes, path: Path) -> tuple[TokenKey, ...]:
    import jwt

    try:
        tree = json.loads(content)
        listed = tree.get("keys", [tree])
        found = []
        for each in listed:
            if each.get("use", "sig") != "sig":
                continue
            if each.get("kty") == "oct" or "d" in each:
                raise InvalidSettings(
                    f"access.jwt.keys: {path} holds a secret or private key; public keys only, a shared secret is access.jwt.secret"
                )
            key = jwt.PyJWK(each).key
            algorithms = _algorithms(key, path)
            said = each.get("alg")
            if said is not None:
                algorithms &= {said}
            found.append(TokenKey(key, algorithms, each.get("kid")))
        return tuple(found)
    except InvalidSettings:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, jwt.PyJWTError):
        raise InvalidSettings(f"access.jwt.keys: {path} is no JWKS whose keys can be used") from None


def _algorithms(key: Any, path: Path) -> frozenset[str]:
    """What a key of that kind is for; nothing is left to whoever writes the token."""
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    match key:
        case rsa.RSAPublicKey():
            if key.key_size < SMALLEST_RSA:
                raise InvalidSettings(
                    f"access.jwt.keys: {path} holds an RSA key of {key.key_size} bits; {SMALLEST_RSA} at least"
                )
            return _RSA
        case ec.EllipticCurvePublicKey() if key.curve.name in _CURVES:
            return frozenset({_CURVES[key.curve.name]})
        case ed25519.Ed25519PublicKey():
            return frozenset({"EdDSA"})
        case _:
            raise InvalidSettings(f"access.jwt.keys: {path} holds a key that is neither RSA, P-256/384/521 nor Ed25519")
