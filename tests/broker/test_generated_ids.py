"""Whoever brings no client id gets one for a session; with the session ends what was kept of it."""

from pathlib import Path

import pytest
from mqtt5 import ConnAckPacket, ConnectPacket, DisconnectPacket
from tests.broker.talker import Talker, broker, run, talking
from tests.broker.temporal_rig import running
from tests.waiting import until

import nearcast
from nearcast.broker.server import Server
from nearcast.mqtt.client_ids import generated, is_generated


def test_a_generated_id_is_recognised() -> None:
    assert is_generated(generated())
    assert generated() != generated()


@pytest.mark.parametrize(
    "other",
    ["", "nearcast-", "nearcast-weather-station", "nearcast-0123456789abcdef0", "my nearcast-0123456789abcdef"],
)
def test_an_id_that_somebody_chose_is_not_taken_for_a_generated_one(other: str) -> None:
    assert not is_generated(other)


def test_the_identity_of_a_generated_client_id_ends_with_its_session(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        identities = server.broker.identities
        async with talking(server, "ada"):
            anonymous = await Talker.open(server)
            anonymous.send(ConnectPacket("", clean_start=True, session_expiry_interval=100))
            client = (await anonymous.next(ConnAckPacket)).assigned_client_id
            assert client is not None
            assert sorted(identities.clients()) == sorted(["ada", client])
            anonymous.close()
            await until(lambda: server.broker.sessions.all[client].ended is not None)
            assert client in identities.clients(), "the session goes on"
            again = await Talker.open(server)
            await again.connect(client, clean_start=False, session_expiry_interval=100)
            again.send(DisconnectPacket(session_expiry_interval=0))
            await until(lambda: client not in identities.clients())
        await until(lambda: not server.broker.sessions.all)
        assert identities.clients() == ["ada"], "who chose an id may come back"
        host, port = server.addresses["mqtt"]
        async with nearcast.connect(f"mqtt://{host}:{port}", schemes=False) as client_of_sdk:
            assert client_of_sdk.client_id in identities.clients()
        await until(lambda: identities.clients() == ["ada"])

    broker(tmp_path, scenario)


def test_a_broker_that_fell_forgets_whose_sessions_fell_with_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        kept, gone = generated(), generated()
        async with running(tmp_path / "0") as rig:
            await rig.connect(kept, expiry=100)
            await rig.connect(gone)
            await rig.connect("ada")
            after = await rig.killed(tmp_path / "1")
        assert sorted(after.broker.identities.clients()) == sorted([kept, "ada"])
        identity = after.session(kept).identity
        assert after.broker.identities.of(kept) == identity
        await after.close()

    run(scenario())
