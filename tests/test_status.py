"""docs/status.md is what `make status` made of the promises and of what was measured."""

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


def the_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("status", ROOT / "scripts" / "status.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look up the module of their annotations.
    import sys

    sys.modules["status"] = module
    spec.loader.exec_module(module)
    return module


status = the_script()
BENCHMARK = {
    "ratios": {"nearcast/redis events": 3.5},
    "results": [
        {"system": "redis", "metric": "events", "value": 1.0, "parameters": {}},
        {"system": "nearcast", "metric": "events", "value": 7.0, "parameters": {"clients": 10, "kind": "one by one"}},
        {"system": "nearcast", "metric": "events", "value": 9.0, "parameters": {"clients": 20}},
    ],
}


def test_the_table_is_up_to_date() -> None:
    """If not: ``python scripts/status.py --render``."""
    measured = json.loads(status.MEASURED.read_text())
    assert status.TABLE.read_text() == status.table(status.promises(), measured)


def test_every_promise_can_be_measured_and_every_command_is_for_one() -> None:
    said = status.promises()
    assert {promise["command"] for promise in said["promise"]} == set(said["commands"])
    keys = [status.key_of(promise) for promise in said["promise"]]
    assert len(set(keys)) == len(keys)
    assert set(json.loads(status.MEASURED.read_text())) <= set(keys)
    for promise in said["promise"]:
        kind = promise["value"].split()[0]
        assert kind in {"passes", "seconds", *status._SELECT}
        assert (kind == "passes") != ("at_least" in promise or "at_most" in promise)


def test_the_tests_that_commands_name_exist() -> None:
    for command in status.promises()["commands"].values():
        for path in re.findall(r"tests/[\w/.]+", command):
            assert (ROOT / path).exists()


@pytest.mark.parametrize(
    ("selector", "value"),
    [
        ("ratio nearcast/redis events", 3.5),
        ("ratio nearcast/nobody events", None),
        ("result events", 7.0),
        ("result events clients=20", 9.0),
        ("result events kind='one by one'", 7.0),
        ("result deliveries", None),
        ("largest events", 9.0),
        ("parameter events clients", 10.0),
        ("path speed.factor", None),
        ("passes", 1.0),
        ("seconds", 61.0),
    ],
)
def test_what_a_promise_asks_for_is_found(selector: str, value: float | None) -> None:
    assert status.Ran(0, json.dumps(BENCHMARK), 61.2).value(selector) == value


@pytest.mark.parametrize(("name", "value"), [("TH1.1", 1.6), ("TH2.1", 0.97), ("TH3.1", None), ("TH9.9", None)])
def test_checks_of_experiments_are_found(name: str, value: float | None) -> None:
    checks = [
        {"id": "TH1.1", "measured": 1.6},
        {"id": "TH2.1", "measured": {"publish": 1.0, "notification": 0.97}},
        {"id": "TH3.1", "measured": {"publish": None, "notification": 0.97}},
    ]
    assert status.Ran(0, json.dumps({"checks": checks}), 1.0).value(f"check {name}") == value


def test_a_command_that_failed_keeps_nothing() -> None:
    broken = status.Ran(1, "Traceback ...", 3.0)
    assert [broken.value(selector) for selector in ("passes", "seconds", "ratio a", "path a")] == [
        0.0,
        None,
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("bounds", "value", "kept"),
    [
        ({"at_least": 5}, 5.0, True),
        ({"at_least": 5}, 4.99, False),
        ({"at_most": 2}, 2.0, True),
        ({"at_most": 2}, 2.01, False),
        ({"at_most": 2}, None, False),
    ],
)
def test_bounds(bounds: dict[str, Any], value: float | None, kept: bool) -> None:
    assert status.kept({"value": "result x", **bounds}, value) is kept


def test_an_unknown_command_is_refused_and_nothing_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert status.main(["mtach"]) == 2
    assert "there is no command 'mtach'; there are match, radio" in capsys.readouterr().err
