"""Certificates of clients, and authorities that give them, honest and otherwise."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_PEM: Final = serialization.Encoding.PEM


class Authority:
    """All of them have the same name: what counts is who signed."""

    def __init__(self, folder: Path) -> None:
        self._folder: Final = folder
        self._key: Final = ec.generate_private_key(ec.SECP256R1())
        self.certificate: Final = folder / "authority.cert"
        self.certificate.write_bytes(self._signed("authority", self._key, is_ca=True).public_bytes(_PEM))

    def papers(self, common_name: str) -> tuple[Path, Path]:
        """Files of a client's certificate and key."""
        key = ec.generate_private_key(ec.SECP256R1())
        paths = self._folder / f"{common_name}.cert", self._folder / f"{common_name}.secret"
        paths[0].write_bytes(self._signed(common_name, key, is_ca=False).public_bytes(_PEM))
        paths[1].write_bytes(key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
        return paths

    def _signed(self, name: str, key: ec.EllipticCurvePrivateKey, *, is_ca: bool) -> x509.Certificate:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
