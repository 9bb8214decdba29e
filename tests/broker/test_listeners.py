"""The doors: TLS, certificates of clients, WebSocket, and what does not speak MQTT at all."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from mqtt5 import ConnAckPacket, ConnAckReasonCode, ConnectPacket, PublishPacket, QoS
from tests.broker.access.papers import Authority
from tests.broker.talker import Talker, broker, talking
from tests.waiting import PATIENCE, until
from websockets.asyncio.client import connect as connect_websocket
from websockets.exceptions import ConnectionClosed

from nearcast.broker.access.users import add_user
from nearcast.broker.server import Server
from nearcast.broker.settings import RuleSettings
from nearcast.mqtt.stream import PacketReader, encode

ALL = {"tls_port": "any", "websocket_port": "any", "websocket_tls_port": "any", "http_port": "any"}


def trusting(folder: Path) -> ssl.SSLContext:
    """Of a client that was handed the broker's own certificate."""
    (certificate,) = [path for path in folder.rglob("*") if path.suffix in {".pem", ".crt"} and "key" not in path.name]
    context = ssl.create_default_context(cafile=str(certificate))
    context.check_hostname = False
    return context


@contextlib.asynccontextmanager
async def secure(server: Server, context: ssl.SSLContext, version: int = 5) -> AsyncIterator[Talker]:
    host, port = server.addresses["mqtts"]
    talker = Talker(*await asyncio.open_connection(host, port, ssl=context), version)
    try:
        yield talker
    finally:
        talker.close()


def test_tls_with_a_certificate_that_the_broker_makes_itself(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        async with secure(server, trusting(tmp_path)) as one, talking(server, "plain") as other:
            await one.connect("secure")
            await one.subscribe("a", 1)
            await other.tell("a", b"1")
            assert (await one.heard()).payload == b"1"
        with pytest.raises(ssl.SSLCertVerificationError):
            async with secure(server, ssl.create_default_context()):
                pass

    broker(tmp_path, scenario, listen=ALL)


def test_who_speaks_plainly_on_the_tls_port_is_closed_and_others_notice_nothing(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        reader, writer = await asyncio.open_connection(*server.addresses["mqtts"])
        writer.write(encode(ConnectPacket("x"), 5) * 10)
        with contextlib.suppress(ConnectionError):
            await asyncio.wait_for(reader.read(), PATIENCE)
        writer.close()
        async with secure(server, trusting(tmp_path)) as one:
            assert (await one.connect("x")).reason_code == ConnAckReasonCode.SUCCESS

    broker(tmp_path, scenario, listen=ALL)


def test_the_name_in_a_client_certificate_is_the_user(tmp_path: Path) -> None:
    papers = tmp_path / "papers"
    papers.mkdir()
    authority = Authority(papers)
    rules = (RuleSettings(name="ada", users=("ada",), publish=("a",), subscribe=("#",)),)

    async def scenario(server: Server) -> None:
        context = trusting(tmp_path / "data")
        async with secure(server, context) as nobody:
            assert (await nobody.connect("x")).reason_code == ConnAckReasonCode.NOT_AUTHORIZED
        context.load_cert_chain(*authority.papers("ada"))
        async with secure(server, context) as ada:
            assert (await ada.connect("x")).reason_code == ConnAckReasonCode.SUCCESS
            assert int((await ada.tell("a", b"1")).reason_code) < 0x80
            assert int((await ada.tell("b", b"1")).reason_code) >= 0x80
        async with secure(server, context) as bob:
            answer = await bob.connect("y", username="bob", password=b"x")
            assert answer.reason_code == ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD

    broker(
        tmp_path / "data",
        scenario,
        listen=ALL,
        tls={"client_ca": authority.certificate},
        access={"anonymous": "never", "rules": rules},
    )


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("tls", [False, True])
def test_mqtt_over_websocket(tmp_path: Path, version: int, tls: bool) -> None:
    async def scenario(server: Server) -> None:
        host, port = server.addresses["websockets" if tls else "websocket"]
        uri = f"{'wss' if tls else 'ws'}://{host}:{port}/mqtt"
        context = trusting(tmp_path) if tls else None
        async with connect_websocket(uri, subprotocols=["mqtt"], ssl=context) as line:  # type: ignore[list-item]
            assert line.subprotocol == "mqtt"
            packets = PacketReader(version=version)
            data = encode(ConnectPacket("web"), version)
            for byte in data:  # packets need not be aligned with frames (MQTT 5, 6)
                await line.send(bytes([byte]))
            message = await line.recv()
            assert isinstance(message, bytes)
            (answer,) = packets.packets(message)
            assert isinstance(answer, ConnAckPacket)
            assert answer.reason_code == ConnAckReasonCode.SUCCESS
            large = PublishPacket("a", bytes(200_000), qos=QoS.AT_LEAST_ONCE, packet_id=1)
            async with talking(server, "plain") as other:
                await other.subscribe("a")
                await line.send(encode(large, version))
                assert len((await other.heard()).payload) == 200_000

    broker(tmp_path, scenario, listen=ALL)


@pytest.mark.parametrize("said", ["text", b"\x00\x00"])
def test_what_is_no_mqtt_ends_a_websocket(tmp_path: Path, said: str | bytes) -> None:
    async def scenario(server: Server) -> None:
        host, port = server.addresses["websocket"]
        async with connect_websocket(f"ws://{host}:{port}/mqtt", subprotocols=["mqtt"]) as line:  # type: ignore[list-item]
            await line.send(said)
            with pytest.raises(ConnectionClosed):
                await asyncio.wait_for(line.recv(), PATIENCE)
        await until(lambda: not server.broker.services.open)

    broker(tmp_path, scenario, listen=ALL)


@pytest.mark.parametrize("anonymous", ["loopback", "always"])
@pytest.mark.parametrize(
    ("origin", "ours"),
    [
        (None, True),
        ("http://localhost:3000", True),
        ("http://[::1]:3000", True),
        ("https://evil.example", False),
        ("http://localhost.evil.example", False),
        ("http://[", False),
        ("null", False),
    ],
)
def test_a_page_of_another_site_is_nobody_of_this_machine(
    tmp_path: Path, origin: str | None, ours: bool, anonymous: str
) -> None:
    """Any page in a browser here may speak to a WebSocket of this machine."""

    async def scenario(server: Server) -> None:
        host, port = server.addresses["websocket"]
        uri, said = f"ws://{host}:{port}/mqtt", [] if origin is None else [("Origin", origin)]
        nameless = ConnectPacket("page", clean_start=True)
        known = ConnectPacket("phone", clean_start=True, username="ada", password=b"a password")
        welcome = ours or anonymous == "always"
        for packet, code in (
            (nameless, ConnAckReasonCode.SUCCESS if welcome else ConnAckReasonCode.NOT_AUTHORIZED),
            (known, ConnAckReasonCode.SUCCESS),
        ):
            async with connect_websocket(uri, subprotocols=["mqtt"], additional_headers=said) as line:  # type: ignore[list-item]
                await line.send(encode(packet, 5))
                message = await asyncio.wait_for(line.recv(), PATIENCE)
                assert isinstance(message, bytes)
                (answer,) = PacketReader(version=5).packets(message)
                assert isinstance(answer, ConnAckPacket)
                assert answer.reason_code == code

    add_user(tmp_path / "users", "ada", "a password")
    broker(tmp_path, scenario, listen={"websocket_port": "any"}, access={"anonymous": anonymous})


@pytest.mark.parametrize("door", ["mqtt", "websocket"])
@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /mqtt HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
        b"GET /mqtt HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n" + bytes(100),  # a TLS handshake
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"GET /" + b"a" * 100_000,
    ],
)
def test_other_protocols_are_turned_away(tmp_path: Path, door: str, said: bytes) -> None:
    async def scenario(server: Server) -> None:
        reader, writer = await asyncio.open_connection(*server.addresses[door])
        writer.write(said)
        answer = b""
        with contextlib.suppress(ConnectionError):
            answer = await asyncio.wait_for(reader.read(), PATIENCE)
        assert not answer or answer.startswith(b"HTTP/1.1 4"), answer
        writer.close()
        await until(lambda: not server.broker.services.open)

    broker(tmp_path, scenario, listen=ALL)
