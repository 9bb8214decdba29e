"""``nearcast serve`` as tools rely on it: what it prints, how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from pathlib import Path

import pytest
from mqtt5 import ConnectPacket, PublishPacket, QoS
from tests.served import COMMAND, served
from tests.waiting import PATIENCE

from nearcast.mqtt.stream import encode


async def failing(*options: str) -> str:
    """What it says when it cannot start: one line, and exit status 1."""
    process = await asyncio.create_subprocess_exec(
        COMMAND, "serve", *options, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        out, said = await asyncio.wait_for(process.communicate(), PATIENCE)
    except TimeoutError:
        process.kill()
        raise
    assert process.returncode == 1, said.decode()
    assert out == b""
    lines = [line for line in said.decode().splitlines() if " INFO " not in line]
    assert len(lines) == 1, lines
    return lines[0]


def test_it_stops_within_five_seconds_whatever_goes_on_and_everything_acknowledged_stays(tmp_path: Path) -> None:
    async def story() -> None:
        with served(tmp_path) as broker:
            assert broker.said[-1] == "ready"
            assert {"mqtt", "http"} <= broker.addresses.keys()
            address = broker.addresses["mqtt"]
            going = [asyncio.create_task(_load(address, number)) for number in range(5)]
            with socket.create_connection(address):  # says nothing, ever
                await asyncio.sleep(0.5)  # let the load run
                began = time.monotonic()
                assert await asyncio.to_thread(broker.stop) == 0
                assert time.monotonic() - began < 5.0
            counts = await asyncio.gather(*going)
            assert all(counts), counts
            assert not [line for line in broker.said if "Traceback" in line or " ERROR " in line], broker.said

    asyncio.run(story())


async def _load(address: tuple[str, int], number: int) -> int:
    """Publish until the broker says goodbye; how often it answered."""
    reader, writer = await asyncio.open_connection(*address)
    answers = 0
    with contextlib.suppress(OSError):
        writer.write(encode(ConnectPacket(f"load-{number}"), 5))
        await reader.read(1_000)
        packet = encode(PublishPacket("load", bytes(100), qos=QoS.AT_LEAST_ONCE, packet_id=1), 5)
        while True:
            writer.write(packet)
            if not await reader.read(1_000):
                break
            answers += 1
    writer.close()
    return answers


def test_what_keeps_it_from_starting_is_said_in_one_line(tmp_path: Path) -> None:
    """A port in use, a folder in use, a bad file: one broker to get in the way of all of them."""

    async def story() -> None:
        free = ("--port", "0", "--http-port", "0")
        config = tmp_path / "broker.toml"
        config.write_text('[session]\nqueue_bytes = "5 kb"\n')
        unreadable = tmp_path / "unreadable.toml"
        unreadable.write_text("[session\n")
        with served(tmp_path) as broker:
            port = str(broker.addresses["mqtt"][1])
            http_port = str(broker.addresses["http"][1])
            said = await asyncio.gather(
                failing("--port", port, "--http-port", "0", "--data", str(tmp_path / "other")),
                failing("--port", "0", "--http-port", http_port, "--data", str(tmp_path / "another")),
                failing(*free, "--data", str(broker.data)),
                failing(*free, "--config", str(config)),
                failing(*free, "--config", str(unreadable)),
                failing(*free, "--config", str(tmp_path / "missing.toml")),
            )
        assert port in said[0]
        assert http_port in said[1]
        assert "in use" in said[2]
        assert str(config) in said[3]
        assert "session.queue_bytes" in said[3]
        assert str(unreadable) in said[4]
        assert "missing.toml" in said[5]

    asyncio.run(story())


@pytest.mark.parametrize("options", [("--port", "many"), ("--nonsense",)])
def test_wrong_usage_has_exit_status_2(options: tuple[str, ...]) -> None:
    async def story() -> None:
        process = await asyncio.create_subprocess_exec(
            COMMAND, "serve", *options, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        await asyncio.wait_for(process.communicate(), PATIENCE)
        assert process.returncode == 2

    asyncio.run(story())
