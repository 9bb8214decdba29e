"""Attacks a broker from a process of its own, at a bounded rate, until its standard input is closed; then tells what got through.

Every kind of attack counts how often it was tried and how often it *got through*: was let in, told something, or heard by somebody.  It speaks from
several addresses of the loopback network, as a few machines would.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from mqtt5 import (
    ConnAckPacket,
    ConnectPacket,
    Packet,
    PubAckPacket,
    PublishPacket,
    QoS,
    SubAckPacket,
    SubscribePacket,
    TopicFilter,
    Will,
)

from nearcast.mqtt.stream import PacketReader

ADDRESSES = [f"127.0.0.{number}" for number in range(2, 10)]
PATIENCE = 15.0


class Attacker:
    def __init__(self, target: dict[str, Any]) -> None:
        self.mqtt, self.websocket, self.http = target["mqtt"], target["websocket"], target["http"]
        self.secrets = target
        self.tried: Counter[str] = Counter()
        self.through: Counter[str] = Counter()
        self.turn = 0
        self.random = random.Random(7)
        self.held: list[asyncio.StreamWriter] = []

    async def connection(self, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        self.turn += 1
        local = (ADDRESSES[self.turn % len(ADDRESSES)], 0)
        return await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port, local_addr=local), PATIENCE)

    async def said(self, reader: asyncio.StreamReader, packets: PacketReader) -> list[Packet]:
        data = await asyncio.wait_for(reader.read(65_536), PATIENCE)
        return list(packets.packets(data)) if data else []

    async def log_in(self, **parts: Any) -> tuple[Any, Any, bool]:
        reader, writer = await self.connection(self.mqtt)
        writer.write(ConnectPacket(f"evil-{self.turn}", clean_start=True, **parts).write())
        answers = await self.said(reader, PacketReader(version=5))
        good = bool(answers) and isinstance(answers[0], ConnAckPacket) and int(answers[0].reason_code) < 0x80
        return reader, writer, good

    # Credentials

    async def credentials(self) -> None:
        kind, password = self.random.choice(self.secrets["credentials"])
        user = None if kind.startswith("token") else "root"
        _, writer, good = await self.log_in(username=user, password=password.encode())
        writer.close()
        self.count(f"log in: {kind}", good)

    async def anonymous(self) -> None:
        _, writer, good = await self.log_in()
        writer.close()
        self.count("log in: anonymous", good)

    # Escalations of somebody who is let in, and may do little

    async def escalations(self) -> None:
        will = self.random.random() < 0.2
        parts: dict[str, Any] = {"username": "mallory", "password": b"mallory"}
        if will:
            parts["will"] = Will(topic="honest/x", payload=b"evil")
        reader, writer, good = await self.log_in(**parts)
        if will:
            writer.close()
            self.count("will", good)
            return
        if not good:
            writer.close()
            return
        packets = PacketReader(version=5)
        place = '{"circle": 100, "at": [%s, 49.87]}'
        wanted = ["#", "+/x", "honest/#", "$share/g/honest/x", "$SYS/#", "$near/area=500;since=-2h/honest/#"]
        writer.write(SubscribePacket(1, [TopicFilter(each) for each in wanted]).write())
        publishes: list[tuple[str, list[tuple[str, str]]]] = [
            ("honest/x", []),
            ("$near/place=49.87,8.65/honest/x", []),
            ("evil/x", []),
            ("evil/x", [("nc-reach", place % "9.9")]),
            ("evil/x", [("nc-place", "49.87,8.65"), ("nc-to", "kind = 'car'")]),
            ("evil/x", [("nc-place", "49.87,8.65"), ("nc-when", "overlaps(time, '-10m', 'now')")]),
            ("$SYS/x", []),
            ("$nearcast/problems", []),
        ]
        for number, (topic, properties) in enumerate(publishes, 2):
            packet = PublishPacket(
                topic,
                b"evil",
                qos=QoS.AT_LEAST_ONCE,
                packet_id=number,
                user_properties=properties,
                retain=number % 2 == 0,
            )
            writer.write(packet.write())
        answered = 0
        with contextlib.suppress(TimeoutError, ConnectionError):
            while answered < 1 + len(publishes):
                found = await self.said(reader, packets)
                if not found:
                    break
                for each in found:
                    if isinstance(each, SubAckPacket):
                        for code in each.reason_codes:
                            self.count("subscription", int(code) < 0x80)
                        answered += 1
                    elif isinstance(each, PubAckPacket):
                        self.count("publish", int(each.reason_code) < 0x80)
                        answered += 1
                    elif isinstance(each, PublishPacket):
                        self.count("heard", True)
        writer.close()

    # HTTP

    async def request(self, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> int:
        reader, writer = await self.connection(self.http)
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(
            f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        line = await asyncio.wait_for(reader.readline(), PATIENCE)
        writer.close()
        return int(line.split()[1]) if line else 0

    async def by_http(self) -> None:
        mallory = "Basic " + base64.b64encode(b"mallory:mallory").decode()
        guess = "Basic " + base64.b64encode(b"root:guess%d" % self.turn).decode()
        credentials = [
            {},
            {"Authorization": mallory},
            {"Authorization": guess},
            {"X-Forwarded-For": "127.0.0.1", "X-Nearcast": "1"},
            {"Authorization": guess, "X-Forwarded-For": f"10.0.0.{self.turn % 250}", "X-Nearcast": "1"},
            *(
                {"Authorization": f"Bearer {token}"}
                for kind, token in self.secrets["credentials"]
                if kind[:5] == "token"
            ),
        ]
        plan = json.dumps([self.secrets["plan"]]).encode()
        event = {"specversion": "1.0", "id": "1", "source": "x", "type": "honest/x", "data": "evil"}
        asked: list[tuple[str, str, bytes, dict[str, str]]] = [
            ("GET", "/status", b"", {}),
            ("GET", "/journal?first=0", b"", {}),
            ("GET", "/events/?topic=%23", b"", {}),
            ("GET", "/dashboard/api/sessions", b"", {}),
            ("GET", "/dashboard/api/client?name=..", b"", {}),
            ("PUT", "/dashboard/api/rules", b'{"text": ""}', {"Content-Type": "application/json"}),
            ("POST", "/dashboard/api/transitions", b'{"scheme": "RADIAL"}', {"Content-Type": "application/json"}),
            ("POST", "/transitions", b'{"scheme": "EGRID"}', {"Content-Type": "application/json"}),
            ("POST", "/reload", b"", {}),
            ("POST", "/plans", plan, {"Content-Type": "application/json"}),
            ("POST", "/plans", b'[{"plan": "x", "scheme": "EGRID"}]', {"Content-Type": "application/json"}),
            ("POST", "/events/", json.dumps(event).encode(), {"Content-Type": "application/cloudevents+json"}),
            ("GET", "/dashboard/%2e%2e/%2e%2e/etc/passwd", b"", {}),
            ("GET", "/metrics", b"", {}),
        ]
        method, path, body, more = self.random.choice(asked)
        who = self.random.choice(credentials)
        if path == "/metrics" and who.get("Authorization") == mallory:
            return  # that is hers to see
        status = await self.request(method, path, more | who, body)
        self.count(f"http {method} {path.partition('?')[0]}", 0 < status < 400)

    # Too much, and too slow

    async def oversized(self) -> None:
        match self.random.randrange(4):
            case 0:
                _, writer = await self.connection(self.mqtt)
                writer.write(b"\x10\xff\xff\xff\x7f" + b"\x00" * 60_000)
            case 1:
                _, writer = await self.connection(self.http)
                writer.write(b"GET / HTTP/1.1\r\n" + b"X-A: " + b"a" * 200_000 + b"\r\n")
            case 2:
                _, writer = await self.connection(self.http)
                writer.write(
                    b"POST /events/ HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999999\r\n\r\n" + b"a" * 200_000
                )
            case _:
                _, writer = await self.connection(self.websocket)
                writer.write(b"GET /mqtt HTTP/1.1\r\n" + b"a" * 100_000)
        self.count("oversized", False)
        await asyncio.sleep(0)
        writer.close()

    async def slow(self) -> None:
        """Hold connections on which nearly nothing comes; their trickling goes on below."""
        port = self.random.choice((self.mqtt, self.websocket, self.http))
        _, writer = await self.connection(port)
        writer.write(b"\x10" if port == self.mqtt else b"G")
        self.held.append(writer)
        self.count("slow", False)

    async def trickle(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            for writer in self.held:
                if not writer.is_closing():
                    writer.write(b"E")
            self.held = [writer for writer in self.held if not writer.is_closing()][-600:]

    async def flood(self) -> None:
        _, writer = await self.connection(self.mqtt)
        self.count("flood", False)
        writer.close()

    def count(self, kind: str, through: bool) -> None:
        self.tried[kind] += 1
        self.through[kind] += through

    async def attempt(self, attack: Callable[[], Awaitable[None]]) -> None:
        try:
            await attack()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, ValueError):
            self.tried[f"turned away: {attack.__name__}"] += 1

    async def attack(self, rate: float, ended: asyncio.Event) -> None:
        kinds = [
            *(self.credentials, self.by_http, self.slow, self.flood, self.escalations),
            *(self.by_http, self.flood, self.slow, self.oversized, self.anonymous),
        ]
        trickling = asyncio.create_task(self.trickle())
        tasks: set[asyncio.Task[None]] = set()
        begun, number = time.monotonic(), 0
        while not ended.is_set():
            number += 1
            if len(tasks) < 200:  # who is slow to answer is not asked any faster
                task = asyncio.create_task(self.attempt(kinds[number % len(kinds)]))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
            await asyncio.sleep(max(0.0, begun + number / rate - time.monotonic()))
        trickling.cancel()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def main() -> None:
    target = json.loads(sys.stdin.readline())
    attacker, ended = Attacker(target), asyncio.Event()
    loop = asyncio.get_running_loop()
    waiting = loop.run_in_executor(None, sys.stdin.read)
    waiting.add_done_callback(lambda _: ended.set())
    begun = time.monotonic()
    print("attacking", flush=True)
    await attacker.attack(target["rate"], ended)
    seconds = time.monotonic() - begun
    report = {"seconds": seconds, "tried": attacker.tried, "through": +attacker.through}
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
