"""A broker under attack: nothing gets through, honest clients go on, memory stays bounded.

The broker, the attacker (nice 10) and the honest clients are processes of their own on the loopback network; the attacker has addresses of its own.

What honest clients lose is measured in two ways.  By what an attempt costs the broker's loop (processor time of its thread): this does not depend on what else the machine does, and says
what is left of the loop at any rate of attempts.  And by the clock, in pairs without and with the attack, on a machine without other work: the attacker takes a part of the same two cores.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil
from tests.broker.access.minting import Issuer
from tests.broker.access.papers import Authority
from tests.broker.attack import by_http, by_mqtt
from tests.broker.attack.attacker import everything
from tests.broker.attack.attacking import Target
from tests.broker.attack.by_load import floods
from tests.broker.attack.honest import Honest
from tests.effort import campaign
from tests.served import ServedBroker, served
from tests.waiting import PATIENCE

from nearcast.broker.access.users import add_user
from nearcast.planning.signed import Signer

RSS_LIMIT = 128 * 1024 * 1024
"""Bytes by which the broker may grow under attack."""

RATE = 100.0
"""Attempts a second."""

DEAREST = 0.008
"""Seconds of the loop for an attempt on the average, many of which send megabytes: at the rate above most of a core is left on the slowest machine."""

PASSWORD = "a long one that nobody guesses"  # noqa: S105 - of a broker that lives for a minute
CONNECT_TIME = 3.0

SETTINGS = """
[listen]
websocket_port = "any"
tls_port = "any"

[tls]
client_ca = "{authority}"

[session]
connect_timeout = "{connect_time:g}s"

[access]
anonymous = "never"

[access.jwt]
keys = "issuer.pem"
algorithms = ["EdDSA"]
issuer = "https://login.example"
audience = "nearcast-test"

[[access.rule]]
users = ["honest"]
publish = ["honest/#"]
subscribe = ["honest/#"]

[[access.rule]]
users = ["mallory"]
publish = ["evil/#"]
subscribe = ["evil/#"]
within = {{ circle = 500, at = [8.65, 49.87] }}
reach_at_most = 100
history_at_most = "1h"

[[access.rule]]
users = ["job"]
hand_in = true

[[access.rule]]
users = ["root"]
publish = ["#"]
subscribe = ["#", "$SYS/#"]
may_address = true
observe = true
plans = true
query = true

[[schemes.planner]]
name = "spark"
key = "{planner}"

[limits]
loopback = true
connections_per_address = 200
publishes_per_second = 0
bytes_per_second = "100 GB"
connects_per_second_per_address = 20
request_time = "{connect_time:g}s"

[log]
level = "error"
"""


@dataclass
class Known:
    """To honest people."""

    tokens: dict[str, str]
    token: str
    plans: dict[str, Any]
    papers: dict[str, tuple[str, str]]
    own: tuple[str, str]

    def target(self, broker: ServedBroker) -> Target:
        ports = {name: broker.addresses[name][1] for name in ("mqtt", "mqtts", "websocket", "http")}
        return Target(ports, self.tokens, self.plans, self.papers, CONNECT_TIME)


def prepared(folder: Path) -> tuple[str, Known]:
    """Settings, and what is known of them."""
    issuer, stranger = Issuer(), Issuer()
    (folder / "issuer.pem").write_bytes(issuer.public)
    now = time.time()
    head, body, _ = issuer.token("root", exp=now + 3_600).split(".")
    tokens = {
        "token: expired": issuer.token("root", exp=now - 3_600),
        "token: foreign": stranger.token("root", exp=now + 3_600),
        "token: unsigned": f"{head}.{body}.",
        "token: other audience": issuer.token("root", exp=now + 3_600, aud="elsewhere"),
        "token: not yet": issuer.token("root", exp=now + 9_999, nbf=now + 3_600),
    }
    planner, forger = Signer("spark", b"s" * 32), Signer("spark", b"e" * 32)
    plans = {
        name: who.signed({"plan": name, "scheme": "EGRID(factor=9)"}, int(now * 1e6))
        for name, who in (("seen", planner), ("forged", forger))
    }
    authorities = []
    for name in ("ours", "foreign"):
        (folder / name).mkdir()
        authorities.append(Authority(folder / name))
    ours, foreign = authorities

    def papers(authority: Authority, name: str) -> tuple[str, str]:
        certificate, key = authority.papers(name)
        return str(certificate), str(key)

    data = folder / "data"
    data.mkdir()
    for user in ("honest", "mallory", "job"):
        add_user(data / "users", user, user)
    add_user(data / "users", "root", PASSWORD)
    settings = SETTINGS.format(authority=ours.certificate, connect_time=CONNECT_TIME, planner=planner.public())
    known = Known(
        tokens,
        issuer.token("root", exp=now + 3_600),
        plans,
        {"foreign": papers(foreign, "root"), "mallory": papers(ours, "mallory")},
        papers(ours, "root"),
    )
    return settings, known


class Watched:
    """What the process of a broker takes."""

    def __init__(self, broker: ServedBroker) -> None:
        assert broker._process is not None
        self._process = psutil.Process(broker._process.pid)
        self._rss = self._process.memory_info().rss
        self.grown = 0

    def loop(self) -> float:
        """Seconds of processor time of the thread of the loop, which everybody shares."""
        return next(sum(each[1:]) for each in self._process.threads() if each.id == self._process.pid)

    async def watch(self) -> None:
        while True:
            self.grown = max(self.grown, self._process.memory_info().rss - self._rss)
            await asyncio.sleep(0.1)


@dataclass
class Report:
    attempts: int = 0
    answers: dict[str, Counter[str]] = field(default_factory=dict)
    through: Counter[str] = field(default_factory=Counter)
    unanswered: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)

    def add(self, found: dict[str, Any]) -> None:
        self.attempts += found["attempts"]
        self.through.update(found["through"])
        self.unanswered.update(found["unanswered"])
        self.broken += found["broken"]
        for kind, answers in found["answers"].items():
            self.answers.setdefault(kind, Counter()).update(answers)


class Assault:
    """An attacker's process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def said(self) -> str:
        assert self._process.stdout is not None
        return (await asyncio.wait_for(self._process.stdout.readline(), 3 * PATIENCE)).decode().strip()

    async def end(self) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.stdout is not None
        said = (await asyncio.wait_for(self._process.stdout.read(), 3 * PATIENCE)).decode()
        await self._process.wait()
        found: dict[str, Any] = json.loads(said.splitlines()[-1])
        return found


@asynccontextmanager
async def attacking(target: Target, rate: float, report: Report) -> AsyncIterator[Assault]:
    """At that rate, or (0) a flood as fast as it goes."""
    root = Path(__file__).parents[3]
    process = await asyncio.create_subprocess_exec(
        *("nice", "-n", "10", sys.executable, "-m", "tests.broker.attack.attacker"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        limit=2**24,
        cwd=root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])},
    )
    try:
        assert process.stdin is not None
        process.stdin.write(json.dumps(asdict(target) | {"rate": rate}).encode() + b"\n")
        assault = Assault(process)
        assert await assault.said() == "attacking"
        yield assault
        report.add(await assault.end())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def check_controls(target: Target, known: Known) -> None:
    """Whoever may, can: what is refused later is refused because of who asks, or how."""
    for each in by_mqtt.controls(target, PASSWORD, known.token, known.own):
        outcome = await each.run(target)
        assert outcome.through, (each.kind, outcome)
    await by_http.check_controls(target, PASSWORD)


def check(report: Report, target: Target) -> None:
    """Nothing got through, and everything was really tried: refused for the reason for which it should be."""
    assert not report.broken, report.broken[:5]
    assert not report.through, report.through
    kinds = everything(target)
    for attack in kinds:
        answers = report.answers.get(attack.kind)
        assert answers, f"{attack.kind} was not tried, or never answered: {report.unanswered}"
        if attack.must_say is not None:
            assert attack.must_say in answers, (attack.kind, answers)
    unanswered = sum(report.unanswered.values())
    assert unanswered < 0.1 * report.attempts, report.unanswered


def check_broker(broker: ServedBroker) -> None:
    said = [line for line in broker.said if "Traceback" in line or "ERROR" in line]
    assert not said, said[:5]


async def short(broker: ServedBroker, known: Known) -> None:
    target, report, flooded = known.target(broker), Report(), Report()
    await check_controls(target, known)
    watched, honest = Watched(broker), Honest()
    watching = asyncio.create_task(watched.watch())
    await honest.open(broker.port)
    await honest.exchange(1_000)
    async with attacking(target, RATE, report) as assault:
        before, begun = watched.loop(), time.monotonic()
        attempts = int(await assault.said())
        cost, took = (watched.loop() - before) / attempts, time.monotonic() - begun
        await honest.exchange(2_000)
    async with attacking(target, 0.0, flooded) as assault:
        before, begun = watched.loop(), time.monotonic()
        opened = int(await assault.said())
        await honest.exchange(2_000)
        flood = (watched.loop() - before) / (time.monotonic() - begun)
    await honest.close()
    watching.cancel()
    status, body = await by_http.ask(
        target, by_http.Asked("GET", "/status"), by_http.basic("root", PASSWORD), ("127.0.0.60",)
    )
    assert status == 200
    admission = json.loads(body)["admission"]
    print(
        f"{cost * 1e3:.2f} ms of the loop for an attempt, of {attempts} in {took:.0f} s; grown by {watched.grown / 1e6:.0f} MB"
    )
    print(f"flood: {opened} at once, then {flooded.attempts}; {flood:.2f} of a core; {admission}")
    print(f"unanswered: {report.unanswered}, {flooded.unanswered}")
    check(report, target)
    assert not flooded.through
    assert not flooded.broken
    assert flooded.answers.keys() == {each.kind for each in floods()}
    assert admission["refused"] > 0, "a flood is more than is let in"
    assert watched.grown < RSS_LIMIT
    assert cost < DEAREST


def test_nothing_gets_through_while_honest_clients_go_on(tmp_path: Path) -> None:
    """The short form: all kinds of attack, what an attempt costs, and a flood at full speed."""
    settings, known = prepared(tmp_path)
    with served(tmp_path, settings) as broker:
        asyncio.run(short(broker, known))
        check_broker(broker)


@dataclass
class Measured:
    seconds: float
    loop: float
    """Seconds of the broker's loop."""


async def in_pairs(broker: ServedBroker, known: Known, pairs: int, messages: int) -> dict[str, float]:
    target, report = known.target(broker), Report()
    await check_controls(target, known)
    watched, honest = Watched(broker), Honest()
    watching = asyncio.create_task(watched.watch())
    await honest.open(broker.port)
    await honest.exchange(messages)

    async def measured() -> Measured:
        before, begun = watched.loop(), time.monotonic()
        await honest.exchange(messages)
        return Measured(time.monotonic() - begun, watched.loop() - before)

    found = []
    for number in range(pairs):
        calm = await measured()
        async with attacking(target, RATE, report) as assault:
            await honest.exchange(messages // 2)  # until the attack is under way
            found.append((calm, await measured()))
            if number == 0:
                await assault.said()  # else what is tried last would never be
    await honest.close()
    watching.cancel()
    check(report, target)
    assert watched.grown < RSS_LIMIT
    return {
        "by the clock": statistics.median(calm.seconds / under.seconds for calm, under in found),
        "by the loop's processor time": statistics.median(calm.loop / under.loop for calm, under in found),
        "messages per second": statistics.median(messages / calm.seconds for calm, _ in found),
        "grown": watched.grown,
        "attempts": report.attempts,
    }


@campaign
def test_what_honest_clients_lose_at_full_load(tmp_path: Path) -> None:
    """By the clock, on a machine without other work; docs/security.md says what was measured, and what it is beside other work."""
    settings, known = prepared(tmp_path)
    with served(tmp_path, settings) as broker:
        result = asyncio.run(in_pairs(broker, known, pairs=7, messages=20_000))
        check_broker(broker)
    print(json.dumps(result, indent=1))
    assert result["by the clock"] >= 0.9
