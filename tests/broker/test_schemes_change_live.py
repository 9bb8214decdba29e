"""Clients of the SDK walk and talk while the filter scheme of a real broker changes every few seconds: nothing lost, nothing doubled."""

import asyncio
import json
import urllib.request
from itertools import cycle
from pathlib import Path

import uvloop
from tests.broker.walking_crowd import CENTER, METRES, Verdict, crowd, judge
from tests.effort import campaign
from tests.served import ServedBroker, served

PEOPLE_PER_SQUARE_METRE = 250e-6
SCHEMES = ("EGRID(factor=10)", "STE", "RGRID", "RADIAL", "EGRID(factor=20, cover=circle)", "LPS", "EGRID(factor=4)")
"""Not GRID: it is meant to lose what happens beyond the border of a cell (BYPASS.KOM 4.2.4)."""


def settings(size: float) -> str:
    half = size / 2 / METRES + 0.002
    return f"""
[schemes.territory]
south = {CENTER.lat - half}
north = {CENTER.lat + half}
west = {CENTER.lon - 2 * half}
east = {CENTER.lon + 2 * half}
"""


def exchange(broker: ServedBroker, scheme: str) -> int:
    """Have everybody brought to that scheme; how many transitions there were."""
    order = json.dumps({"scheme": scheme}).encode()
    request = urllib.request.Request(  # noqa: S310 - an address of our own
        f"{broker.http}/transitions", order, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        return int(json.load(answer)["transitions"])


async def keep_changing(broker: ServedBroker, every: float) -> None:
    for scheme in cycle(SCHEMES):
        await asyncio.sleep(every)
        await asyncio.to_thread(exchange, broker, scheme)


def walk(folder: Path, people: int, seconds: float, every: float) -> Verdict:
    size = (people / PEOPLE_PER_SQUARE_METRE) ** 0.5

    async def story() -> Verdict:
        changing = asyncio.create_task(keep_changing(broker, every))
        walkers = await crowd(broker.url, people, size, seconds, talks_every=6.0, seed=people)
        changing.cancel()
        await asyncio.gather(changing, return_exceptions=True)
        # Each change takes a second or two with a thousand clients, more on a busy machine.
        assert exchange(broker, "RADIAL") >= seconds / every / 3, "schemes did change"
        return judge(walkers)

    with served(folder, settings(size)) as broker:
        verdict = uvloop.run(story())
    print(verdict)
    return verdict


def test_nothing_is_lost_or_doubled_while_schemes_change(tmp_path: Path) -> None:
    verdict = walk(tmp_path, people=60, seconds=22.0, every=2.0)
    assert verdict.expected > 100
    assert (verdict.lost, verdict.doubled) == (0, 0)


@campaign
def test_a_thousand_clients(tmp_path: Path) -> None:
    verdict = walk(tmp_path, people=1_000, seconds=90.0, every=4.0)
    assert verdict.expected > 20_000
    assert (verdict.lost, verdict.doubled) == (0, 0)
