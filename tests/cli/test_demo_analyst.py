"""The demo's pipeline as the demo sees it, without Spark: what it prints, how it ends, and what its answers are taken for."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from nearcast.cli.demo import analyst as analysts
from nearcast.cli.demo import child
from nearcast.cli.demo.analyst import Analyst, PastAnswer
from nearcast.cli.demo.broker import DemoBroker
from nearcast.cli.demo.places import MARKET
from nearcast.cli.demo.play import Play
from nearcast.cli.demo.stories import Stage, asked_of_spark
from nearcast.cli.demo.streets import Streets
from nearcast.cli.demo.witness import Witness
from nearcast.errors import JobFailed

NOISY = """
import os
from nearcast.cli.demo import analysis
from nearcast.errors import SetupError

def session(_folder):
    os.write(1, b"WARNING: from the JVM\\n")
    print("and from Python", flush=True)
    raise SetupError("no Java")

analysis._session = session
analysis.main()
"""

TALKATIVE = """
import json, sys
sys.stderr.write("x" * 1_000_000 + "\\n" + "y" * 200_000 + "\\nlast words\\n")
sys.stderr.flush()
print(json.dumps({"ready": True}), flush=True)
sys.stdin.readline()
print(json.dumps({"error": "no"}), flush=True)
"""

STUBBORN = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sys.stderr.close()
import os
os.close(2)
print("{}", flush=True)
time.sleep(600)
"""


def program(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """What the analyst starts."""
    (folder / "stand_in.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setattr(analysts, "_PROGRAM", "stand_in")


def test_what_the_jvm_prints_is_no_answer(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", NOISY, str(tmp_path)], capture_output=True, check=True, text=True)
    assert json.loads(done.stdout) == {"error": "no Java"}
    assert done.stderr.splitlines() == ["WARNING: from the JVM", "and from Python"]


def test_lines_of_any_length_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, monkeypatch, TALKATIVE)

    async def story() -> None:
        async with Analyst() as analyst:
            await analyst.start("broker", tmp_path)
            with pytest.raises(JobFailed, match="no"):
                await analyst._answer(10.0)
        assert [len(line) for line in analyst._child.log] == [child._LONGEST, child._LONGEST, len("last words")]

    asyncio.run(story())


def test_a_process_that_does_not_want_to_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, monkeypatch, STUBBORN)
    monkeypatch.setattr(child, "_ENDING", 0.3)

    async def story() -> None:
        async with Analyst() as analyst:
            await analyst._answer(20.0)
            process = analyst._child._process
            began = time.monotonic()
        assert time.monotonic() - began < 10.0
        assert process.returncode == -9

    asyncio.run(story())


WITHOUT_JAVA = """
import json
print(json.dumps({"error": "there is no Java"}), flush=True)
"""


@pytest.mark.parametrize("lenient", [True, False])
def test_without_java_whoever_watches_sees_the_city_all_the_same(
    lenient: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, streets: Streets
) -> None:
    program(tmp_path, monkeypatch, WITHOUT_JAVA)
    broker = DemoBroker(20)
    broker._ports.update(mqtt=1, http=2)
    broker._child._folder = cast("Any", SimpleNamespace(name=str(tmp_path)))

    async def story() -> None:
        async with Analyst() as analyst:
            play = Play(broker, streets, 20, 5.0, analyst, lenient=lenient)
            assert play.pipeline is not None
            if not lenient:
                with pytest.raises(JobFailed, match=r"there is no Java.*--no-spark"):
                    await play._observe(play.pipeline)
                return
            await play._observe(play.pipeline)
            assert play.pipeline is None
            assert "there is no Java" in play.news[-1]

    asyncio.run(story())


class You:
    """A client that gets what it is told."""

    def __init__(self, ids: list[str]) -> None:
        self._ids = iter(ids)

    async def update(self, **_where: float) -> None: ...

    @asynccontextmanager
    async def subscribe(self, *_what: Any, **_more: Any) -> AsyncIterator[You]:
        yield self

    async def next(self, _patience: float) -> Any:
        return SimpleNamespace(id=next(self._ids))


@pytest.mark.parametrize(("ids", "holds"), [(["a", "just now"], True), (["a", "b"], False)])
def test_what_was_said_in_the_story_before_is_no_part_of_the_answer(ids: list[str], holds: bool) -> None:
    witness = Witness()
    east, north = MARKET.metres
    witness.publishes("a", 1, east, north)

    @asynccontextmanager
    async def client() -> AsyncIterator[You]:
        yield You(ids)

    async def answer(*_question: Any) -> PastAnswer:
        return PastAnswer(total=2, given=2, next=None)

    stage = cast("Stage", SimpleNamespace(client=client, witness=witness))
    story = asyncio.run(asked_of_spark(stage, cast("Analyst", SimpleNamespace(answer=answer))))
    assert story.holds == holds
    assert story.bright == ((east, north),)
