"""What a whole broker tells of those who walk is what the definition says: with late, doubled and reordered reports, and through restarts."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mqtt5 import PublishPacket, QoS, SubscribePacket, TopicFilter
from tests.broker.in_memory import Client, InMemory
from tests.clocks import HandClock

from nearcast.broker.core import Broker
from nearcast.broker.observation.standing import WAYS as REMEMBERED
from nearcast.broker.settings import BrokerSettings
from nearcast.model.area import Area, Circle, Rectangle
from nearcast.model.area_text import area_text
from nearcast.model.fixes import Fix, FixOrder, FixRules, Treatment
from nearcast.model.geometry import Point
from nearcast.model.presence import Stay, Way, Whereabouts, happening, meeting, stays_on, still_there, visits_on
from nearcast.model.time import MICROSECONDS, Instant, to_text

CENTRE = Point(49.87, 8.65)
FENCES: dict[str, Area] = {
    "round": Circle(150, CENTRE),
    "square": Rectangle(200, 100, Point(49.871, 8.651)),
    "small": Circle(5, Point(49.8695, 8.6495)),
}
STAY = 30 * MICROSECONDS
NEAR = 120.0
WALKERS = ("w0", "w1", "w2")
OBSERVER = "ada"
RULES = FixRules()

Told = tuple[str, str, str, str]
"""Kind, what, fence, when."""


@dataclass
class Known:
    order: FixOrder = field(default_factory=FixOrder)
    fixed: Point | None = None
    at: Instant = 0
    observable: bool = False
    stays: dict[str, Stay] = field(default_factory=dict)
    ways: list[Way] = field(default_factory=list)
    """How it came where it is, as far as anybody knows who may be told."""

    def whereabouts(self) -> Whereabouts | None:
        return None if self.fixed is None else Whereabouts(self.fixed, tuple(self.ways[-REMEMBERED:]))


@dataclass
class Oracle:
    """The definition, and nothing else: every walker against every fence and everybody else."""

    names: tuple[str, ...] = WALKERS
    fences: dict[str, Area] = field(default_factory=lambda: FENCES)
    walkers: dict[str, Known] = field(init=False)
    told: dict[str, list[Told]] = field(init=False)

    def __post_init__(self) -> None:
        self.walkers = {name: Known() for name in self.names}
        self.told = {name: [] for name in self.names}

    def passes(self, clock: Instant) -> None:
        """Time has come that far."""
        due = [
            (stay.since + STAY, name, fence, stay)
            for name, known in self.walkers.items()
            for fence, stay in known.stays.items()
            if still_there(stay, STAY, clock)
        ]
        for at, name, fence, stay in sorted(due, key=lambda each: each[:3]):
            stay.told = True
            if self.walkers[name].observable:
                self.told[name].append(("stay", "stay", fence, to_text(at)))

    def report(self, name: str, fix: Fix, clock: Instant) -> None:
        known = self.walkers[name]
        if known.order.treat(fix, clock, RULES) is Treatment.PLAIN:
            at = clock if fix.said is None else max(min(fix.said, clock), known.at)
            way = Way(known.fixed, known.at, fix.point, at)
            self.moved(name, way)
            known.ways += [way] if known.fixed is not None else []
            known.fixed, known.at = fix.point, at

    def forget(self, name: str, clock: Instant) -> None:
        known = self.walkers[name]
        if known.fixed is not None:
            self.moved(name, Way(known.fixed, known.at, None, clock))
        known.fixed, known.order, known.ways = None, FixOrder(), []

    def moved(self, name: str, way: Way) -> None:
        known = self.walkers[name]
        if not known.observable:
            return
        found: list[tuple[float, int, str, Told]] = []
        for fence, area in self.fences.items():
            for passage in happening(area, way):
                told = (passage.kind.value, passage.kind.value, fence, to_text(way.at(passage.share)))
                found.append((passage.share, FIRST[passage.kind.value], name, told))
            stays, visit = stays_on(visits_on(area, way), way, STAY, known.stays.get(fence))
            found += [(share, FIRST["stay"], name, ("stay", "stay", fence, to_text(at))) for share, at in stays]
            known.stays.pop(fence, None)
            if visit is not None:
                known.stays[fence] = visit
        # The first is the one around whom the observer watches: all the others may come near it, and it them.
        others = [other for other in self.names[1:] if self.walkers[other].observable and self.walkers[other].fixed]
        anchor = self.walkers[self.names[0]]
        pairs = (
            [(other, self.walkers[other].whereabouts()) for other in others]
            if name == self.names[0]
            else [(name, anchor.whereabouts())]
        )
        for who, whereabouts in pairs:
            if whereabouts is not None and anchor.observable:
                for passage in meeting(NEAR, whereabouts, way, tuple(known.ways[-REMEMBERED:])):
                    told = ("near", passage.kind.value, "beside", to_text(way.at(passage.share)))
                    found.append((passage.share, FIRST[passage.kind.value], who, told))
        for _, _, who, told in sorted(found, key=lambda each: each[:2]):
            self.told[who].append(told)

    def agrees(self, name: str, observable: bool, clock: Instant) -> None:
        known = self.walkers[name]
        if observable and not known.observable and known.fixed is not None:
            known.stays = {fence: Stay(clock) for fence, area in self.fences.items() if area.covers(known.fixed)}
        elif not observable:
            known.stays = {}
        if observable != known.observable:
            known.ways = []
        known.observable = observable

    def falls(self) -> None:
        """The broker: of how somebody came where it is, it knows nothing afterwards."""
        for known in self.walkers.values():
            known.ways = []


FIRST = {"enter": 0, "stay": 1, "leave": 2, "cross": 3}


class Rig(InMemory):
    """A broker that falls and comes again; those whom it knows come again with it."""

    def __init__(
        self, folder: Path, clock: HandClock, names: tuple[str, ...] = WALKERS, fences: dict[str, Area] = FENCES
    ) -> None:
        self.clock, self.names, self.fences = clock, names, fences
        self.broker = Broker(BrokerSettings(data=folder), asyncio.get_running_loop(), clock)
        self.broker.load()
        self.clients: dict[str, Client] = {}

    async def everybody(self) -> None:
        for name in (*self.names, OBSERVER):
            await self.connect(name, clean_start=False, session_expiry_interval=600)

    def watch(self) -> None:
        wanted = [
            ("$nearcast/presence/+/+", [("nc-name", name), ("nc-area", area_text(area)), ("nc-stay", "30s")])
            for name, area in self.fences.items()
        ]
        beside = [("nc-name", "beside"), ("nc-area", f"{NEAR:g}"), ("nc-around", self.names[0])]
        for number, (topic, properties) in enumerate([*wanted, ("$nearcast/presence/near/+", beside)], 1):
            asked = TopicFilter(topic, max_qos=QoS.AT_LEAST_ONCE)
            self.clients[OBSERVER].say(SubscribePacket(number, [asked], user_properties=properties))


def told_by(packets: list[Any], names: tuple[str, ...] = WALKERS) -> dict[str, list[Told]]:
    told: dict[str, list[Told]] = {name: [] for name in names}
    for packet in packets:
        if isinstance(packet, PublishPacket):
            notice = json.loads(packet.payload)
            kind = packet.topic.split("/")[2]
            told[notice["who"]].append((kind, notice["what"], notice["fence"], notice["at"]))
    return told


places = st.builds(
    Point,
    st.sampled_from([49.868, 49.8695, 49.87, 49.8705, 49.871, 49.872]),
    st.sampled_from([8.647, 8.6495, 8.65, 8.651, 8.653]),
)
actions = st.lists(
    st.one_of(
        st.tuples(
            st.just("report"),
            st.sampled_from(WALKERS),
            places,
            st.sampled_from([None, 0, 0, -5, -20, 10]),
            st.sampled_from([None, 3.0, 500.0]),
            st.sampled_from([0, 1]),
        ),
        st.tuples(st.just("wait"), st.sampled_from([1, 10, 31])),
        st.tuples(st.just("agree"), st.sampled_from(WALKERS), st.booleans()),
        st.tuples(st.just("forget"), st.sampled_from(WALKERS)),
        st.tuples(st.just("restart")),
    ),
    min_size=5,
    max_size=40,
)


def payload(fix: Fix) -> bytes:
    properties = {} if fix.said is None else {"time": to_text(fix.said)}
    if fix.accuracy is not None:
        properties["accuracy"] = fix.accuracy  # type: ignore[assignment]
    point = {"type": "Point", "coordinates": [fix.point.lon, fix.point.lat]}
    return json.dumps({"type": "Feature", "geometry": point, "properties": properties}).encode()


async def scenario(script: list[tuple[Any, ...]]) -> None:
    folder, clock, oracle = Path(tempfile.mkdtemp()), HandClock(), Oracle()
    rig, packets, number = Rig(folder, clock), [], 1
    try:
        await rig.everybody()
        rig.watch()
        for name in WALKERS:
            rig.clients[name].say(PublishPacket("$nearcast/observable", b"true"))
            oracle.agrees(name, True, clock.now())
        await rig.quiet()
        for what, *how in script:
            now = clock.now()
            match what:
                case "report":
                    name, point, ago, accuracy, qos = how
                    fix = Fix(point, None if ago is None else now + ago * MICROSECONDS, accuracy)
                    number += 1
                    packet_id = number if qos else None
                    packet = PublishPacket("$nearcast/position", payload(fix), qos=QoS(qos), packet_id=packet_id)
                    rig.clients[name].say(packet)
                    oracle.report(name, fix, now)
                case "wait":
                    clock.time += how[0] * MICROSECONDS
                    rig.broker.observation.tick()
                    oracle.passes(clock.now())
                case "agree":
                    rig.clients[how[0]].say(PublishPacket("$nearcast/observable", b"true" if how[1] else b"false"))
                    oracle.agrees(how[0], how[1], now)
                case "forget":
                    rig.clients[how[0]].say(PublishPacket("$nearcast/position", b""))
                    oracle.forget(how[0], now)
                case "restart":
                    await rig.quiet()
                    packets += rig.clients[OBSERVER].got()
                    rig.broker.close()
                    oracle.falls()
                    rig = Rig(folder, clock)
                    await rig.everybody()
            if what != "report":
                await rig.quiet()
        await rig.quiet()
        packets += rig.clients[OBSERVER].got()
        assert told_by(packets) == oracle.told
    finally:
        rig.broker.close()
        shutil.rmtree(folder)


@given(actions)
@settings(deadline=None, max_examples=25)
def test_what_is_told_is_what_the_definition_says(script: list[tuple[Any, ...]]) -> None:
    asyncio.run(scenario(script))


A, B, C = Point(49.87, 8.65), Point(49.868, 8.647), Point(49.872, 8.653)


@pytest.mark.parametrize(
    "script",
    [
        [("report", "w1", A, 0, None, 1), ("report", "w1", B, None, None, 1), ("restart",), ("report", "w1", A, 0, None, 1)],
        [("report", "w1", A, 0, None, 1), ("report", "w1", B, 0, None, 1), ("restart",), ("report", "w1", A, 0, None, 1)],
        [("report", "w1", A, 0, None, 1), ("report", "w1", B, 0, 500.0, 1), ("restart",), ("report", "w1", A, 0, None, 1)],
        [("report", "w1", place, 0, None, 0) for place in (A, B, C, A, B)] + [("restart",), ("report", "w1", A, 0, None, 0)],
    ],
    ids=["one without a time between", "two places at one time", "the last one vague", "not acknowledged"],
)  # fmt: skip
def test_what_comes_again_is_recognised_after_a_restart(script: list[tuple[Any, ...]]) -> None:
    asyncio.run(scenario(script))
