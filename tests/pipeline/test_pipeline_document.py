"""What docs/pipeline.md shows is true: its programs, its commands and its settings."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nearcast.cli import main
from nearcast.pipeline.settings import load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCUMENT = Path(__file__).parents[2] / "docs" / "pipeline.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ELSEWHERE = ("python -m nearcast.pipeline.package", "spark-submit")
"""What tests/cluster runs: it needs a cluster."""


def blocks(*kinds: str) -> list[tuple[str, str]]:
    return [(kind, code) for kind, code in BLOCK.findall(DOCUMENT.read_text()) if kind in kinds]


def test_every_program_prints_what_is_shown(spark: SparkSession) -> None:
    shared: dict[str, Any] = {"__name__": "pipeline"}
    printed = ""
    for kind, code in blocks("py", "txt"):
        if kind == "txt":
            assert printed == code
            continue
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(compile(code, DOCUMENT.name, "exec"), shared)  # noqa: S102 - that is the point
        printed = output.getvalue()
    assert shared["spark"] is spark


@pytest.mark.slow
def test_every_command_works(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trace.csv").write_text("vehicle,when,lat,lon\nbus 1,0,49.87,8.65\n")
    shown = [line.removeprefix("$ ") for _, code in blocks("console") for line in code.splitlines()]
    commands = [line for line in shown if not line.startswith(ELSEWHERE)]
    assert len(commands) == len(shown) - 2 > 4
    for line in commands:
        program, *arguments = shlex.split(line)
        assert program == "nearcast"
        assert main(arguments) == 0, line


def test_the_settings_shown_can_be_read(tmp_path: Path) -> None:
    [(_, text)] = blocks("toml")
    file = tmp_path / "pipeline.toml"
    file.write_text(text)
    settings = load(file)
    assert (settings.spark.master, settings.warehouse_folder) == ("local[4]", tmp_path / "warehouse")
