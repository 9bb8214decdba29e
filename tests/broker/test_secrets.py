"""Secrets stay where they belong: after every way in and every refusal, at the most talkative level, none of them is anywhere else."""

from __future__ import annotations

import asyncio
import base64
import time
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from mqtt5 import ConnAckPacket, ConnectPacket, PublishPacket, QoS
from tests.broker.access.minting import AUDIENCE, ISSUER
from tests.served import ServedBroker, served
from tests.waiting import PATIENCE, wait_until

from nearcast.broker.access.users import add_user
from nearcast.cli import main
from nearcast.mqtt.stream import PacketReader
from nearcast.planning.signed import make_key, signer_in

PASSWORD = "planted-password-7f3a"  # noqa: S105 - to be looked for
WRONG = "planted-wrong-password-91c2"
SECRET = "planted-shared-secret-of-the-issuer-0d55e1b7"  # noqa: S105 - to be looked for
SETTINGS = """
[access]
anonymous = "never"

[access.jwt]
secret = "issuer.secret"
algorithms = ["HS256"]
issuer = "https://login.example"
audience = "nearcast-test"

[[access.rule]]
users = ["ada"]
publish = ["#"]
subscribe = ["#"]
plans = true
query = true

[[schemes.planner]]
name = "spark"
key = "%s"

[log]
level = "debug"
"""


def token(user: str, secret: str = SECRET, **claims: Any) -> str:
    said = {"iss": ISSUER, "aud": AUDIENCE, "exp": time.time() + 3_600, "sub": user} | claims
    return jwt.encode(said, secret, "HS256")


async def by_mqtt(port: int, user: str | None, password: str, *, broken: bool = False) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    connect = ConnectPacket("phone", username=user, password=password.encode(), clean_start=True).write()
    writer.write(connect[:-3] + b"\xff\xff\xff" if broken else connect)
    data = await asyncio.wait_for(reader.read(1_000), PATIENCE)
    code = -1
    for packet in PacketReader(version=5).packets(data):
        if isinstance(packet, ConnAckPacket):
            code = int(packet.reason_code)
    if code == 0:
        writer.write(PublishPacket("a/b", b"x", qos=QoS.AT_LEAST_ONCE, packet_id=1).write())
        await asyncio.wait_for(reader.read(1_000), PATIENCE)
    writer.close()
    return code


def test_no_secret_is_in_logs_journal_lake_metrics_or_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    add_user(data / "users", "ada", PASSWORD)
    (tmp_path / "issuer.secret").write_text(SECRET)
    make_key(tmp_path / "spark.key", "spark")
    signer = signer_in(tmp_path / "spark.key")
    tokens = {
        "good": token("ada"),
        "expired": token("ada", exp=1),
        "foreign": token("ada", "planted-other-secret-that-is-long-enough"),
        "nobody": token("a/b"),
    }
    answers: list[str] = []
    with served(tmp_path, SETTINGS % signer.public()) as broker:
        asyncio.run(
            knock(broker, tokens, signer.signed({"plan": "p", "scheme": "EGRID"}, int(time.time() * 1e6)), answers)
        )
        broker.stop()
        said = "\n".join(broker.said)
    assert "a token was refused" in said, "the log says something at all"
    # Wrong settings are told of without their secrets, too.
    (tmp_path / "issuer.secret").write_text(WRONG[:20])
    (tmp_path / "spark.key").write_text('{"planner": "spark", "secret": "planted-broken"}')
    assert main(["serve", "--config", str(tmp_path / "settings.toml"), "--data", str(data), "--port", "any"]) == 1
    outcome = capsys.readouterr()
    secrets = {
        "password": PASSWORD,
        "wrong password": WRONG,
        "shared secret": SECRET,
        "short secret": WRONG[:20],
        "planner's key": base64.b64encode(signer.secret).decode(),
        "basic": base64.b64encode(f"ada:{PASSWORD}".encode()).decode(),
        "basic wrong": base64.b64encode(f"ada:{WRONG}".encode()).decode(),
        **{f"token {name}": each.rpartition(".")[2] for name, each in tokens.items()},
        **{f"claims {name}": each.split(".")[1] for name, each in tokens.items()},
    }
    places = {"log": said.encode(), "answers": "\n".join(answers).encode(), "stderr": outcome.err.encode()}
    places |= {str(path.relative_to(data)): path.read_bytes() for path in data.rglob("*") if path.is_file()}
    assert any("journal" in name for name in places)
    assert sum(b"a/b" in content for content in places.values()), "what was published is found by such a search"
    found = [
        f"{what} in {where}"
        for where, content in places.items()
        for what, each in secrets.items()
        if each.encode() in content
    ]
    assert not found


async def knock(broker: ServedBroker, tokens: dict[str, str], plan: dict[str, Any], answers: list[str]) -> None:
    """By every door, rightly and wrongly."""
    assert await by_mqtt(broker.port, "ada", PASSWORD) == 0
    assert await by_mqtt(broker.port, "ada", WRONG) == 0x86
    assert await by_mqtt(broker.port, WRONG, WRONG) == 0x86
    assert await by_mqtt(broker.port, "ada", tokens["good"]) == 0
    assert await by_mqtt(broker.port, "bob", tokens["good"]) == 0x86
    for name in ("expired", "foreign", "nobody"):
        assert await by_mqtt(broker.port, None, tokens[name]) == 0x86
    await by_mqtt(broker.port, "ada", PASSWORD, broken=True)
    async with httpx.AsyncClient(base_url=broker.http, timeout=PATIENCE) as client:
        word = {"x-nearcast": "1"}
        headers = [
            *({"authorization": f"Bearer {each}"} for each in tokens.values()),
            *(
                {"authorization": "Basic " + base64.b64encode(f"ada:{each}".encode()).decode()}
                for each in (PASSWORD, WRONG)
            ),
            {"authorization": f"Basic {PASSWORD}"},
            {"authorization": f"Digest {PASSWORD}"},
            {"cookie": f"nearcast_dashboard={WRONG}"},
        ]
        for path in ("/status", "/metrics", "/dashboard/api/me", "/dashboard/api/sessions", "/schema/openapi.json"):
            answers += [(await client.get(path, headers=each)).text for each in headers]
        for each in headers:
            answers.append((await client.post("/plans", json=[plan], headers=each)).text)
            bad = plan | {"scheme": "RADIAL"}
            answers.append((await client.post("/plans", json=[bad], headers=each)).text)
            answers.append((await client.post("/reload", headers=each)).text)
            answers.append((await client.post("/events/", content=b"{", headers=each)).text)
        for password in (PASSWORD, WRONG):
            login = {"user": "ada", "password": password}
            answers.append((await client.post("/dashboard/api/login", json=login, headers=word)).text)
            answers.append((await client.post("/dashboard/api/login", json={"user": password}, headers=word)).text)
    wait_until(lambda: any("refused" in line for line in broker.said))
