"""A broker and the definition of delivery that are told the same; what clients get is compared."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Final

from hypothesis import strategies as st
from tests.broker.temporal_rig import Rig, Wire, told
from tests.clocks import HandClock

from nearcast.model.delivery import delivery
from nearcast.model.geometry import Point
from nearcast.model.history import History
from nearcast.model.time import MICROSECONDS
from nearcast.mqtt import names
from nearcast.mqtt.positions import point_text
from nearcast.mqtt.requests import subscription_id

CLIENTS: Final = ("ada", "bob", "cyd")
POINTS: Final = tuple(Point(49.87 + 0.001 * north, 8.65 + 0.001 * east) for north in range(3) for east in range(2))
"""A hundred metres apart, about."""

STEP: Final = 1_000
_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - hundreds of brokers: their disk is not what is tested
REACHES: Final = tuple(
    f'{{"circle": {radius}, "at": [{point.lon}, {point.lat}]}}' for radius in (60, 150, 250) for point in POINTS[:3]
)
ADDRESSING: Final = (
    "role = 'driver'",
    "role = 'guest' OR speed > 40",
    "role IS NULL",
    "speed <= 40",
    "role <> 'guest'",
)
CONTEXTS: Final[tuple[dict[str, Any], ...]] = ({"role": "driver", "speed": 30}, {"role": "guest"}, {"speed": 50}, {})

clients: Final = st.sampled_from(CLIENTS)
points: Final = st.sampled_from(POINTS)


def often(some: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), some)


presence: Final = (
    st.tuples(st.just("move"), clients, points),
    st.tuples(st.just("move"), clients, st.one_of(points, st.none())),
    st.tuples(st.just("register"), clients, st.sampled_from(("car", "home")), st.sampled_from((*CONTEXTS, None))),
)
subscribing: Final = st.tuples(
    st.just("subscribe"),
    clients,
    st.fixed_dictionaries(
        {
            "topic_filter": st.sampled_from(("#", "#", "a/#", "+/b")),
            "where": often(st.sampled_from(("severity >= 3", "kind IS NULL", "NOT severity = 1"))),
            "area": often(st.sampled_from(("120", "250", '{"circle": 150, "at": [8.65, 49.87]}'))),
            "since": st.sampled_from((None, "..", "..", "-1s", "-5s", "now")),
            "until": often(st.sampled_from(("+1s", "+20s"))),
            "no_local": st.booleans(),
        }
    ),
)


def publishing(**more: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(
        st.just("publish"),
        clients,
        st.fixed_dictionaries(
            {
                "topic": st.sampled_from(("a/b", "a/b", "b/b", "c")),
                "place": often(points.map(point_text)),
                "reach": st.one_of(st.none(), st.none(), st.sampled_from(REACHES)),
                "to": st.one_of(st.none(), st.none(), st.sampled_from(ADDRESSING)),
                "severity_": often(st.sampled_from(("1", "3", "5"))),
                **more,
            }
        ),
    )


class Twins:
    def __init__(self, folder: Path, *, calm: bool) -> None:
        self.rig = Rig(folder, HandClock())
        self.history = History()
        self._calm = calm
        self._wires: list[tuple[str, Wire]] = []
        self._subscriptions: list[tuple[str, str, str]] = []
        """Client, filter and name of each; its identifier on the wire is its number here, from one on."""

    async def run(self, script: list[tuple[Any, ...]]) -> None:
        try:
            for client in CLIENTS:
                await self._connect(client)
            for name, *arguments in script:
                self.rig.advance(STEP)
                await getattr(self, name)(*arguments)
                if self._calm:
                    await self.rig.settle()
            await self.rig.settle()
            self._compare()
        finally:
            await self.rig.close()

    async def _connect(self, client: str) -> None:
        self.history.connected(client, self.rig.clock.time)
        self._wires.append((client, await self.rig.connect(client)))

    async def move(self, client: str, point: Point | None) -> None:
        self.rig.move(client, point)
        self.history.moved(client, self.rig.clock.time, point)

    async def register(self, client: str, name: str, attributes: dict[str, Any] | None) -> None:
        if attributes is None:
            if name not in self.rig.broker.presence.contexts(client):
                return
            self.history.deregistered(client, self.rig.clock.time, name)
        else:
            self.history.registered(client, self.rig.clock.time, name, attributes)
        self.rig.register(client, name, attributes)

    async def subscribe(self, client: str, said: dict[str, Any]) -> None:
        said = {name: value for name, value in said.items() if value is not None}
        topic_filter = said.pop("topic_filter")
        number = len(self._subscriptions) + 1
        self._subscriptions.append((client, topic_filter, f"s{number}"))
        self.rig.subscribe(client, topic_filter, number=number, name=f"s{number}", **said)
        held = self.rig.session(client).held[subscription_id(topic_filter, f"s{number}")]
        self.history.subscribed(client, self.rig.clock.time, held.subscription)

    async def unsubscribe(self, number: int) -> None:
        if not self._subscriptions:
            return
        client, topic_filter, name = self._subscriptions[number % len(self._subscriptions)]
        held_id = subscription_id(topic_filter, name)
        await self.rig.settle()  # what it was given until then must have arrived
        if held_id in self.rig.session(client).held:
            self.history.unsubscribed(client, self.rig.clock.time, held_id)
            await self.rig.unsubscribe(client, topic_filter, name)

    async def publish(self, client: str, said: dict[str, Any]) -> None:
        said = {name: value for name, value in said.items() if value is not None}
        self.rig.publish(client, id=f"e{len(self.rig.events)}", **said)
        self.history.published(self.rig.events[-1])

    async def unpublish(self, number: int) -> None:
        if not self.rig.events:
            return
        event = self.rig.events[number % len(self.rig.events)]
        assert event.publisher is not None
        await self.rig.say(event.publisher, "$nearcast/unpublish", event.id.encode())
        self.history.unpublished(event.id, self.rig.clock.time)

    async def leave(self, client: str) -> None:
        """The session ends, and the client comes back as if it were new."""
        await self.rig.settle()
        self.rig.disconnect(client)
        self.history.disconnected(client, self.rig.clock.time)
        self.rig.advance(STEP)
        await self._connect(client)

    async def turns(self, number: int) -> None:
        for _ in range(number):
            await asyncio.sleep(0)

    async def wait(self, milliseconds: int) -> None:
        self.rig.advance(milliseconds * 1_000)

    async def accept(self, client: str, accepts: bool) -> None:
        self.rig.broker.presence.accepts(self.rig.session(client), accepts)
        self.history.accepts_addressed(client, self.rig.clock.time, accepts)

    def _compare(self) -> None:
        got: Counter[tuple[str, str, int]] = Counter()
        copies: Counter[tuple[str, str]] = Counter()
        for client, wire in self._wires:
            for packet in wire.got:
                name = told(packet, names.ID) or ""
                copies[client, name] += 1
                got.update((client, name, number) for number in packet.subscription_ids or [0])
        for event in self.rig.events:
            for client in CLIENTS:
                expected = delivery(self.history, event, client, self.rig.clock.time)
                wanted = set() if expected is None else {self._number(each) for each in expected.subscriptions} or {0}
                have = {number for who, what, number in got if (who, what) == (client, event.id)}
                if event.when is not None:
                    # One copy ever, which names those that asked when it was sent.
                    assert bool(have) == bool(wanted), (client, event, wanted, have)
                    assert have <= wanted, (client, event, wanted, have)
                    assert copies[client, event.id] <= 1, (client, event)
                else:
                    assert have == wanted, (client, event, wanted, have)
        assert all(count == 1 for count in got.values()), got

    @staticmethod
    def _number(held_id: str) -> int:
        return int(held_id.rpartition("\0s")[2])


async def agree(script: list[tuple[Any, ...]], *, calm: bool) -> None:
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
        await Twins(Path(folder), calm=calm).run(script)


__all__ = [
    "CLIENTS",
    "MICROSECONDS",
    "Twins",
    "agree",
    "clients",
    "often",
    "points",
    "presence",
    "publishing",
    "subscribing",
]
