"""Issuers of tokens, honest and otherwise."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from nearcast.broker.settings import JwtSettings

ISSUER: Final = "https://login.example"
AUDIENCE: Final = "nearcast-test"
NOW: Final = 1_800_000_000
"""Seconds."""


class Issuer:
    """One pair of keys, made anew."""

    def __init__(self, algorithm: str = "EdDSA") -> None:
        self.algorithm = algorithm
        self.key: Any
        if algorithm == "EdDSA":
            self.key = ed25519.Ed25519PrivateKey.generate()
        elif algorithm.startswith("ES"):
            curve = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}[algorithm]
            self.key = ec.generate_private_key(curve)
        else:
            self.key = rsa.generate_private_key(65_537, 2_048)

    @property
    def public(self) -> bytes:
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        pem: bytes = self.key.public_key().public_bytes(serialization.Encoding.PEM, form)
        return pem

    def token(self, user: object = "ada", *, name: str | None = None, drop: tuple[str, ...] = (), **claims: Any) -> str:
        said = {"iss": ISSUER, "aud": AUDIENCE, "exp": NOW + 60, "sub": user} | claims
        said = {key: value for key, value in said.items() if key not in drop}
        return jwt.encode(said, self.key, self.algorithm, headers=None if name is None else {"kid": name})

    def settings(self, folder: Path, **changes: Any) -> JwtSettings:
        keys = folder / "issuer.pem"
        keys.write_bytes(self.public)
        given: dict[str, Any] = {"keys": keys, "algorithms": (self.algorithm,), "issuer": ISSUER, "audience": AUDIENCE}
        return JwtSettings(**(given | changes))


def written(header: dict[str, Any], claims: dict[str, Any], signature: bytes = b"") -> str:
    """A token put together by hand."""
    parts = [json.dumps(header).encode(), json.dumps(claims).encode(), signature]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)
