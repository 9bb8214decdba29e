"""What ``nearcast bench broker`` makes of its findings, and of servers that fail."""

import json
import sys
from collections.abc import Callable

import pytest

from nearcast.benchmark.broker import absent, compared
from nearcast.benchmark.broker_courses import SERVERS
from nearcast.benchmark.broker_laps import Findings, Lane, Lap, race
from nearcast.benchmark.broker_ours import Nearcast
from nearcast.benchmark.peers.mosquitto import Mosquitto
from nearcast.benchmark.report import Measurement, Report
from nearcast.cli import main
from nearcast.errors import BenchmarkError


class Deaf(Mosquitto):
    name = "deaf"

    def command(self) -> list[str]:
        return [sys.executable, "-c", "print('no such option'); raise SystemExit(3)"]


def test_a_server_that_does_not_start_says_why_and_the_others_go_on() -> None:
    with pytest.raises(BenchmarkError, match="deaf did not start: no such option"), Deaf():
        pass
    found = Findings()
    with found.surviving("deaf", "streams"), Deaf():
        pass
    assert found.missing[0].reason == "streams: deaf did not start: no such option"


class Runner(Lane):
    """Does one more unit in each lap; the third lap fails if it is told so."""

    metric = "fanout_deliveries_per_second"

    def __init__(self, *, fails: bool) -> None:
        super().__init__(Deaf(), {"subscribers": 30})
        self.done, self.fails = 0, fails

    def lap(self, seconds: float) -> Lap:
        self.done += 1
        if self.fails and self.done == 3:
            raise BenchmarkError("out of breath")
        return Lap(self.done, seconds, server_cores=0.5, generator_cores=0.1, differing=1)


def test_the_median_lap_counts_and_the_first_one_only_warms_up() -> None:
    found = Findings()
    race([Runner(fails=False)], rounds=3, seconds=1.0, found=found, progress=lambda _: None)
    (result,) = found.results
    assert result.value == 3.0
    assert result.parameters == {
        "subscribers": 30,
        "runs": 3,
        "spread": pytest.approx(2 / 3, abs=1e-3),
        "server_cores": 0.5,
        "generator_cores": 0.1,
        "per_core_second": 6,
        "differing_answers": 3,
    }


def test_who_fails_in_the_middle_is_reported_and_the_others_run_on() -> None:
    found = Findings()
    weak, strong = Runner(fails=True), Runner(fails=False)
    race([weak, strong], rounds=4, seconds=1.0, found=found, progress=lambda _: None)
    assert [missing.reason for missing in found.missing] == ["fanout_deliveries_per_second: out of breath"]
    assert (weak.done, strong.done) == (3, 5)


def test_servers_are_left_out_on_request_or_because_they_are_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    assert absent(peers=False) == dict.fromkeys(set(SERVERS) - {Nearcast}, "left out on request")
    monkeypatch.setattr("nearcast.benchmark.peers.mosquitto.program", lambda name: None)
    assert absent(peers=True)[Mosquitto] == "mosquitto is not installed"


def row(system: str, metric: str, value: float, **parameters: object) -> Measurement:
    return Measurement(system, metric, "1/s", value, dict(parameters))


def test_ratios_are_named_for_what_is_compared() -> None:
    useful, durable = "useful_deliveries_per_second", "durable_publishes_per_second"
    results = (
        row("nearcast", "fanout_deliveries_per_second", 90.0, in_flight=512),
        row("mosquitto", "fanout_deliveries_per_second", 10.0, in_flight=512),
        row("nearcast", "fanout_deliveries_per_second", 8.0, in_flight=4),
        row("mosquitto", "fanout_deliveries_per_second", 10.0, in_flight=4),
        row("nearcast", "one_to_one_messages_per_second", 20.0, qos=0),
        row("mosquitto", "one_to_one_messages_per_second", 10.0, qos=0),
        row("nearcast", "one_to_one_messages_per_second", 5.0, qos=1),
        row("mosquitto", "one_to_one_messages_per_second", 10.0, qos=1),
        row("nearcast", useful, 60.0),
        row("mosquitto", useful, 30.0, cell=75.0),
        row("mosquitto", useful, 10.0, cell=300.0),
        row("redis", useful, 20.0, form="service beside Redis"),
        row("redis", useful, 40.0, form="script inside Redis"),
        row("nearcast", "p99_milliseconds", 2.0, course="fan-out"),
        row("mosquitto", "p99_milliseconds", 1.0, course="fan-out"),
        row("nearcast", durable, 100.0, publishers=10, in_flight=10),
        row("nats-jetstream", durable, 10.0, publishers=10, in_flight=10),
        row("nearcast", durable, 60.0, publishers=1, in_flight=50),
        row("nats-jetstream", durable, 10.0, publishers=1, in_flight=50),
    )
    assert compared(results) == {
        "nearcast/mosquitto fanout_deliveries_per_second": 9.0,
        "nearcast/mosquitto fanout_deliveries_per_second (4 in flight)": 0.8,
        "nearcast/mosquitto one_to_one_messages_per_second": 2.0,
        "nearcast/mosquitto one_to_one_messages_per_second (QoS 1)": 0.5,
        f"nearcast/mosquitto {useful}": 6.0,
        f"nearcast/mosquitto {useful} (best cell size)": 2.0,
        f"nearcast/redis {useful}": 3.0,
        f"nearcast/redis {useful} (script inside Redis)": 1.5,
        "nearcast/mosquitto p99_milliseconds (fan-out)": 0.5,
        f"nearcast/nats-jetstream {durable}": 10.0,
        f"nearcast/nats-jetstream {durable} (1 x 50 in flight)": 6.0,
    }


def test_options_reach_the_benchmark_and_json_is_all_there_is_on_stdout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: dict[str, object] = {}

    def measure(courses: list[str], *, quick: bool, peers: bool, progress: Callable[[str], None]) -> Report:
        asked.update(courses=courses, quick=quick, peers=peers)
        progress("working")
        return Report("broker", {}, (row("nearcast", "idle_connection_bytes", 1.0),), (), {})

    monkeypatch.setattr("nearcast.benchmark.broker.run", measure)
    assert main(["bench", "broker", "--course", "idle", "--course", "useful", "--quick", "--no-peers", "--json"]) == 0
    assert asked == {"courses": ["idle", "useful"], "quick": True, "peers": False}
    printed = capsys.readouterr()
    assert json.loads(printed.out)["results"][0]["metric"] == "idle_connection_bytes"
    assert printed.err == "working\n"


def test_a_course_that_does_not_exist_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "broker", "--course", "marathon"]) == 2
    assert "streams, useful, durable, idle" in capsys.readouterr().err
