"""TLS as clients see it: real handshakes over loopback."""

import asyncio
import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from nearcast.broker.access import certificates as module
from nearcast.broker.access.certificates import (
    certificate_name,
    fingerprint,
    make_certificate,
    server_certificate,
    server_context,
)
from nearcast.broker.settings import TlsSettings
from nearcast.errors import InvalidSettings


class Authority:
    """What an operator would use to hand certificates to clients."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._secret = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
        self.certificate = folder / "authority.pem"
        self._sign(self.certificate, self._name, self._secret.public_key(), is_authority=True)

    def client(self, name: str) -> tuple[Path, Path]:
        """A certificate for that name, and its key."""
        secret = ec.generate_private_key(ec.SECP256R1())
        certificate, key = self._folder / f"{name}.pem", self._folder / f"{name}-key.pem"
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._sign(certificate, subject, secret.public_key(), is_authority=False)
        key.write_bytes(
            secret.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return certificate, key

    def _sign(
        self, certificate: Path, subject: x509.Name, public: ec.EllipticCurvePublicKey, *, is_authority: bool
    ) -> None:
        now = datetime.now(UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .sign(self._secret, hashes.SHA256())
        )
        certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))


async def handshake(server: ssl.SSLContext, client: ssl.SSLContext, host: str = "localhost") -> tuple[str, str | None]:
    """The protocol that both agree on, and the name that the server reads in the client's certificate."""
    seen: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.set_result(certificate_name(writer.get_extra_info("peercert")))
        await reader.read()
        writer.close()

    listening = await asyncio.start_server(greet, "127.0.0.1", 0, ssl=server)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client, server_hostname=host)
        version = writer.get_extra_info("ssl_object").version()
        name = await asyncio.wait_for(seen, 10)
        writer.close()
        await writer.wait_closed()
    return version, name


def shake(server: ssl.SSLContext, client: ssl.SSLContext, host: str = "localhost") -> tuple[str, str | None]:
    return asyncio.run(asyncio.wait_for(handshake(server, client, host), 20))


def test_the_first_start_makes_a_certificate_and_the_next_one_keeps_it(tmp_path: Path) -> None:
    first = server_certificate(TlsSettings(), tmp_path)
    second = server_certificate(TlsSettings(), tmp_path)
    assert first.made
    assert not second.made
    assert first.fingerprint == second.fingerprint
    assert stat.S_IMODE(first.key.stat().st_mode) == 0o600
    der = ssl.PEM_cert_to_DER_cert(first.certificate.read_text())
    digest = hashes.Hash(hashes.SHA256())
    digest.update(der)
    assert bytes.fromhex(first.fingerprint.replace(":", "")) == digest.finalize()


def test_a_client_that_trusts_the_certificate_connects_by_every_name_of_this_machine(tmp_path: Path) -> None:
    made = server_certificate(TlsSettings(), tmp_path, ("broker.example", "0.0.0.0"))  # noqa: S104 - as listen.host may say
    client = ssl.create_default_context(cafile=made.certificate)
    for host in ("localhost", "127.0.0.1", "::1", "broker.example"):
        version, name = shake(server_context(made), client, host)
        assert version == "TLSv1.3"
        assert name is None
    with pytest.raises(ssl.SSLCertVerificationError):
        shake(server_context(made), client, "0.0.0.0")  # noqa: S104


def test_an_expired_certificate_of_our_own_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_VALID", timedelta(hours=-1))
    old = server_certificate(TlsSettings(), tmp_path)
    monkeypatch.undo()
    new = server_certificate(TlsSettings(), tmp_path)
    assert new.made
    assert new.fingerprint != old.fingerprint


def test_old_protocols_are_refused(tmp_path: Path) -> None:
    context = server_context(server_certificate(TlsSettings(), tmp_path))
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    client = ssl.create_default_context(cafile=tmp_path / "certificate.pem")
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    assert shake(context, client)[0] == "TLSv1.2"


def test_the_name_of_a_verified_client_certificate_is_its_user_name(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    made = server_certificate(TlsSettings(), tmp_path)
    server = server_context(made, client_ca=authority.certificate)
    client = ssl.create_default_context(cafile=made.certificate)
    assert shake(server, client)[1] is None, "it is optional"
    client.load_cert_chain(*authority.client("ada"))
    assert shake(server, client)[1] == "ada"


def test_a_client_certificate_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    ours, theirs = Authority(tmp_path), Authority(tmp_path / "theirs")
    made = server_certificate(TlsSettings(), tmp_path)
    client = ssl.create_default_context(cafile=made.certificate)
    client.maximum_version = ssl.TLSVersion.TLSv1_2  # later ones tell the client only with its first reading
    client.load_cert_chain(*theirs.client("ada"))
    with pytest.raises((ssl.SSLError, ConnectionError)):
        shake(server_context(made, client_ca=ours.certificate), client)


@pytest.mark.parametrize(
    ("certificate", "name"),
    [
        (None, None),
        ({}, None),
        ({"subject": ((("organizationName", "x"),),)}, None),
        ({"subject": ((("commonName", "ada"),),)}, "ada"),
        ({"subject": ((("commonName", "ada"),), (("commonName", "root"),))}, None),
        ({"subject": ((("commonName", ""),),)}, None),
    ],
)
def test_a_certificate_has_exactly_one_name_or_none(certificate: dict[str, object] | None, name: str | None) -> None:
    assert certificate_name(certificate) == name


def test_certificates_that_cannot_be_used_are_refused_with_their_key(tmp_path: Path) -> None:
    nonsense = tmp_path / "x.pem"
    nonsense.write_text("nonsense")
    with pytest.raises(InvalidSettings, match=r"tls.certificate: .* cannot be read"):
        fingerprint(tmp_path / "none.pem")
    with pytest.raises(InvalidSettings, match=r"tls.certificate: .* is no certificate"):
        fingerprint(nonsense)
    with pytest.raises(InvalidSettings, match="auto = false"):
        server_certificate(TlsSettings(auto=False), tmp_path)
    made = server_certificate(TlsSettings(), tmp_path)
    with pytest.raises(InvalidSettings, match=r"tls.client_ca"):
        server_context(made, client_ca=nonsense)
    other = tmp_path / "other"
    make_certificate(other / "c.pem", other / "k.pem")
    mixed = server_certificate(TlsSettings(certificate=made.certificate, key=other / "k.pem"), tmp_path)
    with pytest.raises(InvalidSettings, match="are no certificate and its key"):
        server_context(mixed)
