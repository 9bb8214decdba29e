"""The tutorial and the guides lead where they say, with brokers that they start themselves."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.documents import ROOT, titled_blocks
from tests.walkthrough import SEARCHED, Walkthrough, assert_like, steps

sys.path.insert(0, str(ROOT))
from scripts.website.notebooks import executed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GUIDES = [path for path in sorted((ROOT / "docs" / "how-to").glob("*.md")) if path.name != "index.md"]
GUIDES.append(ROOT / "docs" / "operations.md")
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def test_the_tutorial(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tutorial = Walkthrough(tmp_path)
    tutorial.follow(ROOT / "docs" / "tutorial.md")
    assert tutorial.names["spark"] is spark


def test_sessions_are_commands_with_what_they_print() -> None:
    assert list(steps("$ one \\\n  two\nsaid\n$ three\n")) == [("one \\\n  two", "said\n"), ("three", "")]
    assert_like("id 17 of x\n", "id ... of x\n")
    with pytest.raises(AssertionError):
        assert_like("id 17 of y\n", "id ... of x\n")


def test_a_step_that_prints_something_else_is_found(tmp_path: Path) -> None:
    document = tmp_path / "document.md"
    for content in ("$ echo a\nb", "$ false", "$ nearcast serve --port nowhere\nready"):
        document.write_text(f"```console\n{content}\n```\n")
        with pytest.raises(AssertionError):
            Walkthrough(tmp_path).follow(document)
    document.write_text('```toml title="a.toml"\nport = 1883\n```\n```console\n$ cat a.toml\nport = 1883\n```\n')
    Walkthrough(tmp_path).follow(document)
    assert [title for _, title, _ in titled_blocks(document)] == ["a.toml", ""]


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_every_guide(
    guide: Path, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = {program for program in programs(guide) if not shutil.which(program, path=SEARCHED)}
    if missing:
        pytest.skip(f"not installed: {', '.join(sorted(missing))}")
    if any("spark_session" in code for kind, _, code in titled_blocks(guide) if kind == "py"):
        request.getfixturevalue("spark")
    monkeypatch.chdir(tmp_path)
    Walkthrough(tmp_path).follow(guide)


def programs(guide: Path) -> set[str]:
    sessions = [code for kind, title, code in titled_blocks(guide) if kind == "console" and not title]
    return {command.split()[0] for session in sessions for command, _ in steps(session)} - {"until", "echo"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_notebook_prints_what_stands_in_it(path: Path, spark: SparkSession) -> None:
    names: dict[str, Any] = {"__name__": "notebook"}
    written = json.loads(path.read_text())
    assert executed(written, names) == written
    assert names["spark"] is spark


def test_the_program_for_node_prints_what_is_said(tmp_path: Path) -> None:
    """Where its package is found: ``npm install mqtt``, and NODE_PATH if it is not in a folder above."""
    probe = ["node", "-e", "require('mqtt')"]
    if not shutil.which("node") or subprocess.run(probe, cwd=tmp_path, capture_output=True, check=False).returncode:
        pytest.skip("node, or its package mqtt, is not installed")
    guide = ROOT / "docs" / "how-to" / "mqtt-clients.md"
    blocks = {title: code for _, title, code in titled_blocks(guide) if title}
    document = tmp_path / "guide.md"
    document.write_text(
        f"""\
```js title="around-me.js"
{blocks["around-me.js"]}```
```console
$ nearcast serve
ready
$ nearcast pub traffic/jam blocked --place 49.8730,8.6510 --attribute severity=4
...
$ node around-me.js
traffic/jam blocked
```
"""
    )
    assert "`node around-me.js` prints `traffic/jam blocked`" in guide.read_text()
    Walkthrough(tmp_path).follow(document)
