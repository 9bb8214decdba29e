"""A service beside Redis that brings events to whoever is near: what people build with GEOSEARCH and pub/sub.

It hears events on a channel, on a connection of its own; on another one it asks who is near and publishes to each of them.
"""

from __future__ import annotations

import re
import select
import socket
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Final

from nearcast.benchmark.broker_useful import PAYLOAD
from nearcast.benchmark.workload import RADIUS
from nearcast.errors import BenchmarkError

EVENTS: Final = b"events"
"""The channel."""

_WORD: Final = b"end of the pipeline"
_END: Final = b"$%d\r\n%b\r\n" % (len(_WORD), _WORD)
_ENDING: Final = b"*2\r\n$4\r\nECHO\r\n" + _END
_AHEAD: Final = 2
"""Pipelines of questions that Redis has at a time, so that it never waits for the service."""

_MOST: Final = 64
"""Questions in one of them: while Redis works on the next, the answers to these are worked on here."""

_DEGREES: Final = 12
_SAID: Final = 2 * _DEGREES + PAYLOAD
_HEAD: Final = b"*3\r\n$7\r\nmessage\r\n$%d\r\n%b\r\n$%d\r\n" % (len(EVENTS), EVENTS, _SAID)
_FRAME: Final = len(_HEAD) + _SAID + 2
"""Bytes of a message on the channel: all events are as long as each other."""

_CHUNK: Final = 1 << 20
_RADIUS: Final = b"%g" % RADIUS
_ARRAY: Final = re.compile(rb"^\*\d+\r\n", re.MULTILINE)
_ERROR: Final = re.compile(rb"^-", re.MULTILINE)


class Service:
    def __init__(self, port: int, names: Sequence[str]) -> None:
        self._hearing, self._asking = _connection(port), _connection(port)
        subscribe = command(b"SUBSCRIBE", EVENTS)
        self._hearing.sendall(subscribe)
        answer = b"*3\r\n$9\r\nsubscribe\r\n$%d\r\n%b\r\n:1\r\n" % (len(EVENTS), EVENTS)
        if self._hearing.recv(len(answer), socket.MSG_WAITALL) != answer:
            raise BenchmarkError("redis-server refused the subscription of the service")
        self._beginnings = {
            name.encode(): b"*3\r\n$7\r\nPUBLISH\r\n$%d\r\n%b\r\n$%d\r\n" % (len(name), name.encode(), PAYLOAD)
            for name in names
        }
        self._poll = select.poll()
        for connection in (self._hearing, self._asking):
            self._poll.register(connection, select.POLLIN)
        self._heard, self._answered = bytearray(), bytearray()
        self._waiting: deque[bytes] = deque()
        self._asked: deque[list[bytes]] = deque()
        self.handled = 0
        """Events whose messages are with Redis."""
        self.published = 0
        """Messages."""

    def serve(self, seconds: float) -> None:
        """Whatever there is to do, waiting up to that long for it."""
        ready = {descriptor for descriptor, _ in self._poll.poll(seconds * 1_000)}
        if self._hearing.fileno() in ready:
            self._hear()
        messages = self._answers() if self._asking.fileno() in ready else []
        questions: list[bytes] = []
        while self._waiting and len(self._asked) < _AHEAD:
            batch = [self._waiting.popleft() for _ in range(min(_MOST, len(self._waiting)))]
            self._asked.append(batch)
            questions += [*map(_question, batch), _ENDING]
        if messages or questions:
            self._asking.sendall(b"".join([*messages, *questions]))

    def close(self) -> None:
        self._hearing.close()
        self._asking.close()

    def _hear(self) -> None:
        heard = self._heard
        heard += _received(self._hearing)
        whole = len(heard) - len(heard) % _FRAME
        self._waiting.extend(bytes(heard[at + len(_HEAD) : at + _FRAME - 2]) for at in range(0, whole, _FRAME))
        del heard[:whole]

    def _answers(self) -> list[bytes]:
        """Messages to those who are near the events of the pipelines that have been answered."""
        answered, messages = self._answered, list[bytes]()
        answered += _received(self._asking)
        while self._asked and (end := answered.find(_END)) >= 0:
            answers = bytes(answered[:end])
            del answered[: end + len(_END)]
            if _ERROR.search(answers):
                raise BenchmarkError(f"redis-server refused a command: {answers[:100]!r}")
            batch = self._asked.popleft()
            messages += self._messages(batch, answers)
            self.handled += len(batch)
        self.published += len(messages)
        return messages

    def _messages(self, batch: list[bytes], answers: bytes) -> list[bytes]:
        """The answers to questions are arrays of names; numbers before and between answer earlier PUBLISHes."""
        beginnings, messages = self._beginnings, list[bytes]()
        for event, answer in zip(batch, islice(_ARRAY.split(answers), 1, None), strict=True):
            ending = event[2 * _DEGREES :] + b"\r\n"
            messages += [beginnings[name] + ending for name in answer.split(b"\r\n")[1::2] if name in beginnings]
        return messages


def event_text(lon: float, lat: float, payload: bytes) -> bytes:
    """An event as the service hears it."""
    return b"%12.7f%12.7f%b" % (lon, lat, payload)


def greet(connection: socket.socket) -> None:
    """Speak RESP3 from now on: commands may then be sent on a connection that is subscribed."""
    connection.setblocking(True)
    connection.sendall(command(b"HELLO", b"3"))
    answer = b""
    while not answer.endswith(b"*0\r\n"):  # the list of modules, which comes last
        received = connection.recv(_CHUNK)
        if not received or received.startswith(b"-"):
            raise BenchmarkError(f"redis-server does not speak RESP3: {received[:100]!r}")
        answer += received
    connection.setblocking(False)


def command(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


def _question(event: bytes) -> bytes:
    lon, lat = event[:_DEGREES].strip(), event[_DEGREES : 2 * _DEGREES].strip()
    return command(b"GEOSEARCH", b"people", b"FROMLONLAT", lon, lat, b"BYRADIUS", _RADIUS, b"m")


def _connection(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _received(connection: socket.socket) -> bytes:
    received = connection.recv(_CHUNK)
    if not received:
        raise BenchmarkError("redis-server closed the connection")
    return received
