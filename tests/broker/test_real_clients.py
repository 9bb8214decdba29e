"""Clients that others wrote, unchanged: mosquitto_pub and _sub, paho-mqtt, aiomqtt, and mqtt of npm."""

from __future__ import annotations

import asyncio
import json
import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Any

import aiomqtt
import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from tests.broker.talker import broker, talking
from tests.broker.test_listeners import ALL
from tests.waiting import PATIENCE, until

from nearcast.broker.server import Server

needs_mosquitto = pytest.mark.skipif(
    shutil.which("mosquitto_pub") is None, reason="mosquitto_pub is not installed (package mosquitto-clients)"
)


def certificate_in(folder: Path) -> Path:
    (found,) = [path for path in folder.rglob("*") if path.suffix in {".pem", ".crt"} and "key" not in path.name]
    return found


async def ran(*command: str | Path, patience: float = 30.0) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        out, said = await asyncio.wait_for(process.communicate(), patience)
    except TimeoutError:
        process.kill()
        out, said = await process.communicate()
        raise AssertionError(f"{command} did not end: {said.decode()}") from None
    assert process.returncode == 0, said.decode()
    return out.decode()


# mosquitto


@needs_mosquitto
@pytest.mark.parametrize("version", ["mqttv311", "mqttv5"])
@pytest.mark.parametrize("qos", ["0", "1", "2"])
@pytest.mark.parametrize("door", ["mqtt", "mqtts", "websocket"])
def test_mosquitto_publishes_and_subscribes(tmp_path: Path, version: str, qos: str, door: str) -> None:
    async def scenario(server: Server) -> None:
        host, port = server.addresses[door]
        where = ["-h", host, "-p", str(port), "-V", version, "-q", qos]
        if door == "mqtts":
            where += ["--cafile", str(certificate_in(tmp_path)), "--insecure"]
        if door == "websocket":
            if "--ws" not in (await helped()):
                pytest.skip("this mosquitto_pub has no WebSockets")
            where += ["--ws"]
        hearing = asyncio.create_task(ran("mosquitto_sub", *where, "-t", "a/#", "-C", "3", "-F", "%t %p %q"))
        await until(lambda: server.broker.statistics().sessions.subscriptions == 1)
        for number in range(3):
            await ran("mosquitto_pub", *where, "-t", f"a/{number}", "-m", f"hello {number}")
        assert (await hearing).splitlines() == [f"a/{number} hello {number} {qos}" for number in range(3)]

    broker(tmp_path, scenario, listen=ALL)


async def helped() -> str:
    process = await asyncio.create_subprocess_exec("mosquitto_sub", "--help", stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    return out.decode()


@needs_mosquitto
@pytest.mark.parametrize("version", ["mqttv311", "mqttv5"])
def test_mosquitto_with_retained_messages_wills_and_place(tmp_path: Path, version: str) -> None:
    async def scenario(server: Server) -> None:
        host, port = server.addresses["mqtt"]
        where = ["-h", host, "-p", str(port), "-V", version]
        await ran("mosquitto_pub", *where, "-t", "kept", "-m", "hello", "-r", "-q", "1")
        assert await ran("mosquitto_sub", *where, "-t", "kept", "-C", "1", "-F", "%r %p") == "1 hello\n"
        async with talking(server, "heir") as heir:
            await heir.subscribe("wills/#")
            dying = await asyncio.create_subprocess_exec(
                "mosquitto_sub", *where, "-t", "x", "--will-topic", "wills/me", "--will-payload", "gone"
            )
            await until(lambda: server.broker.statistics().sessions.subscriptions == 2)
            dying.kill()
            await dying.wait()
            assert (await heir.heard()).payload == b"gone"
        # Place without user properties: through the reserved prefix.
        area = '{"circle": 500, "at": [8.65, 49.87]}'.replace(" ", "%20").replace("{", "%7B").replace("}", "%7D")
        pattern = f"$near/area={area}/traffic/#"
        hearing = asyncio.create_task(ran("mosquitto_sub", *where, "-t", pattern, "-C", "1", "-F", "%t %p"))
        await until(lambda: server.broker.statistics().sessions.subscriptions == 1)
        for place, words in (("50.87,8.65", "far"), ("49.8701,8.65", "near")):
            await ran("mosquitto_pub", *where, "-q", "1", "-t", f"$near/place={place}/traffic/jam", "-m", words)
        assert await hearing == "traffic/jam near\n"

    broker(tmp_path, scenario, listen=ALL)


# paho


class Paho:
    """paho-mqtt in its own thread, as applications use it."""

    def __init__(self, client: str, version: MQTTProtocolVersion, transport: str = "tcp") -> None:
        self.heard: list[tuple[str, bytes, int, bool]] = []
        self.client: Any = paho.Client(
            CallbackAPIVersion.VERSION2,
            client,
            protocol=version,
            transport=transport,  # type: ignore[arg-type]
        )
        self.client.on_message = lambda _client, _data, message: self.heard.append(
            (message.topic, bytes(message.payload), message.qos, message.retain)
        )
        self.subscribed: list[Any] = []
        self.client.on_subscribe = lambda _client, _data, _mid, codes, _properties: self.subscribed.append(codes)

    def begin(self, server: Server, door: str, folder: Path) -> None:
        if door.endswith("s"):
            context = ssl.create_default_context(cafile=str(certificate_in(folder)))
            context.check_hostname = False
            self.client.tls_set_context(context)
        self.client.connect(*server.addresses[door])
        self.client.loop_start()

    def end(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


@pytest.mark.parametrize("version", [MQTTProtocolVersion.MQTTv311, MQTTProtocolVersion.MQTTv5])
@pytest.mark.parametrize("door", ["mqtt", "mqtts", "websocket", "websockets"])
def test_paho(tmp_path: Path, version: MQTTProtocolVersion, door: str) -> None:
    async def scenario(server: Server) -> None:
        transport = "websockets" if door.startswith("web") else "tcp"
        reader, writer = Paho("reader", version, transport), Paho("writer", version, transport)
        for each in (reader, writer):
            await asyncio.to_thread(each.begin, server, door, tmp_path)
        reader.client.subscribe("a/#", 2)
        await until(lambda: bool(reader.subscribed))
        expected = []
        for qos in (0, 1, 2):
            for number in range(5):
                sent = writer.client.publish(f"a/{qos}", b"%d" % number, qos)
                await asyncio.to_thread(sent.wait_for_publish, PATIENCE)
                assert sent.is_published()
                expected.append((f"a/{qos}", b"%d" % number, qos, False))
        await until(lambda: len(reader.heard) == len(expected))
        assert reader.heard == expected
        for each in (reader, writer):
            await asyncio.to_thread(each.end)

    broker(tmp_path, scenario, listen=ALL)


def test_paho_with_user_properties(tmp_path: Path) -> None:
    async def scenario(server: Server) -> None:
        reader = Paho("reader", MQTTProtocolVersion.MQTTv5)
        await asyncio.to_thread(reader.begin, server, "mqtt", tmp_path)
        asked = Properties(PacketTypes.SUBSCRIBE)  # type: ignore[no-untyped-call]
        asked.UserProperty = [("nc-area", "500"), ("nc-where", "severity >= 3")]
        told = reader.client.publish("$nearcast/position", b"49.8728,8.6512", 1)
        await asyncio.to_thread(told.wait_for_publish, PATIENCE)
        reader.client.subscribe("traffic/#", 1, properties=asked)
        await until(lambda: bool(reader.subscribed))
        for place, severity in (("49.8730,8.6512", 2), ("49.8730,8.6512", 4), ("49.9730,8.6512", 4)):
            with_place = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
            with_place.UserProperty = [("nc-place", place), ("severity", str(severity))]
            sent = reader.client.publish("traffic/jam", f"{place} {severity}", 1, properties=with_place)
            await asyncio.to_thread(sent.wait_for_publish, PATIENCE)
        await until(lambda: bool(reader.heard))
        assert [payload for _, payload, _, _ in reader.heard] == [b"49.8730,8.6512 4"]
        await asyncio.to_thread(reader.end)

    broker(tmp_path, scenario)


# aiomqtt


@pytest.mark.parametrize("version", [aiomqtt.ProtocolVersion.V311, aiomqtt.ProtocolVersion.V5])
def test_aiomqtt(tmp_path: Path, version: aiomqtt.ProtocolVersion) -> None:
    async def scenario(server: Server) -> None:
        host, port = server.addresses["mqtt"]
        will = aiomqtt.Will("wills/writer", b"gone", 1)
        async with aiomqtt.Client(host, port, identifier="reader", protocol=version) as reader:
            await reader.subscribe("#", qos=2)
            async with aiomqtt.Client(host, port, identifier="writer", protocol=version, will=will) as writer:
                for qos in (0, 1, 2):
                    await writer.publish("a", f"{qos}", qos=qos)
            heard = []
            async with asyncio.timeout(PATIENCE):
                async for message in reader.messages:
                    heard.append((message.payload, message.qos))
                    if len(heard) == 3:
                        break
        assert heard == [(b"0", 0), (b"1", 1), (b"2", 2)]  # and no will: it said goodbye

    broker(tmp_path, scenario)


# npm


SCRIPT = """
const mqtt = require("mqtt");
const [url, version] = process.argv.slice(2);
const options = {protocolVersion: Number(version), rejectUnauthorized: false, reconnectPeriod: 0};
const client = mqtt.connect(url, options);
const heard = [];
client.on("error", error => { console.error(error); process.exit(1); });
client.on("message", (topic, payload, packet) => {
  heard.push([topic, payload.toString(), packet.qos, packet.retain]);
  if (heard.length === 4) client.end(false, () => { console.log(JSON.stringify(heard)); });
});
client.on("connect", async () => {
  await client.publishAsync("kept", "retained", {qos: 1, retain: true});
  await client.subscribeAsync(["a/#", "kept"], {qos: 2});
  for (const qos of [0, 1, 2]) await client.publishAsync("a/" + qos, "hello " + qos, {qos});
});
"""


@pytest.fixture(scope="session")
def npm_mqtt(request: pytest.FixtureRequest) -> Path:
    """The package mqtt, in pytest's cache, so that it is fetched once."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("node and npm are not installed")
    folder: Path = request.config.cache.mkdir("npm-mqtt")
    if not (folder / "node_modules" / "mqtt" / "package.json").exists():
        command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), "mqtt@5"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        except subprocess.TimeoutExpired:
            pytest.skip("npm install mqtt took more than two minutes")
        if done.returncode:
            pytest.skip(f"npm could not install mqtt: {done.stderr.strip()[-200:]}")
    (folder / "talk.js").write_text(SCRIPT)
    return folder


@pytest.mark.parametrize("version", ["4", "5"])
@pytest.mark.parametrize(
    ("door", "scheme"), [("mqtt", "mqtt"), ("mqtts", "mqtts"), ("websocket", "ws"), ("websockets", "wss")]
)
def test_npm_mqtt(tmp_path: Path, npm_mqtt: Path, version: str, door: str, scheme: str) -> None:
    async def scenario(server: Server) -> None:
        host, port = server.addresses[door]
        said = await ran("node", npm_mqtt / "talk.js", f"{scheme}://{host}:{port}/mqtt", version, patience=40.0)
        assert json.loads(said) == [
            ["kept", "retained", 1, True],
            *(["a/" + str(qos), f"hello {qos}", qos, False] for qos in (0, 1, 2)),
        ]

    broker(tmp_path, scenario, listen=ALL)
