"""Backup under load, restored elsewhere, counted: nothing that was acknowledged before the backup is missing, nothing is there twice."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections import Counter
from pathlib import Path

from mqtt5 import QoS
from tests.broker.persistent_clients import DAY, Publisher, Subscriber
from tests.broker.talker import run, talking
from tests.broker.upkeep.commands import nearcast
from tests.served import ServedBroker, served
from tests.waiting import until

from nearcast.journal import EventEntry, Journal, JournalSettings

SETTINGS = """
[session]
queue_messages = 1_000_000
queue_bytes = "512 MiB"
"""
HERE, THERE = b"49.8728,8.6512", b"49.8828,8.6512"
NEARBY = "49.8730,8.6512"


async def _leave(broker: ServedBroker) -> None:
    """Sessions, subscriptions, positions and a retained message of clients that are away."""
    durable = {"clean_start": False, "session_expiry_interval": DAY}
    async with talking(broker, "archivist", **durable) as archivist:
        await archivist.subscribe("load/#", 2)
    for name, where in ("near", HERE), ("far", THERE):
        async with talking(broker, name, **durable) as walker:
            await walker.subscribe("traffic/#", 1, [("nc-area", "150")])
            await walker.tell("$nearcast/position", where)
    async with talking(broker, "announcer") as announcer:
        await announcer.tell("notice", b"retained", retain=True)


def test_all_that_was_acknowledged_before_the_backup_is_there_exactly_once(tmp_path: Path) -> None:
    seed = random.randrange(1_000_000)
    print("seed", seed)
    run(_story(tmp_path, random.Random(seed)))


async def _story(folder: Path, chance: random.Random) -> None:
    target = folder / "backups" / "first"
    with served(folder, SETTINGS) as broker:
        await _leave(broker)
        publishers = [
            Publisher(f"{name}{qos}", lambda: broker.addresses.get("mqtt"), random.Random(chance.random()), qos)
            for qos in (1, 2)
            for name in "ab"
        ]

        def acknowledged() -> int:
            for publisher in publishers:
                publisher.check()
            return sum(len(publisher.acknowledged) for publisher in publishers)

        try:
            await until(lambda: acknowledged() > 2_000)
            before = {publisher.topic: frozenset(publisher.acknowledged) for publisher in publishers}
            said = await nearcast("backup", target, "--data", broker.data)
            meanwhile = acknowledged() - sum(map(len, before.values()))
            await until(lambda: acknowledged() > 4_000 + meanwhile)
            assert all(publisher.connections == 1 for publisher in publishers), "somebody was disconnected"
        finally:
            for publisher in publishers:
                await publisher.end()
    assert meanwhile > 100, "the broker stood still during the backup"
    assert "journal up to offset" in said

    elsewhere = ServedBroker(folder / "backups", SETTINGS)
    await nearcast("restore", target, "--data", elsewhere.data)
    _check_journal(elsewhere.data, before)
    await asyncio.to_thread(elsewhere.start)
    try:
        await _count(elsewhere, before)
    finally:
        elsewhere.stop()
    assert not [line for line in elsewhere.said if "Traceback" in line or " ERROR " in line], elsewhere.said


def _check_journal(data: Path, before: dict[str, frozenset[int]]) -> None:
    journal = Journal.open(data / "journal", JournalSettings(), lambda call, *rest: call(*rest), lambda: 0)
    try:
        found = [(offset, record) for chunk in journal.read(0) for offset, record in chunk]
    finally:
        journal.close()
    assert [offset for offset, _ in found] == list(range(len(found)))
    events = Counter((each.topic, each.payload) for _, each in found if isinstance(each, EventEntry))
    assert max(events.values()) == 1
    missing = {(topic, b"%d" % number) for topic, numbers in before.items() for number in numbers} - events.keys()
    assert not missing
    with sqlite3.connect(data / "identities.db") as identities:
        known = {virtual for (virtual,) in identities.execute("SELECT virtual FROM identity")}
    identities.close()
    assert {each.publisher for _, each in found if isinstance(each, EventEntry)} <= known


async def _count(broker: ServedBroker, before: dict[str, frozenset[int]]) -> None:
    archivist = Subscriber("archivist", lambda: broker.addresses.get("mqtt"), random.Random(1))
    archivist.known = archivist.subscribed = True  # a session that the broker must still have
    try:
        async with talking(broker, "herald") as herald:
            await herald.tell("load/end", b"0")
            await herald.tell("traffic/jam", b"slow", [("nc-place", NEARBY)])
        await until(lambda: "load/end" in archivist.got, archivist._task)
    finally:
        await archivist.end()
    for topic, numbers in before.items():
        counts = Counter(archivist.got[topic])
        assert numbers <= counts.keys(), f"{topic}: missing {sorted(numbers - counts.keys())[:10]}"
        assert max(counts.values()) == 1, f"{topic}: doubled"
        assert list(counts) == sorted(counts), f"{topic}: out of order"
    durable = {"clean_start": False, "session_expiry_interval": DAY}
    async with talking(broker, "near", **durable) as near:
        heard = await near.heard()
        assert (heard.topic, heard.payload, heard.qos) == ("traffic/jam", b"slow", QoS.AT_LEAST_ONCE)
    async with talking(broker, "far", **durable) as far:
        await far.nothing()
    async with talking(broker, "newcomer") as newcomer:
        await newcomer.subscribe("notice")
        assert (await newcomer.heard()).payload == b"retained"
