"""Who may publish and withdraw under a name, and who may read an object; the paper leaves both open.

*Names prove themselves.*  A host with an ``Identity`` is called by the fingerprint of its key, so no directory has to be kept or trusted
in a crowd without infrastructure: whoever sees such a name demands that key's signature of all that is said under it, and nobody can
leave the signature out.  Under any other name nothing is proven, and nothing that looks like a proof is accepted.

*Objects are sealed for readers.*  A fresh key seals the content (AES-GCM) and is itself sealed for the public key of each reader (X25519).
A group is a reader like any other: its members share the private half.  The keys travel with the content, not with the metadata,
which everybody stores; hosts that keep a sealed object need not know that it is one.

Whoever takes metadata in from others asks ``genuine`` first, and ``genuine_withdrawal`` before forgetting any.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Final

import msgspec

from nearcast.crowdstore.objects import Metadata, ObjectKey, Proof, Sealing, Withdrawal
from nearcast.errors import InvalidInput, InvalidValue

SEED: Final = 32
"""Bytes."""

READERS: Final = 256
"""Of one object at most; more share a group's key."""

_NAME: Final = "key-"
_PUBLISHED: Final = b"nearcast crowd object"
_WITHDRAWN: Final = b"nearcast crowd withdrawal"
_WRAPPED: Final = b"nearcast crowd reader"
_ONCE: Final = bytes(12)
"""Each key seals one thing only, so its nonce need not differ."""

_encode: Final = msgspec.msgpack.Encoder().encode


class Unreadable(InvalidValue):
    """It is not sealed for any of the keys at hand, or not what was published."""


class ReadingKey:
    """Opens what is sealed for its public half: of one host, or of a group whose members share it."""

    def __init__(self, seed: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        self._private: Final = X25519PrivateKey.from_private_bytes(_derived(seed, b"read"))
        self.public: Final = self._private.public_key().public_bytes_raw()
        """For ``publish(..., readers=[...])``."""

    def wrapping(self, ephemeral: bytes) -> bytes:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

        shared = self._private.exchange(X25519PublicKey.from_public_bytes(ephemeral))
        return _wrapping(shared, ephemeral, self.public)


class Identity:
    """Two key pairs made from one secret: to sign with, and to read with."""

    def __init__(self, seed: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self._private: Final = Ed25519PrivateKey.from_private_bytes(_derived(seed, b"sign"))
        self._public: Final = self._private.public_key().public_bytes_raw()
        self.name: Final = _fingerprint(self._public)
        """What its host must be called."""

        self.reading: Final = ReadingKey(seed)

    @classmethod
    def generate(cls) -> Identity:
        return cls(secrets.token_bytes(SEED))

    def signed(self, metadata: Metadata) -> Metadata:
        return msgspec.structs.replace(metadata, proof=self._proof(_statement(metadata)))

    def withdrawal(self, metadata: Metadata) -> Withdrawal:
        said = Withdrawal(metadata.key, metadata.published)
        return msgspec.structs.replace(said, proof=self._proof(_withdrawn(said)))

    def _proof(self, statement: bytes) -> Proof:
        return Proof(self._public, self._private.sign(statement))


def genuine(metadata: Metadata) -> bool:
    """Whether its owner said so, as far as the owner's name can tell."""
    if not _proves(metadata.key.owner):
        return metadata.proof is None
    return metadata.proof is not None and _verified(metadata.key.owner, metadata.proof, _statement(metadata))


def genuine_withdrawal(withdrawal: Withdrawal, metadata: Metadata | None = None) -> bool:
    """Whether the owner of the object withdraws it; and, if the metadata is given, whether this is the object that is meant.

    An old withdrawal, said again, names an object that was published at another time.
    """
    key = withdrawal.key
    if metadata is not None and (metadata.key, metadata.published) != (key, withdrawal.published):
        return False
    if not _proves(key.owner):
        return withdrawal.proof is None
    return withdrawal.proof is not None and _verified(key.owner, withdrawal.proof, _withdrawn(withdrawal))


class _Envelope(msgspec.Struct, frozen=True, array_like=True):
    ephemeral: bytes
    wrapped: tuple[bytes, ...]
    """The content's key, sealed for each of the readers; who they are, it does not say."""

    sealed: bytes


_envelope: Final = msgspec.msgpack.Decoder(_Envelope).decode


def seal(data: bytes, key: ObjectKey, purpose: str, readers: Collection[bytes]) -> bytes:
    """For these readers only; it can stand for nothing else than this part (``purpose``) of this object."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if not 0 < len(readers) <= READERS:
        raise InvalidInput(
            f"an object is sealed for 1 to {READERS} readers, not {len(readers)}; more share a group's key"
        )
    private = X25519PrivateKey.generate()
    ephemeral = private.public_key().public_bytes_raw()
    content_key, part = secrets.token_bytes(32), _part(key, purpose)
    wrapped: list[bytes] = []
    for reader in readers:
        try:
            shared = private.exchange(X25519PublicKey.from_public_bytes(reader))
        except ValueError:
            raise InvalidInput("a reader is the public half of a reading key, 32 bytes: ReadingKey.public") from None
        wrapped.append(AESGCM(_wrapping(shared, ephemeral, reader)).encrypt(_ONCE, content_key, part))
    return _encode(_Envelope(ephemeral, tuple(wrapped), AESGCM(content_key).encrypt(_ONCE, data, part)))


def unseal(data: bytes, key: ObjectKey, purpose: str, keys: Iterable[ReadingKey]) -> bytes:
    """What was sealed, if one of the keys opens it."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    part = _part(key, purpose)
    try:
        envelope = _envelope(data)
        if len(envelope.wrapped) > READERS:
            raise Unreadable(f"{key} is sealed for more readers than there may be")
        for mine in keys:
            opener = AESGCM(mine.wrapping(envelope.ephemeral))
            for wrapped in envelope.wrapped:
                try:
                    content_key = opener.decrypt(_ONCE, wrapped, part)
                except InvalidTag:
                    continue
                return AESGCM(content_key).decrypt(_ONCE, envelope.sealed, part)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, InvalidTag):
        raise Unreadable(f"the {purpose} of {key} is damaged") from None
    except ValueError as error:
        if isinstance(error, Unreadable):
            raise
        raise Unreadable(f"the {purpose} of {key} is sealed with keys that cannot be") from None
    raise Unreadable(f"the {purpose} of {key} is for other readers")


def opened_summary(metadata: Metadata, keys: Iterable[ReadingKey]) -> bytes:
    return (
        unseal(metadata.summary, metadata.key, "summary", keys) if metadata.sealing is Sealing.ALL else metadata.summary
    )


def _part(key: ObjectKey, purpose: str) -> bytes:
    return _encode((purpose, key))


def _derived(seed: bytes, use: bytes) -> bytes:
    if len(seed) != SEED:
        raise InvalidInput(f"the secret of an identity or a group has {SEED} bytes, not {len(seed)}")
    return hashlib.blake2b(seed, digest_size=32, person=use).digest()


def _wrapping(shared: bytes, ephemeral: bytes, reader: bytes) -> bytes:
    return hmac.digest(shared, _WRAPPED + ephemeral + reader, "sha256")


def _fingerprint(public: bytes) -> str:
    return _NAME + hashlib.blake2b(public, digest_size=16).hexdigest()


def _proves(owner: str) -> bool:
    return owner.startswith(_NAME)


def _statement(metadata: Metadata) -> bytes:
    return _PUBLISHED + _encode(msgspec.structs.replace(metadata, proof=None))


def _withdrawn(withdrawal: Withdrawal) -> bytes:
    return _WITHDRAWN + _encode(msgspec.structs.replace(withdrawal, proof=None))


@lru_cache(maxsize=4096)
def _verified(owner: str, proof: Proof, statement: bytes) -> bool:
    # The same metadata comes by many ways; checking a signature takes about a hundred microseconds.
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if _fingerprint(proof.key) != owner:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(proof.key).verify(proof.signature, statement)
    except (InvalidSignature, ValueError):
        return False
    return True
