"""Certificates, keys, users: there, valid, and nobody else's business."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from nearcast.broker.access.certificates import ServerCertificate, server_context
from nearcast.broker.access.users import read_users
from nearcast.broker.settings import BrokerSettings
from nearcast.broker.upkeep.doctor.findings import Finding, note, ok, problem, warning
from nearcast.errors import InvalidSettings
from nearcast.journal.database import FILE

_SOON: Final = timedelta(days=30)
_NEW: Final = "renew it, then `kill -HUP` the broker"


def certificates(settings: BrokerSettings) -> Iterator[Finding]:
    if not any(listener.tls for listener in settings.listen.listeners()):
        yield note("certificates", "no listener has TLS")
        return
    tls, data = settings.tls, settings.data
    certificate, key = tls.certificate or data / "certificate.pem", tls.key or data / "key.pem"
    if tls.certificate is None and not certificate.exists():
        yield note("certificates", "the broker will make one for itself at its first start")
        return
    yield from _valid(certificate)
    try:
        server_context(ServerCertificate(certificate, key, "", made=False), tls.client_ca)
    except InvalidSettings as error:
        yield problem("certificates", str(error), "put the certificate and the key that belong together in place")
    else:
        yield ok("certificates", f"{key} is the key of {certificate}")
    yield from _private(key)
    if tls.client_ca is not None:
        yield from _valid(tls.client_ca)


def _valid(path: Path) -> Iterator[Finding]:
    from cryptography import x509

    try:
        found = x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError) as error:
        yield problem("certificates", f"{path} is no certificate: {error}", "put one in PEM form in its place")
        return
    now, until = datetime.now(UTC), found.not_valid_after_utc
    if now < found.not_valid_before_utc:
        yield problem(
            "certificates",
            f"{path} is not valid before {found.not_valid_before_utc:%F %T}",
            "look at the clock, or " + _NEW,
        )
    elif now >= until:
        yield problem("certificates", f"{path} has expired on {until:%F}", _NEW)
    elif until - now < _SOON:
        yield warning("certificates", f"{path} expires in {(until - now).days} days", _NEW)
    else:
        yield ok("certificates", f"{path} is valid until {until:%F}")


def users(settings: BrokerSettings) -> Iterator[Finding]:
    path = settings.passwords
    try:
        found = read_users(path)
    except InvalidSettings as error:
        yield problem("users", str(error), "mend that line: until then the broker goes on with the users that it knows")
        return
    yield ok("users", f"{len(found)} in {path}")
    for each in _secret_files(settings):
        yield from _private(each)


def _secret_files(settings: BrokerSettings) -> Iterator[Path]:
    """Who may read them can be somebody else, or find out who somebody is."""
    yield settings.passwords
    yield settings.data / "identities.db"
    yield settings.data / "journal" / FILE
    jwt, federation = settings.access.jwt, settings.federation
    for path in (None if jwt is None else jwt.secret, federation.secret_file):
        if path is not None:
            yield path


def _private(path: Path) -> Iterator[Finding]:
    try:
        mode = path.stat().st_mode
    except OSError:
        return
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        yield warning("secrets", f"others may read or change {path}", f"chmod 600 {path}")
    else:
        yield ok("secrets", f"{path} is its owner's alone")
