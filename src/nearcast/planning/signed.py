"""Plans that say who made them: an Ed25519 signature (RFC 8032) over all that a plan says, by whom, for which broker, and until when.

What is signed is written in one way only: JSON with sorted keys, without what is not given, coordinates as floating point.  So a plan may be
read and written again on its way without becoming another one, and none can be changed, kept for later or handed to another broker.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from nearcast.errors import InvalidPlan, InvalidSettings
from nearcast.model.time import MICROSECONDS, Instant

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

_FORM: Final = "nearcast plan 1"
"""Of what is signed: nothing that was signed for another purpose is ever a plan."""

VALID: Final = 10 * 60 * MICROSECONDS
"""A plan that was not handed in by then was made of an older world."""


class PlanSignature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    planner: str
    issued: int
    """Microseconds since 1970, as ``expires``."""

    expires: int
    value: str
    """The signature, in base64."""

    audience: str = ""
    """The broker that it is for, by the name that its settings give it."""


class _KeyFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    planner: str
    secret: str


@dataclass(frozen=True, slots=True)
class Signer:
    """A planner with its key."""

    planner: str
    secret: bytes
    audience: str = ""

    def __repr__(self) -> str:
        return f"Signer({self.planner!r})"  # what Spark prints is read by many

    def signed(self, plan: Mapping[str, Any], now: Instant, valid: int = VALID) -> dict[str, Any]:
        """The plan with its signature."""
        said = {key: value for key, value in plan.items() if value is not None and key != "signature"}
        signature = PlanSignature(self.planner, now, now + valid, "", self.audience)
        value = self._key().sign(signed_bytes(said, signature))
        signature = msgspec.structs.replace(signature, value=base64.b64encode(value).decode())
        return said | {"signature": msgspec.to_builtins(signature)}

    def public(self) -> str:
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        raw = self._key().public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        return base64.b64encode(raw).decode()

    def _key(self) -> Ed25519PrivateKey:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self.secret)


def signed_bytes(plan: Mapping[str, Any], signature: PlanSignature) -> bytes:
    """What the signature is of."""
    said: dict[str, Any] = {key: value for key, value in plan.items() if value is not None}
    if "regions" in said:
        said["regions"] = [
            {key: value if key == "name" else float(value) for key, value in region.items()}
            for region in said["regions"]
        ]
    document = {
        "form": _FORM,
        "plan": said,
        "planner": signature.planner,
        "issued": signature.issued,
        "expires": signature.expires,
        "audience": signature.audience,
    }
    return msgspec.json.encode(document, order="sorted")


def make_key(path: Path, planner: str) -> Signer:
    """A new key for a planner, in a file that only its owner reads; one that is there is not overwritten."""
    if not planner:
        raise InvalidSettings("a planner has a name; give one")
    signer = Signer(planner, os.urandom(32))
    content = msgspec.json.encode(_KeyFile(planner, base64.b64encode(signer.secret).decode())) + b"\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
    except FileExistsError:
        raise InvalidSettings(f"{path} is there already; a key that is in use is not overwritten") from None
    except OSError as error:
        raise InvalidSettings(f"{path} cannot be written: {error.strerror}") from None
    return signer


def signer_in(path: Path, audience: str = "") -> Signer:
    """Of a file that ``make_key`` wrote; what is wrong with it is said without quoting it."""
    try:
        read = msgspec.json.decode(path.read_bytes(), type=_KeyFile)
        secret = base64.b64decode(read.secret, validate=True)
    except OSError as error:
        raise InvalidSettings(f"{path} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, binascii.Error, UnicodeDecodeError):
        raise InvalidSettings(f"{path} is no key of a planner; make one with `nearcast planner`") from None
    if len(secret) != 32:
        raise InvalidSettings(f"{path} is no key of a planner; make one with `nearcast planner`")
    return Signer(read.planner, secret, audience)


def public_key(text: str) -> Ed25519PublicKey:
    """As it stands in settings; ``InvalidSettings`` if it cannot be."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        return Ed25519PublicKey.from_public_bytes(base64.b64decode(text, validate=True))
    except (ValueError, binascii.Error):
        raise InvalidSettings("key is no public key of a planner; `nearcast planner` prints one") from None


def verify(key: Ed25519PublicKey, plan: Mapping[str, Any], signature: PlanSignature) -> None:
    """``InvalidPlan`` unless the signature is of that plan, by that key."""
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(base64.b64decode(signature.value, validate=True), signed_bytes(plan, signature))
    except (InvalidSignature, binascii.Error, ValueError):
        raise InvalidPlan("its signature is wrong: it was altered, or another key has signed it") from None
