"""The same client over TCP, TLS and WebSocket."""

import asyncio
import ssl
from pathlib import Path
from typing import Any

import pytest
from tests.client.conftest import PASSWORD, USER
from tests.served import ServedBroker

import nearcast
from nearcast.client.address import address_in
from nearcast.errors import ConnectionFailed, NotAuthenticated

LONG = 60.0
TRANSPORTS = {"mqtt": "mqtt", "mqtts": "mqtts", "ws": "websocket", "wss": "websockets"}


def url_of(broker: ServedBroker, scheme: str) -> str:
    host, port = broker.addresses[TRANSPORTS[scheme]]
    return f"{scheme}://{host}:{port}"


def options_of(broker: ServedBroker, scheme: str) -> dict[str, Any]:
    return {"tls": str(broker.certificate)} if scheme in {"mqtts", "wss"} else {}


async def _round_trip(url: str, **options: Any) -> None:
    client = nearcast.connect(url, schemes=False, **options)
    async with asyncio.timeout(LONG), client as me, me.subscribe("transport") as events:
        for size in (0, 1, 100_000, 1_000_000):
            await me.publish("transport", bytes(size))
            assert len((await events.next(LONG)).payload) == size


@pytest.mark.parametrize("scheme", TRANSPORTS)
def test_large_and_small_events_go_over_every_transport(broker: ServedBroker, scheme: str) -> None:
    asyncio.run(_round_trip(url_of(broker, scheme), **options_of(broker, scheme)))


def test_the_caller_may_decide_whom_to_trust(broker: ServedBroker) -> None:
    context = ssl.create_default_context(cafile=str(broker.certificate))
    asyncio.run(_round_trip(url_of(broker, "mqtts"), tls=context))


@pytest.mark.parametrize("scheme", ["mqtts", "wss"])
def test_a_broker_that_nobody_vouches_for_is_not_trusted(broker: ServedBroker, scheme: str) -> None:
    with pytest.raises(ConnectionFailed, match="not trusted"):
        asyncio.run(_round_trip(url_of(broker, scheme)))


def test_tls_with_who_does_not_speak_it_fails_and_says_so(broker: ServedBroker) -> None:
    with pytest.raises(ConnectionFailed, match=r"TLS|broke|reached"):
        asyncio.run(_round_trip(f"mqtts://127.0.0.1:{broker.port}"))


def test_a_websocket_where_none_is_spoken_fails_and_says_so(broker: ServedBroker) -> None:
    with pytest.raises(ConnectionFailed, match="WebSocket"):
        asyncio.run(_round_trip(f"ws://127.0.0.1:{broker.port}"))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("mqtt://localhost", "mqtt://localhost:1883"),
        ("mqtts://broker.example", "mqtts://broker.example:8883"),
        ("ws://[::1]:8080", "ws://[::1]:8080/mqtt"),
        ("wss://broker.example/here", "wss://broker.example:443/here"),
    ],
)
def test_what_an_address_leaves_out_is_usual(url: str, shown: str) -> None:
    assert str(address_in(url)) == shown


def test_users_stand_in_the_address_or_beside_it() -> None:
    address = address_in("mqtt://ada:p%40ss@localhost")
    assert (address.user, address.password) == ("ada", "p@ss")
    assert address_in("mqtt://ada:one@localhost", "eve", "p@ss") == address_in("mqtt://localhost", "eve", "p@ss")
    assert "p@ss" not in repr(address) + str(address)


def test_a_file_that_is_no_certificate_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "authority.pem"
    file.write_text("no certificate")
    with pytest.raises(ValueError, match="no readable file"):
        nearcast.connect("mqtts://localhost", tls=str(file))


def test_a_password_opens_the_door_and_a_wrong_one_does_not(broker: ServedBroker) -> None:
    asyncio.run(_round_trip(broker.url, user=USER, password=PASSWORD))
    for user, password in ((USER, "wrong"), ("nobody", PASSWORD)):
        with pytest.raises(NotAuthenticated, match=user):
            asyncio.run(_round_trip(broker.url, user=user, password=password))
