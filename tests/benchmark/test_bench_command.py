"""``nearcast bench match`` hands its options on and prints one JSON document."""

import json
from collections.abc import Callable

import pytest

from nearcast.benchmark.report import Measurement, Report
from nearcast.cli import main

pytest.importorskip("nearcast.benchmark.match", reason="needs the matcher")


def test_options_reach_the_benchmark_and_json_is_all_there_is_on_stdout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: dict[str, object] = {}

    def run(clients: int | None, *, quick: bool, peers: bool, progress: Callable[[str], None]) -> Report:
        asked.update(clients=clients, quick=quick, peers=peers)
        progress("working")
        return Report("match", {}, (Measurement("nearcast", "growth", "1", 1.0),), (), {})

    monkeypatch.setattr("nearcast.benchmark.match.run", run)
    assert main(["bench", "match", "--clients", "5000", "--quick", "--no-peers", "--json"]) == 0
    assert asked == {"clients": 5000, "quick": True, "peers": False}
    printed = capsys.readouterr()
    assert json.loads(printed.out)["results"][0]["metric"] == "growth"
    assert printed.err == "working\n"


def test_a_city_of_nobody_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "match", "--clients", "0"]) == 2
    assert capsys.readouterr().out == ""
