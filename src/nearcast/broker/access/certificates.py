"""TLS: a certificate of one's own making for the first start, and contexts for servers.

A self-signed certificate keeps others from listening, but proves nothing by itself: clients are told its fingerprint, or are given
the certificate to trust.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nearcast.broker.settings import TlsSettings
from nearcast.errors import InvalidSettings

if TYPE_CHECKING:  # only who uses TLS waits for its import
    from cryptography.x509 import Certificate

_VALID: Final = timedelta(days=825)
"""Longer ones are refused by some clients."""

_EARLIER: Final = timedelta(days=1)
"""Clients whose clock is slow shall not wait."""


@dataclass(frozen=True, slots=True)
class ServerCertificate:
    certificate: Path
    key: Path
    fingerprint: str
    """SHA-256 of the certificate, as other tools print it."""

    made: bool
    """Whether it was made just now."""


def server_certificate(tls: TlsSettings, folder: Path, hosts: tuple[str, ...] = ()) -> ServerCertificate:
    """The certificate of the settings, or a self-signed one in ``folder``, made if there is none."""
    made = False
    if tls.certificate is not None and tls.key is not None:
        certificate, key = tls.certificate, tls.key
    elif tls.auto:
        certificate, key = folder / "certificate.pem", folder / "key.pem"
        if not (certificate.exists() and key.exists()) or _read(certificate).not_valid_after_utc <= datetime.now(UTC):
            make_certificate(certificate, key, hosts)
            made = True
    else:
        raise InvalidSettings("tls: there is no certificate, and auto = false; give certificate and key")
    return ServerCertificate(certificate, key, fingerprint(certificate), made)


def make_certificate(certificate: Path, key: Path, hosts: tuple[str, ...] = ()) -> None:
    """A self-signed certificate for this machine and the hosts named; the key is readable by its owner only."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    secret = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "nearcast")])
    now = datetime.now(UTC)
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(secret.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectAlternativeName(_names(hosts)), critical=False)
        # Not an authority: some clients refuse one that serves.  To trust it, it is enough to be given it.
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(secret.public_key()), critical=False)
        .sign(secret, hashes.SHA256())
    )
    private = secret.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    key.parent.mkdir(parents=True, exist_ok=True)
    _write(key, private, 0o600)
    _write(certificate, made.public_bytes(serialization.Encoding.PEM), 0o644)


def fingerprint(certificate: Path) -> str:
    from cryptography.hazmat.primitives import hashes

    return _read(certificate).fingerprint(hashes.SHA256()).hex(":").upper()


def server_context(certificate: ServerCertificate, client_ca: Path | None = None) -> ssl.SSLContext:
    """For listeners: TLS 1.2 or newer; clients may show a certificate if there is an authority to verify it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    try:
        context.load_cert_chain(certificate.certificate, certificate.key)
    except (OSError, ssl.SSLError) as error:
        raise InvalidSettings(
            f"tls: {certificate.certificate} and {certificate.key} are no certificate and its key: {error}"
        ) from None
    if client_ca is not None:
        try:
            context.load_verify_locations(client_ca)
        except (OSError, ssl.SSLError) as error:
            raise InvalidSettings(f"tls.client_ca: {client_ca} cannot be used: {error}") from None
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def certificate_name(peer_certificate: dict[str, Any] | None) -> str | None:
    """The common name in what ``SSLObject.getpeercert()`` answers: nothing if none was shown, or if it has not exactly one."""
    subject = (peer_certificate or {}).get("subject", ())
    names = [value for part in subject for name, value in part if name == "commonName"]
    return names[0] if len(names) == 1 and names[0] else None


def _read(certificate: Path) -> Certificate:
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(certificate.read_bytes())
    except OSError as error:
        raise InvalidSettings(f"tls.certificate: {certificate} cannot be read: {error.strerror}") from None
    except ValueError:
        raise InvalidSettings(f"tls.certificate: {certificate} is no certificate in PEM form") from None


def _names(hosts: tuple[str, ...]) -> list[Any]:
    from cryptography import x509

    names: dict[str, Any] = {}
    for host in ("localhost", "127.0.0.1", "::1", socket.gethostname(), *hosts):
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            if host and host.isascii():
                names[host] = x509.DNSName(host)
        else:
            if not address.is_unspecified:  # 0.0.0.0 is where to listen, not where to connect
                names[host] = x509.IPAddress(address)
    return list(names.values())


def _write(path: Path, content: bytes, mode: int) -> None:
    path.unlink(missing_ok=True)
    # Never, not for a moment, readable by others.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
