"""Fences over moving clients: everybody reports, and one listener is told who enters, leaves and crosses which of them.

A lap is some steps of everybody; it ends when all reports are handled and all that is to be told has come.  What came is compared
afterwards with what the definition says, notice by notice, in order for each client.
"""

from __future__ import annotations

import struct
import time
from abc import abstractmethod
from contextlib import suppress
from typing import Any, Final

import msgspec
from mqtt5 import PublishPacket

from nearcast.benchmark.broker_crowd import Crowd
from nearcast.benchmark.broker_frames import Bytes, Numbers, mqtt_frames
from nearcast.benchmark.broker_laps import Lane, Lap, Watch
from nearcast.benchmark.broker_ours import Nearcast
from nearcast.benchmark.broker_packets import PUBACK, PUBLISH, SUBACK
from nearcast.benchmark.fences_script import RADIUS, FenceScript, Told, misplaced
from nearcast.benchmark.peers.server import Server, program
from nearcast.benchmark.report import Measurement
from nearcast.mqtt.stream import PacketReader

UPDATES: Final = "fence_updates_per_second"
NOTIFICATIONS: Final = "fence_notifications_per_second"
_POSITION: Final = struct.Struct(">Bii")
_DEGREE: Final = 10_000_000
_AT_ONCE: Final = 500
_UNDER_WAY: Final = 20_000
_PATIENCE: Final = 30.0
_SETTINGS: Final = "[limits]\nsubscriptions_per_client = 1000000\nsubscription_bytes_per_client = '1 GiB'\n[session]\noutput_bytes = '64 MiB'\n"


class NearcastWithFences(Nearcast):
    """With room for as many subscriptions of one client as there are fences."""

    def command(self) -> list[str]:
        settings = self.folder / "settings.toml"
        settings.write_text(_SETTINGS)
        return [*super().command(), "--config", str(settings)]


class Fences(Lane):
    metric = UPDATES

    def __init__(self, server: Server, script: FenceScript, steps: int) -> None:
        described = {
            "fences": len(script.fences),
            "radius": RADIUS,
            "clients": script.drivers,
            "steps": steps,
            "notifications_per_update": 0.0,
        }
        super().__init__(server, described)
        self._script, self._steps, self._step = script, steps, 1
        self._notices: list[float] = []

    def lap(self, seconds: float) -> Lap:  # noqa: ARG002 - exactly the same work for everybody
        steps = range(self._step, self._step + self._steps)
        self._step = steps.stop
        due: dict[int, list[Told]] = {}
        for step in steps:
            for driver, told in self._script.told(step):
                due.setdefault(driver, []).append(told)
        count = sum(map(len, due.values()))
        prepared = [self.prepare(step) for step in steps]
        watch = Watch(self.server)
        self.drive(prepared, count)
        lap = watch.lap(len(steps) * self._script.drivers)
        came = self.came()
        differing = sum(misplaced(came.get(driver, []), due.get(driver, [])) for driver in {*came, *due})
        self.parameters["notifications_per_update"] = round(count / lap.units, 2)
        self._notices.append(count / lap.units)
        return Lap(lap.units, lap.seconds, lap.server_cores, lap.generator_cores, differing)

    def notifications(self) -> Measurement:
        """The same laps, counted in notices."""
        updates = self.measurement()
        each = sum(self._notices[1:]) / max(1, len(self._notices) - 1)
        parameters = {name: value for name, value in updates.parameters.items() if name != "per_core_second"}
        return Measurement(updates.system, NOTIFICATIONS, "1/s", updates.value * each, parameters)

    @abstractmethod
    def prepare(self, step: int) -> list[bytes]: ...

    @abstractmethod
    def drive(self, prepared: list[list[bytes]], notices: int) -> None:
        """All of it; returns when all of it is handled, and has come."""

    @abstractmethod
    def came(self) -> dict[int, list[Told]]:
        """What has come since the last time, of each driver in its order."""


class FencesOverMqtt(Fences):
    def __init__(self, server: Server, crowd: Crowd, listener: Crowd, script: FenceScript, steps: int) -> None:
        super().__init__(server, script, steps)
        self._crowd, self._listener, self._chunks = crowd, listener, Chunks()
        listener.scan = self._chunks.scan
        (ear,) = listener.connect(["listener"])
        crowd.connect([f"driver-{number}" for number in range(script.drivers)])
        (self._probe,) = crowd.connect(["probe"])
        drivers = crowd.links[: script.drivers]
        yes = crowd.dialect.publish("$nearcast/observable", b"true", 1, 1)
        crowd.ask([(link, yes) for link in drivers], PUBACK)
        wanted = [
            listener.dialect.subscribe(["$nearcast/presence/+/+"], properties=_watched(number, fence.fixed_center()))
            for number, fence in enumerate(script.fences)
        ]
        for first in range(0, len(wanted), _AT_ONCE):
            listener.ask([(ear, packet) for packet in wanted[first : first + _AT_ONCE]], SUBACK)
        for link, packet in zip(drivers, self.prepare(0), strict=True):
            crowd.send(link, packet)
        crowd.settle(self._probe)
        while listener.poll(0.5):
            pass
        self._chunks.taken()  # who appears enters
        self._reader = PacketReader(version=5)

    def prepare(self, step: int) -> list[bytes]:
        script, publish = self._script, self._crowd.dialect.publish
        places = zip(script.lat[step].tolist(), script.lon[step].tolist(), strict=True)
        compact = (_POSITION.pack(1, round(lat * _DEGREE), round(lon * _DEGREE)) for lat, lon in places)
        return [publish("$nearcast/position", payload) for payload in compact]

    def drive(self, prepared: list[list[bytes]], notices: int) -> None:
        crowd, listener = self._crowd, self._listener
        target, each = int(listener.tally[PUBLISH]) + notices, notices / max(1, len(prepared))
        sent = float(listener.tally[PUBLISH])
        for packets in prepared:
            for number, (link, packet) in enumerate(zip(crowd.links, packets, strict=False)):
                crowd.send(link, packet)
                if number % 64 == 0:
                    listener.poll(0.0)
            sent += each
            while sent - listener.tally[PUBLISH] > _UNDER_WAY and listener.poll(0.2):
                pass
        listener.hope(PUBLISH, target, _PATIENCE)  # a ping is not answered before all of it is done
        crowd.settle(self._probe)

    def came(self) -> dict[int, list[Told]]:
        found: dict[int, list[Told]] = {}
        for packet in self._reader.packets(self._chunks.taken()):
            if isinstance(packet, PublishPacket):
                notice = msgspec.json.decode(packet.payload)
                driver = int(notice["who"].removeprefix("driver-"))
                found.setdefault(driver, []).append((notice["what"], notice["fence"]))
        return found


class Chunks:
    """Keeps what a listener gets, to be looked at when the clock stands still."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []

    def scan(self, data: Bytes, stop: int, payload: int, numbers: Numbers, identifiers: Numbers, tally: Numbers) -> int:
        consumed = int(mqtt_frames(data, stop, payload, numbers, identifiers, tally))
        self._chunks.append(data[:consumed].tobytes())
        return consumed

    def taken(self) -> bytes:
        chunks, self._chunks = self._chunks, []
        return b"".join(chunks)


def _watched(number: int, center: Any) -> list[tuple[str, str]]:
    area = f'{{"circle":{RADIUS:g},"at":[{center.lon!r},{center.lat!r}]}}'
    return [("nc-area", area), ("nc-name", str(number))]


class Tile38(Server):
    name = "tile38"

    @staticmethod
    def available() -> str | None:
        return None if program("tile38-server") else "tile38-server is not installed (it comes through Go)"

    def command(self) -> list[str]:
        return [program("tile38-server") or "", "-h", "127.0.0.1", "-p", str(self.port), "-d", str(self.folder)]

    @staticmethod
    def version() -> str:
        return "as installed"


class FencesOverTile38(Fences):
    """A channel for each fence, one connection that listens to all of them, one for each driver."""

    def __init__(self, server: Server, crowd: Crowd, listener: Crowd, script: FenceScript, steps: int) -> None:
        super().__init__(server, script, steps)
        self._crowd, self._listener = crowd, listener
        self._came: list[bytes] = []
        crowd.scan = listener.scan = self._scan
        ear = listener.open()
        drivers = [crowd.open() for _ in range(script.drivers)]
        for number, fence in enumerate(script.fences):
            at = fence.fixed_center()
            words = ("SETCHAN", str(number), "NEARBY", "drivers", "FENCE", "DETECT", "enter,exit,cross", "POINT")
            crowd.send(drivers[0], resp(*words, f"{at.lat:.7f}", f"{at.lon:.7f}", f"{RADIUS:g}"))
            if number % _AT_ONCE == 0:
                while crowd.poll(0.05):
                    pass
        listener.send(ear, resp("PSUBSCRIBE", "*"))
        self._run([self.prepare(0)])
        self.came()

    def _scan(
        self, data: Bytes, stop: int, payload: int, numbers: Numbers, identifiers: Numbers, tally: Numbers
    ) -> int:
        """Every message ends with a line; what is not over is kept for the next time."""
        del payload, numbers, identifiers
        chunk = data[:stop].tobytes()
        consumed = chunk.rfind(b"\r\n") + 2
        if consumed > 1:
            tally[PUBACK] += chunk.count(b"+OK\r\n", 0, consumed)
            self._came.append(chunk[:consumed])
            return consumed
        return 0

    def prepare(self, step: int) -> list[bytes]:
        script = self._script
        places = zip(script.lat[step].tolist(), script.lon[step].tolist(), strict=True)
        return [
            resp("SET", "drivers", str(number), "POINT", f"{lat:.7f}", f"{lon:.7f}")
            for number, (lat, lon) in enumerate(places)
        ]

    def _run(self, prepared: list[list[bytes]]) -> None:
        for packets in prepared:
            for link, packet in zip(self._crowd.links, packets, strict=True):
                self._crowd.send(link, packet)
            deadline = time.perf_counter() + _PATIENCE
            while self._crowd.poll(0.01) | self._listener.poll(0.0) and time.perf_counter() < deadline:
                pass

    def drive(self, prepared: list[list[bytes]], notices: int) -> None:
        del notices
        self._run(prepared)
        while self._listener.poll(0.5):
            pass

    def came(self) -> dict[int, list[Told]]:
        came, self._came = b"".join(self._came), []
        found: dict[int, list[Told]] = {}
        for line in came.split(b"\r\n"):
            if line.startswith(b"{"):
                with suppress(msgspec.DecodeError):
                    notice = msgspec.json.decode(line)
                    what = {"exit": "leave"}.get(notice["detect"], notice["detect"])
                    found.setdefault(int(notice["id"]), []).append((what, notice["hook"]))
        return found


def resp(*words: str) -> bytes:
    """A command of Redis' protocol, which Tile38 speaks."""
    parts = (f"${len(word)}\r\n{word}\r\n" for word in words)
    return f"*{len(words)}\r\n{''.join(parts)}".encode()
