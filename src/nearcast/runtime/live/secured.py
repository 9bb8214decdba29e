"""Frames between two ends that share a secret: each end proves that it knows it, and nobody else can read or forge a frame.

A handshake of four frames.  Both say who they are, with a nonce and a key made for this connection (X25519); from these and the
secret follow the keys of both directions.  Who opened the connection proves first: whoever only knocks is told nothing from which
the secret could be guessed.  From then on each frame is sealed (AES-GCM) under a number that is never used again, so what was
recorded, repeated, left out or exchanged is noticed.

No input and no output here, only bytes: ``tcp`` has the sockets.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Any, Final

import msgspec

from nearcast.errors import ConnectionFailed

VERSION: Final = 1
LENGTH: Final = 4
"""Bytes in front of each frame that say how long it is."""

LARGEST_HELLO: Final = 4_096
TAG: Final = 16
"""Bytes by which a frame grows when it is sealed."""

_PURPOSE: Final = b"nearcast federation"
_OUT: Final = b"from who called"
_BACK: Final = b"from who was called"


class WrongSecret(ConnectionFailed):
    """The other end does not know the secret, or knows another."""


class NotUnderstood(ConnectionFailed):
    """The other end is something else than expected."""


class Introduction(msgspec.Struct, frozen=True, array_like=True, tag="nearcast"):
    """Who somebody is, and what the keys are made from."""

    version: int
    address: str
    instance: str
    """The same for its whole life on disk: two that differ are two, whatever they are called."""

    life: int
    """When it started."""

    nonce: bytes
    key: bytes


class Verdict(msgspec.Struct, frozen=True, array_like=True, tag="verdict"):
    """Why not; empty: welcome."""

    problem: str


_encode: Final = msgspec.msgpack.Encoder().encode
_introduction: Final = msgspec.msgpack.Decoder(Introduction).decode
_verdict: Final = msgspec.msgpack.Decoder(Verdict).decode


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(LENGTH, "big") + body


class Sealed:
    """One direction of a connection."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._cipher: Final = AESGCM(key)
        self._number = 0

    def seal(self, data: bytes) -> bytes:
        return self._cipher.encrypt(self._next(), data, None)

    def unseal(self, body: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(self._next(), body, None)
        except InvalidTag:
            raise WrongSecret("a frame was not sealed with the secret of this federation") from None

    def _next(self) -> bytes:
        self._number += 1
        return self._number.to_bytes(12, "big")


class Handshake:
    """One end of a connection that begins."""

    def __init__(self, secret: bytes, address: str, instance: str, life: int, *, called: bool) -> None:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        self._secret: Final = secret
        self._called: Final = called
        self._private: Final = X25519PrivateKey.generate()
        self.own: Final = Introduction(
            VERSION, address, instance, life, secrets.token_bytes(32), self._private.public_key().public_bytes_raw()
        )
        self.introduction: Final = _encode(self.own)
        self.outgoing: Sealed
        self.incoming: Sealed

    def hear(self, body: bytes) -> Introduction:
        """What the other end says of itself, which nobody has proven yet."""
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

        try:
            other = _introduction(body)
            if other.version != VERSION:
                raise NotUnderstood(
                    f"it speaks version {other.version} of the federation's protocol, not {VERSION}; use one version of nearcast"
                )
            if len(other.nonce) != 32:
                raise ValueError("nonce")
            shared = self._private.exchange(X25519PublicKey.from_public_bytes(other.key))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
            if isinstance(error, NotUnderstood):
                raise
            raise NotUnderstood("it is no broker that listens for other brokers; is the port right?") from None
        both = (body, self.introduction) if self._called else (self.introduction, body)
        transcript = hashlib.sha256(_PURPOSE + framed(both[0]) + framed(both[1])).digest()
        root = hmac.digest(self._secret, transcript + shared, "sha256")
        keys = hmac.digest(root, _OUT, "sha256"), hmac.digest(root, _BACK, "sha256")
        out, back = reversed(keys) if self._called else keys
        self.outgoing, self.incoming = Sealed(out), Sealed(back)
        return other

    def proof(self) -> bytes:
        """Of who called, in its second frame."""
        return self.outgoing.seal(_PURPOSE)

    def check(self, body: bytes) -> None:
        """Of who was called: does the other end know the secret?"""
        if self.incoming.unseal(body) != _PURPOSE:
            raise NotUnderstood("it proves something else than was asked for")

    def verdict(self, problem: str) -> bytes:
        """The answer to a proof that was right."""
        return self.outgoing.seal(_encode(Verdict(problem)))

    def judged(self, body: bytes) -> str:
        """What the other end thinks of us."""
        return _decoded(self.incoming.unseal(body))


def complaint(problem: str) -> bytes:
    """To whoever could not prove itself, and to whom nothing can be sealed."""
    return _encode(Verdict(problem))


def complained(body: bytes) -> str | None:
    """Such a complaint, which anybody could have made up; none: it is something else."""
    try:
        return _decoded(body)
    except NotUnderstood:
        return None


def _decoded(body: bytes) -> str:
    try:
        verdict: Any = _verdict(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise NotUnderstood("its answer cannot be read") from None
    return str(verdict.problem)
