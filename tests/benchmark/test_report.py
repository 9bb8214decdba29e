"""The JSON document is the one of the contract, and a ratio above 1 always means that nearcast is better."""

import io
import json

import pytest
from rich.console import Console

from nearcast.benchmark.report import Measurement, Missing, Report, machine, ratios

RESULTS = (
    Measurement("nearcast", "batch_events_per_second", "1/s", 1_000_000.0, {"clients": 10, "batch": 1024}),
    Measurement("redis", "batch_events_per_second", "1/s", 20_000.0, {"clients": 10}),
    Measurement("nearcast", "single_event_microseconds", "us", 5.0, {"clients": 10}),
    Measurement("redis", "single_event_microseconds", "us", 100.0, {"clients": 10}),
    Measurement("nearcast", "batch_events_per_second", "1/s", 3_000_000.0, {"clients": 5}),
)


@pytest.fixture
def report() -> Report:
    missing = (Missing("postgis", "PostgreSQL is not installed"),)
    return Report("match", machine(), RESULTS, missing, ratios(RESULTS, {"clients": 10}))


def test_the_json_document_has_the_parts_of_the_contract(report: Report) -> None:
    document = json.loads(report.to_json())
    assert list(document) == ["benchmark", "machine", "results", "missing", "ratios"]
    assert document["benchmark"] == "match"
    assert document["results"][0] == {
        "system": "nearcast",
        "metric": "batch_events_per_second",
        "unit": "1/s",
        "value": 1_000_000.0,
        "parameters": {"clients": 10, "batch": 1024},
    }
    assert document["missing"] == [{"system": "postgis", "reason": "PostgreSQL is not installed"}]


def test_more_events_and_less_time_are_both_above_one(report: Report) -> None:
    assert report.ratios == {
        "nearcast/redis batch_events_per_second": 50.0,
        "nearcast/redis single_event_microseconds": 20.0,
    }


def test_the_machine_is_described_without_names_or_paths() -> None:
    described = machine()
    assert described["cores"] >= 1
    assert described["python"].startswith("3.")
    assert "/" not in json.dumps(described["versions"])
    assert set(described) == {"processor", "cores", "memory_gib", "system", "python", "versions"}


def test_people_see_what_was_missing(report: Report) -> None:
    shown = io.StringIO()
    report.print(Console(file=shown, width=160))
    assert "1,000,000" in shown.getvalue()
    assert "not measured: postgis: PostgreSQL is not installed" in shown.getvalue()
