"""One process: somebody in the stand, a member of the crowd over UDP, who does what it reads, line by line."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from typing import Final

import msgspec

from nearcast.cli.demo.told import answer, run_told
from nearcast.client.client import connect
from nearcast.client.crowd_member import CrowdMember, in_crowd
from nearcast.client.crowds import MqttArchive
from nearcast.crowdstore.bridge import Bridge
from nearcast.crowdstore.choosing import Rule
from nearcast.crowdstore.objects import Metadata, ObjectKey, digest_of
from nearcast.crowdstore.registry import in_cells
from nearcast.errors import NearcastError
from nearcast.model.geometry import Point
from nearcast.runtime.host import Component
from nearcast.runtime.live import LiveRuntime
from nearcast.runtime.live.ranged import RangedNetwork
from nearcast.runtime.ports import Fix
from nearcast.runtime.simulation.plane import Plane
from nearcast.transition.specification import MechanismSpec

HOME: Final = Point(38.7527, -9.1848)
CELL: Final = 40.0
RANGE: Final = 113.2
"""Metres: as far as from anywhere in a cell to anywhere in the next one, diagonally (THYME 6.2)."""

LOCAL: Final = MechanismSpec.of("PL/SG", timeout=1.0, join_timeout=0.5, route_period=1.0, route_settling=0.3)
VENUE: Final = "stadium"
WANTED: Final = "goal"
"""What the bridge takes to the broker."""


class FanSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a process is told when it is started."""

    name: str
    east: float
    north: float
    """Metres."""

    columns: int
    rows: int
    """Cells of the stand."""

    many: float
    """With more people than that, the crowd is large."""

    address: str
    group: str
    group_port: int
    broker: str = ""
    """Its address, for who has a bridge to it."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A line that it reads; each is answered by an ``Account``."""

    do: str
    """``publish``, ``unpublish``, ``subscribe``, ``download``, ``initiate``, ``count`` or ``end``."""

    name: str = ""
    owner: str = ""
    tags: tuple[str, ...] = ()
    size: int = 0
    formula: str = ""


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """A line that it writes: when it is there, and after each order."""

    name: str
    mechanism: str = ""
    counted: float = 0.0
    """How many people there are, as far as it can tell."""

    published: int = 0
    held: int = 0
    """Copies of others' objects."""

    told: tuple[str, ...] = ()
    """Of these objects, ``owner/name``, each as often as it was told."""

    digest: str = ""
    """Of the object that was published or downloaded last."""

    problem: str = ""
    """Why the order failed."""


def cells(columns: int, rows: int) -> MechanismSpec:
    """The stand in cells, with times for a story of less than a minute."""
    plane = Plane(HOME)
    low, high = plane.to_point(0.0, 0.0), plane.to_point(columns * CELL - 0.1, rows * CELL - 0.1)
    return in_cells(low, high, side=CELL, beacon=0.5, settle=0.5, listen=0.5, timeout=1.0, period=1.0)


def content_of(name: str, size: int) -> bytes:
    return (name.encode() * (size // len(name) + 1))[:size]


class Fan:
    def __init__(self, settings: FanSettings, member: CrowdMember) -> None:
        self._name: Final = settings.name
        self._large: Final = cells(settings.columns, settings.rows)
        self._member: Final = member
        self._told: Final[list[Metadata]] = []
        self._digest = ""

    async def obey(self, order: Order) -> Account:
        try:
            await self._obey(order)
        except NearcastError as problem:
            return self.account(str(problem))
        return self.account()

    async def _obey(self, order: Order) -> None:
        member = self._member
        match order.do:
            case "publish":
                content = content_of(order.name, order.size)
                self._digest = digest_of(content).hex()
                await member.publish(order.name, content, order.tags)
            case "unpublish":
                await member.unpublish(order.name)
            case "subscribe":
                member.store.subscribe(order.formula, self._told.append)
            case "initiate":
                member.initiate(self._large)
            case "download":
                wanted = ObjectKey(order.owner, order.name)
                (metadata,) = {metadata for metadata in self._told if metadata.key == wanted}
                self._digest = digest_of(await member.download(metadata)).hex()

    def account(self, problem: str = "") -> Account:
        statistics = self._member.statistics()
        return Account(
            name=self._name,
            mechanism=statistics.mechanism.partition("(")[0],
            counted=self._member.choosing.statistics().size or 0.0,
            published=statistics.published,
            held=statistics.held,
            told=tuple(str(metadata.key) for metadata in self._told),
            digest=self._digest,
            problem=problem,
        )


async def attend(settings: FanSettings) -> None:
    """Until there are no more orders."""
    runtime = LiveRuntime()
    place = Plane(HOME).to_point(settings.east, settings.north)

    def position() -> Fix:
        return Fix(runtime.clock.now(), place, 0.0, 0.0, None)

    network = RangedNetwork(
        address=settings.address,
        group=settings.group,
        group_port=settings.group_port,
        radius=RANGE,
        position=position,
    )
    # Who comes and goes is no matter here: the story has people do it.
    rule = Rule(
        small=LOCAL, large=cells(settings.columns, settings.rows), grown=settings.many, shrunk=1.0, restless=1e9, calm=1e9,
        rounds=1, period=2.0, beat=0.3, settling=2.0,
    )  # fmt: skip
    async with AsyncExitStack() as stack:
        further: list[Component] = []
        if settings.broker:
            client = await stack.enter_async_context(connect(settings.broker, client_id=f"bridge of {settings.name}"))
            archive = MqttArchive(client, VENUE, period=0.5)
            stack.push_async_callback(archive.done)
            further = [archive, Bridge(archive, WANTED, settling=3.0)]
        member = await stack.enter_async_context(
            in_crowd(
                settings.name, LOCAL, network=network, place=position, rule=rule, notices=True, further=further,
                runtime=runtime,
            )
        )  # fmt: skip
        await _take_orders(Fan(settings, member))


async def _take_orders(fan: Fan) -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    try:
        answer(fan.account())
        # The end of orders is an order as well: whoever gave them has gone.
        while line := await reader.readline():
            order = msgspec.json.decode(line, type=Order)
            if order.do == "end":
                break
            answer(await fan.obey(order))
        answer(fan.account())
    except BrokenPipeError:
        pass  # nobody reads the answers any more


if __name__ == "__main__":
    sys.exit(run_told(attend, FanSettings))
