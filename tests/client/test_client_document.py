"""What docs/client.md shows runs against a broker, and prints what it says."""

import asyncio
import contextlib
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.documents import ROOT, check_examples
from tests.served import ServedBroker, served

import nearcast

DOCUMENT = ROOT / "docs" / "client.md"


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[ServedBroker]:
    """The examples look into the past, in which nobody else has said anything."""
    with served(tmp_path) as running:
        yield running


def test_every_example_runs_and_prints_what_is_shown(alone: ServedBroker) -> None:
    shared = check_examples(DOCUMENT, "py", "console", lambda code: code.replace("mqtt://localhost", alone.url))

    async def call_the_functions() -> None:
        async with nearcast.connect(alone.url) as me:
            for name in ("be_somewhere", "publish_things", "read"):
                await shared[name](me)

    with contextlib.redirect_stdout(io.StringIO()) as output:
        asyncio.run(call_the_functions())
    position, stored, *_ = output.getvalue().splitlines()
    assert position == "Point(lat=49.8728, lon=8.6512)"
    assert stored == "[b'ice cream']", "what has a reach reaches who was there; what was taken back is gone"
