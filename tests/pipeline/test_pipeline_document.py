"""What docs/pipeline.md shows is true: its programs, its commands and its settings."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.documents import ROOT, blocks, check_examples

from nearcast.cli import main
from nearcast.pipeline.settings import load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCUMENT = ROOT / "docs" / "pipeline.md"
ELSEWHERE = ("python -m nearcast.pipeline.package", "spark-submit")
"""What tests/cluster runs: it needs a cluster."""


def test_every_program_prints_what_is_shown(spark: SparkSession) -> None:
    assert check_examples(DOCUMENT, "py", "txt")["spark"] is spark


@pytest.mark.slow
def test_every_command_works(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trace.csv").write_text("vehicle,when,lat,lon\nbus 1,0,49.87,8.65\n")
    shown = [line.removeprefix("$ ") for _, code in blocks(DOCUMENT, "console") for line in code.splitlines()]
    commands = [line for line in shown if not line.startswith(ELSEWHERE)]
    assert len(commands) == len(shown) - 2 > 4
    for line in commands:
        program, *arguments = shlex.split(line)
        assert program == "nearcast"
        assert main(arguments) == 0, line


def test_the_settings_shown_can_be_read(tmp_path: Path) -> None:
    [(_, text)] = blocks(DOCUMENT, "toml")
    file = tmp_path / "pipeline.toml"
    file.write_text(text)
    settings = load(file)
    assert (settings.spark.master, settings.warehouse_folder) == ("local[4]", tmp_path / "warehouse")
