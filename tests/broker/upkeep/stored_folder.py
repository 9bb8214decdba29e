"""A data folder as a broker of an earlier format left it, killed in the middle of its work: how it was made, and what is in it.

``format_1.tar.xz`` was made by the last commit that wrote format 1 (9ef683c); one for a later format is made the same way, before the
number rises::

    python -m tests.broker.upkeep.stored_folder FILE.tar.xz
"""

from __future__ import annotations

import asyncio
import sys
import tarfile
import tempfile
from pathlib import Path

from mqtt5 import PubAckPacket, QoS
from tests.broker.talker import talking
from tests.served import served

STORED = Path(__file__).with_name("format_1.tar.xz")
DURABLE = {"clean_start": False, "session_expiry_interval": 0xFFFFFFFF}
WAITING = 40
"""Messages of quality 1 that wait for the client ``away``."""

HERE, THERE, NEARBY = b"49.8728,8.6512", b"49.8828,8.6512", "49.8730,8.6512"
_LEFT_OUT = ("reserve", "lock", "journal.sqlite-shm", "identities.db-shm")
SETTINGS = """
[session]
max_expiry = "36500d"
"""


async def _live(folder: Path) -> None:
    with served(folder, SETTINGS) as broker:
        async with talking(broker, "away", **DURABLE) as away:
            await away.subscribe("news/#", 1)
        for name, where in ("near", HERE), ("far", THERE):
            async with talking(broker, name, **DURABLE) as walker:
                await walker.subscribe("traffic/#", 1, [("nc-area", "150")])
                await walker.tell("$nearcast/position", where)
                await walker.tell("$nearcast/context/trip", b'{"transport": "/foot"}')
        async with talking(broker, "teller") as teller:
            for number in range(WAITING):
                await teller.tell(f"news/{number}", b"number %d" % number, [("severity", "3")])
            await teller.tell("notice", b"retained", retain=True)
            await teller.tell("traffic/jam", b"slow", [("nc-place", NEARBY)])
        await asyncio.to_thread(broker.kill)


def make(target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_live(Path(folder)))
        with tarfile.open(target, "w:xz") as archive:
            for path in sorted((Path(folder) / "data").rglob("*")):
                if path.is_file() and path.name not in _LEFT_OUT:
                    archive.add(path, f"data/{path.relative_to(Path(folder) / 'data')}", filter=_anonymous)


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def unpacked(folder: Path) -> Path:
    """A fresh copy of the data folder."""
    with tarfile.open(STORED) as archive:
        archive.extractall(folder, filter="data")
    return folder / "data"


async def check(broker: object) -> None:
    """All that it promised before it fell."""
    from tests.served import ServedBroker

    assert isinstance(broker, ServedBroker)
    async with talking(broker, "away", **DURABLE) as away:
        numbers: list[int] = []
        while len(numbers) < WAITING:
            heard = await away.heard()
            numbers.append(int(heard.topic.removeprefix("news/")))
            assert heard.payload == b"number %d" % numbers[-1]
            assert ("severity", "3") in heard.user_properties
            away.send(PubAckPacket(heard.packet_id or 0))
        assert numbers == list(range(WAITING))
        await away.nothing()
    async with talking(broker, "near", **DURABLE) as near:
        heard = await near.heard()
        assert (heard.payload, heard.qos) == (b"slow", QoS.AT_LEAST_ONCE)
        near.send(PubAckPacket(heard.packet_id or 0))
        async with talking(broker, "teller") as teller:
            await teller.tell("traffic/jam", b"later", [("nc-place", NEARBY)])
            await teller.tell("news/later", b"still subscribed")
        assert (await near.heard()).payload == b"later"
    async with talking(broker, "far", **DURABLE) as far:
        await far.nothing()
    async with talking(broker, "away", **DURABLE) as away:
        assert (await away.heard()).payload == b"still subscribed"
    async with talking(broker, "newcomer") as newcomer:
        await newcomer.subscribe("notice")
        assert (await newcomer.heard()).payload == b"retained"


if __name__ == "__main__":
    make(Path(sys.argv[1]))
