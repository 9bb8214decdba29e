"""Useful location deliveries with Redis: positions in a geo set, a channel for each receiver.

Two forms.  A service beside Redis asks who is near (GEOSEARCH) and publishes to each of them, many commands in one
write; that is what people build.  Or a script inside Redis does both at once, which saves the way to the service and
back.  nearcast is compared with whichever is faster.
"""

from __future__ import annotations

import hashlib
import re
import socket
from abc import abstractmethod
from typing import Final

from nearcast.benchmark.broker_crowd import Crowd
from nearcast.benchmark.broker_packets import PUBLISH, SUBACK, numbered
from nearcast.benchmark.broker_script import Script
from nearcast.benchmark.broker_useful import PAYLOAD, Useful
from nearcast.benchmark.peers.server import Server
from nearcast.benchmark.workload import RADIUS
from nearcast.errors import BenchmarkError

_BATCH: Final = 64
_PATIENCE: Final = 3.0
_RADIUS: Final = f"{RADIUS:g}"
_WORD: Final = b"end of the pipeline"
_END: Final = b"$%d\r\n%b\r\n" % (len(_WORD), _WORD)
_ENDING: Final = b"*2\r\n$4\r\nECHO\r\n" + _END
_AHEAD: Final = 2
_SCRIPT: Final = f"""
local near = redis.call('GEOSEARCH', 'people', 'FROMLONLAT', ARGV[1], ARGV[2], 'BYRADIUS', '{_RADIUS}', 'm')
for _, who in ipairs(near) do redis.call('PUBLISH', who, ARGV[3]) end
return #near
"""

_ARRAY: Final = re.compile(rb"^\*\d+\r\n", re.MULTILINE)
_INTEGER: Final = re.compile(rb"^:(\d+)\r$", re.MULTILINE)
_ERROR: Final = re.compile(rb"^-", re.MULTILINE)

Event = tuple[bytes, bytes, bytes]
"""Longitude, latitude, payload."""


class WithRedis(Useful):
    """Client ``i`` listens on link ``i``; the service has a connection of its own."""

    def __init__(self, server: Server, crowd: Crowd, script: Script, steps: int, form: str) -> None:
        super().__init__(server, script, steps, {"subscriptions": "a channel for each client", "form": form})
        self._crowd = crowd
        self._names = [f"c{number:06d}" for number in range(script.clients)]
        self._reply = bytearray()
        self._service = socket.create_connection(("127.0.0.1", server.port))
        self._service.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        crowd.ask([(crowd.open(), command("SUBSCRIBE", name)) for name in self._names], SUBACK)
        crowd.arrived = self.arrived
        self.move(self.prepare_moves(0))

    def prepare_moves(self, step: int) -> bytes:
        places = zip(self._script.lon[step].tolist(), self._script.lat[step].tolist(), self._names, strict=True)
        return command(
            "GEOADD", "people", *(part for lon, lat, name in places for part in (f"{lon:.7f}", f"{lat:.7f}", name))
        )

    def move(self, prepared: bytes) -> None:
        self.ask(prepared)

    def prepare_publishes(self, step: int) -> list[Event]:
        places = zip(self._script.lon[step].tolist(), self._script.lat[step].tolist(), strict=True)
        first = step * self._script.clients
        return [
            (b"%.7f" % lon, b"%.7f" % lat, numbered(first + client, PAYLOAD))
            for client, (lon, lat) in enumerate(places)
        ]

    def publish(self, prepared: list[Event]) -> None:
        target = self._delivered + self.publish_all([prepared[i : i + _BATCH] for i in range(0, len(prepared), _BATCH)])
        self._crowd.hope(PUBLISH, int(self._crowd.tally[PUBLISH]) + target - self._delivered, _PATIENCE)
        self._delivered = max(self._delivered, target)

    @abstractmethod
    def publish_all(self, batches: list[list[Event]]) -> int:
        """To whoever is near; how many deliveries must come of it?"""

    def ask(self, request: bytes) -> bytes:
        self.send(request)
        return self.receive()

    def send(self, request: bytes) -> None:
        """Commands in a pipeline; Redis may work on several pipelines one after the other."""
        self._service.sendall(request + _ENDING)

    def receive(self) -> bytes:
        """All answers to one pipeline; receivers are read in the meantime."""
        while (end := self._reply.find(_END)) < 0:
            self._crowd.poll(0.0)
            received = self._service.recv(1 << 20)
            if not received:
                raise BenchmarkError("redis-server closed the connection")
            self._reply += received
        reply = bytes(self._reply[:end])
        del self._reply[: end + len(_END)]
        if _ERROR.search(reply):
            raise BenchmarkError(f"redis-server refused a command: {reply[:100]!r}")
        return reply

    def close(self) -> None:
        self._service.close()


class WithService(WithRedis):
    def __init__(self, server: Server, crowd: Crowd, script: Script, steps: int) -> None:
        super().__init__(server, crowd, script, steps, "service beside Redis")
        self._beginnings = {
            name.encode(): b"*3\r\n$7\r\nPUBLISH\r\n$%d\r\n%b\r\n$%d\r\n" % (len(name), name.encode(), PAYLOAD)
            for name in self._names
        }

    def publish_all(self, batches: list[list[Event]]) -> int:
        """Two questions ahead, so that Redis never waits for the service."""
        questions = [b"".join(map(_question, batch)) for batch in batches]
        for question in questions[:_AHEAD]:
            self.send(question)
        published = 0
        for number, batch in enumerate(batches):
            messages = self._messages(batch, self.receive())
            published += len(messages)
            self.send(b"".join([*messages, *questions[number + _AHEAD : number + _AHEAD + 1]]))
        for _ in batches[:_AHEAD]:
            self.receive()
        return published

    def _messages(self, batch: list[Event], answers: bytes) -> list[bytes]:
        """The answers to a batch's questions are arrays of names; numbers in between answer earlier PUBLISHes."""
        beginnings, messages = self._beginnings, list[bytes]()
        for (_, _, payload), answer in zip(batch, _ARRAY.split(answers)[1:], strict=True):
            ending = payload + b"\r\n"
            messages += [beginnings[name] + ending for name in answer.split(b"\r\n")[1::2] if name in beginnings]
        return messages


class WithScript(WithRedis):
    def __init__(self, server: Server, crowd: Crowd, script: Script, steps: int) -> None:
        super().__init__(server, crowd, script, steps, "script inside Redis")
        self.ask(command("SCRIPT", "LOAD", _SCRIPT))
        self._digest = hashlib.sha1(_SCRIPT.encode(), usedforsecurity=False).hexdigest().encode()

    def publish_all(self, batches: list[list[Event]]) -> int:
        published = 0
        for number, batch in enumerate(batches):
            calls = (_encoded(b"EVALSHA", self._digest, b"0", lon, lat, payload) for lon, lat, payload in batch)
            self.send(b"".join(calls))
            if number >= _AHEAD:
                published += self._counted()
        return published + sum(self._counted() for _ in batches[:_AHEAD])

    def _counted(self) -> int:
        return sum(int(count) for count in _INTEGER.findall(self.receive()))


def _question(event: Event) -> bytes:
    lon, lat, _ = event
    return _encoded(b"GEOSEARCH", b"people", b"FROMLONLAT", lon, lat, b"BYRADIUS", _RADIUS.encode(), b"m")


def command(*words: str) -> bytes:
    return _encoded(*(word.encode() for word in words))


def _encoded(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
