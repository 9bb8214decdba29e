"""Useful location deliveries with Redis: positions in a geo set, a channel for each receiver.

Every client has one connection (RESP3, on which it may be subscribed and send commands), as a client of any other
server here: over it, it reports its own position (GEOADD), says its own events and hears its channel.  Two forms.  Events
go to a channel that a service beside Redis listens to, which asks who is near (GEOSEARCH) and publishes to each of
them; that is what people build.  Or each client calls a script inside Redis that does both at once, which saves the way to
the service and back; scripts are for those who trust their clients with them.

The service is as quick as one can be that asks Redis: it takes all events that have come, asks all its questions in
one write, and while Redis works on them it hands in the next; its messages and its next questions share a write.  It runs with
the load generator, not on the core of Redis, and its time is counted with the generator's: the figure is about Redis.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from typing import Final

from nearcast.benchmark.broker_crowd import Crowd
from nearcast.benchmark.broker_frames import TOTAL
from nearcast.benchmark.broker_packets import PUBACK, PUBLISH, SUBACK, numbered
from nearcast.benchmark.broker_redis_service import EVENTS, Service, command, event_text, greet
from nearcast.benchmark.broker_script import Script
from nearcast.benchmark.broker_useful import BETWEEN_POLLS, PAYLOAD, Useful
from nearcast.benchmark.peers.server import Server
from nearcast.benchmark.workload import RADIUS

_PATIENCE: Final = 3.0
_SCRIPT: Final = f"""
local near = redis.call('GEOSEARCH', 'people', 'FROMLONLAT', ARGV[1], ARGV[2], 'BYRADIUS', '{RADIUS:g}', 'm')
for _, who in ipairs(near) do redis.call('PUBLISH', who, ARGV[3]) end
return #near
"""


class WithRedis(Useful):
    """Client ``i`` has link ``i``."""

    def __init__(self, server: Server, crowd: Crowd, script: Script, steps: int, form: str) -> None:
        super().__init__(server, script, steps, {"subscriptions": "a channel for each client", "form": form})
        self._crowd = crowd
        self._names = [f"c{number:06d}" for number in range(script.clients)]
        for _ in self._names:
            greet(crowd.open().socket)
        channels = (command(b"SUBSCRIBE", name.encode()) for name in self._names)
        crowd.ask(zip(crowd.links, channels, strict=True), SUBACK)
        crowd.arrived = self.arrived
        self.move(self.prepare_moves(0))

    def prepare_moves(self, step: int) -> list[bytes]:
        places = zip(self._script.lon[step].tolist(), self._script.lat[step].tolist(), self._names, strict=True)
        return [command(b"GEOADD", b"people", b"%.7f" % lon, b"%.7f" % lat, name.encode()) for lon, lat, name in places]

    def move(self, prepared: list[bytes]) -> None:
        self._crowd.ask(zip(self._crowd.links, prepared, strict=True), PUBACK)

    def prepare_publishes(self, step: int) -> list[bytes]:
        places = zip(self._script.lon[step].tolist(), self._script.lat[step].tolist(), strict=True)
        first = step * self._script.clients
        return [self.saying(lon, lat, numbered(first + client, PAYLOAD)) for client, (lon, lat) in enumerate(places)]

    def publish(self, prepared: list[bytes]) -> None:
        crowd, before, meant = self._crowd, self._delivered, self.meant()
        answers = int(crowd.tally[PUBACK]) + len(prepared)
        for number, (link, request) in enumerate(zip(crowd.links, prepared, strict=True)):
            crowd.send(link, request)
            if number % BETWEEN_POLLS == 0:
                crowd.poll(0.0)
                self.serve(0.0)
        crowd.wait(PUBACK, answers)
        self.serve_all(len(prepared))
        target = before + self.meant() - meant
        crowd.hope(PUBLISH, int(crowd.tally[PUBLISH]) + target - self._delivered, _PATIENCE)
        self._delivered = max(self._delivered, target)

    @abstractmethod
    def saying(self, lon: float, lat: float, payload: bytes) -> bytes:
        """How a client says its event."""

    @abstractmethod
    def meant(self) -> int:
        """How many deliveries there must be of all that was said so far."""

    def serve(self, seconds: float) -> None:
        """What a service beside Redis does, if there is one, waiting up to that long for something to do."""

    def serve_all(self, events: int) -> None:
        """The same until so many events more are with Redis again."""

    def close(self) -> None:
        """Ends what only this form needs."""


class WithService(WithRedis):
    def __init__(self, server: Server, crowd: Crowd, script: Script, steps: int) -> None:
        super().__init__(server, crowd, script, steps, "service beside Redis")
        self._service = Service(server.port, self._names)

    def saying(self, lon: float, lat: float, payload: bytes) -> bytes:
        return command(b"PUBLISH", EVENTS, event_text(lon, lat, payload))

    def meant(self) -> int:
        return self._service.published

    def serve(self, seconds: float) -> None:
        self._service.serve(seconds)

    def serve_all(self, events: int) -> None:
        service = self._service
        self._target += events
        while service.handled < self._target:
            self._crowd.poll(0.0)
            service.serve(0.001)

    _target = 0

    def close(self) -> None:
        self._service.close()


class WithScript(WithRedis):
    def __init__(self, server: Server, crowd: Crowd, script: Script, steps: int) -> None:
        super().__init__(server, crowd, script, steps, "script inside Redis")
        self._digest = hashlib.sha1(_SCRIPT.encode(), usedforsecurity=False).hexdigest().encode()
        # The first client leaves the script there for all; EVAL at a place where nobody is does that.
        crowd.ask([(crowd.links[0], command(b"EVAL", _SCRIPT.encode(), b"0", b"0", b"0", b""))], PUBACK)

    def saying(self, lon: float, lat: float, payload: bytes) -> bytes:
        return command(b"EVALSHA", self._digest, b"0", b"%.7f" % lon, b"%.7f" % lat, payload)

    def meant(self) -> int:
        return int(self._crowd.tally[TOTAL])
