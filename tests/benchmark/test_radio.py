"""nearcast's radio and ns-3 do the same work and come to the same answers; what is missing is named."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.benchmark.ns3_curves import recorded, titled
from tests.effort import campaign

from nearcast.benchmark import radio, radio_speed
from nearcast.benchmark.peers import ns3
from nearcast.benchmark.peers.ns3 import Ns3
from nearcast.benchmark.radio_curves import DIFFERENCE, RECEPTION, Curve, Radio, curves, differences
from nearcast.benchmark.radio_ours import OurRadio, SourcesInTheKernel
from nearcast.benchmark.radio_scenario import (
    NANOSECONDS,
    RadioAnswer,
    RadioScenario,
    broadcasts,
    reception,
    uniform_places,
)
from nearcast.benchmark.report import Measurement, Missing, Report
from nearcast.benchmark.timing import Course, take_turns
from nearcast.cli import main
from nearcast.errors import BenchmarkError, SetupError
from nearcast.runtime.simulation.radio.profile import RadioProfile, wifi_b, wifi_g

ALLOWED = 10.0  # percentage points, on every point of every curve

needs_ns3 = pytest.mark.skipif(Ns3.available() is not None, reason=f"ns-3: {Ns3.available()}")


@pytest.fixture(scope="module")
def peer() -> Ns3:
    return Ns3()


@needs_ns3
@pytest.mark.parametrize("curve", curves(quick=True), ids=titled)
def test_both_radios_give_the_same_curve(curve: Curve, peer: Ns3) -> None:
    found = differences(curve.measure(OurRadio()), curve.measure(peer))
    assert len(found) == 1
    assert found[0].value <= ALLOWED, found[0].parameters


@pytest.mark.parametrize("curve", curves(), ids=titled)
def test_our_radio_gives_in_full_the_curve_that_ns3_has_given(curve: Curve) -> None:
    found = differences(curve.measure(OurRadio()), recorded(curve))
    assert len(found) == 1
    assert found[0].value <= ALLOWED, found[0].parameters


@needs_ns3
@campaign
@pytest.mark.parametrize("curve", curves(), ids=titled)
def test_ns3_gives_in_full_the_curve_that_it_has_given(curve: Curve, peer: Ns3) -> None:
    assert differences(curve.measure(peer), recorded(curve))[0].value <= ALLOWED


@needs_ns3
@pytest.mark.parametrize("payload", [128, 1000])
@pytest.mark.parametrize("profile", [wifi_b(), wifi_g(data_rate=6_000_000)], ids=["b", "g"])
def test_frames_are_as_long_on_air_in_ns3_as_the_profile_says(profile: RadioProfile, payload: int, peer: Ns3) -> None:
    # It starts DIFS after it was handed in (at 0 ns-3 would still count down the backoff of a station that has just been
    # switched on), and 10 m away it ends 33 ns later.  Had it another length, it would have ended before, or not yet.
    start, once = 100_000_000, np.zeros(1, np.int64)
    end = start + profile.difs_ns + profile.broadcast_ns(payload) + 33
    for nanoseconds, heard in ((end - 100, 0), (end + 100, 1)):
        places = np.array([0.0, 10.0]), np.zeros(2)
        alone = RadioScenario(profile, *places, payload, nanoseconds / NANOSECONDS, once + start, once)
        assert peer.run(alone).frames.sum() == heard


@needs_ns3
def test_the_same_seed_gives_the_same_answer_in_ns3(peer: Ns3) -> None:
    crowd = broadcasts(wifi_b(), uniform_places(60, 200.0, seed=1), 128, 2.0, 10)
    first, second, other = (peer.run(crowd, seed) for seed in (1, 1, 2))
    assert first.frames.tolist() == second.frames.tolist()
    assert first.frames.tolist() != other.frames.tolist()


@needs_ns3
def test_what_ns3_complains_about_is_reported(peer: Ns3) -> None:
    nowhere = RadioScenario(wifi_b(), np.zeros(2), np.zeros(2), 128, 1.0, saturated=((7, 0),))
    with pytest.raises(BenchmarkError, match="ns-3 failed with status 1"):
        peer.run(nowhere)


def test_sources_in_the_kernel_do_the_work_of_frames_handed_in_one_by_one() -> None:
    crowd = broadcasts(wifi_b(), uniform_places(80, 500.0, seed=1), 128, 3.0, 2, jitter=0.0, quiet=0.0)
    assert SourcesInTheKernel().run(crowd).frames.sum() == OurRadio().run(crowd).frames.sum() > 1_000


@given(nodes=st.integers(2, 20), rate=st.sampled_from([0.5, 1.0, 10.0]), seed=st.integers(0, 9))
def test_everybody_broadcasts_at_the_rate_from_a_phase_of_their_own(nodes: int, rate: float, seed: int) -> None:
    seconds = 11.0
    made = broadcasts(wifi_b(), (np.zeros(nodes), np.zeros(nodes)), 128, seconds, rate, seed=seed)
    assert (np.diff(made.times) >= 0).all()
    assert made.times.max() < (seconds - 1.0) * NANOSECONDS
    for node in range(nodes):
        gaps = np.diff(made.times[made.senders == node]) * rate / NANOSECONDS
        assert ((gaps > 0.949) & (gaps < 1.051)).all()
    counts = np.bincount(made.senders, minlength=nodes)
    assert (np.abs(counts - (seconds - 1.0) * rate) <= 1 + 0.05 * seconds * rate).all()


def test_reception_is_what_arrived_of_what_could_have() -> None:
    # 0 reaches 1 (40 m) and 2 (80 m); 1 reaches 2 as well; 3 is out of everybody's range, and what it heard is not asked for.
    x = np.array([0.0, 40.0, 80.0, 180.0])
    sendings = np.array([0, 1], np.int64)
    scenario = RadioScenario(wifi_b(), x, np.zeros(4), 128, 1.0, sendings, sendings)
    senders, receivers = np.array([0, 1, 1]), np.array([1, 0, 2])
    found = reception(scenario, RadioAnswer(senders, receivers, np.ones(3, np.int64), 1.0))
    assert found.ratio == 3 / 4
    assert found.by_distance == ((22.0, 44.0, 1.0), (66.0, 88.0, 0.0))


def row(system: str, metric: str, value: float, metres: int) -> Measurement:
    return Measurement(system, metric, "", value, {"curve": "c", "radio": "r", "metres": metres})


def test_the_worst_point_of_a_curve_is_found() -> None:
    ours = [row("nearcast", RECEPTION, value, metres) for metres, value in enumerate((1.0, 0.5, 0.1))]
    theirs = [row("ns-3", RECEPTION, value, metres) for metres, value in enumerate((1.0, 0.8, 0.2))]
    (worst,) = differences(ours, theirs)
    assert worst.metric == DIFFERENCE
    assert worst.value == pytest.approx(30.0)
    assert (worst.parameters["metres"], worst.parameters["points"]) == (1, 3)


def test_throughput_differs_by_parts_of_the_larger_one() -> None:
    metric = "throughput_megabits_per_second"
    (worst,) = differences([row("nearcast", metric, 8.0, 1)], [row("ns-3", metric, 10.0, 1)])
    assert worst.value == pytest.approx(20.0)
    (worst,) = differences([row("nearcast", metric, 0.0, 1)], [row("ns-3", metric, 0.0, 1)])
    assert worst.value == 0.0


@pytest.fixture
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    def once(courses: list[Course], rounds: int, seconds: float, progress: Callable[[str], None]) -> None:
        take_turns(courses, 1, 0.0, progress)

    monkeypatch.setattr(radio, "take_turns", once)


@pytest.fixture
def report(short_turns: None) -> Report:
    return radio.run(quick=True, peers=False)


def test_the_report_follows_the_contract(report: Report) -> None:
    document = json.loads(report.to_json())
    assert list(document) == ["benchmark", "machine", "results", "missing", "ratios"]
    assert document["benchmark"] == "radio"
    assert document["missing"] == [{"system": "ns-3", "reason": "left out on request"}]
    assert document["ratios"] == {}
    for result in document["results"]:
        assert list(result) == ["system", "metric", "unit", "value", "parameters"]
        assert result["system"] == "nearcast"
    metrics = {result["metric"] for result in document["results"]}
    assert metrics == {
        "simulated_seconds_per_second",
        "microseconds_per_frame",
        "growth",
        "reception_ratio",
        "throughput_megabits_per_second",
    }


def test_growth_compares_what_a_frame_costs() -> None:
    def world(nodes: int, seconds_per_second: float) -> Measurement:
        about = {"nodes": nodes, "seconds": 5.0, "frames": 5 * nodes, "metres": 1, "broadcasts_per_second": 1}
        return Measurement("nearcast", radio_speed.SPEED, "s/s", seconds_per_second, {**about, "density": "constant"})

    found = radio_speed.growth([world(100, 10_000.0), world(300, 2_500.0), world(1_000, 500.0)])
    assert [(row.metric, row.parameters["nodes"]) for row in found] == [
        ("microseconds_per_frame", 100),
        ("microseconds_per_frame", 300),
        ("microseconds_per_frame", 1_000),
        ("growth", 1_000),
        ("growth", 300),
    ]
    assert [row.value for row in found] == pytest.approx([1.0, 4 / 3, 2.0, 2.0, 4 / 3])


class Imitation:
    """A peer of another name that answers as nearcast does: fast, and without a compiler."""

    name = "ns-3"
    version = "0"

    def run(self, scenario: RadioScenario, seed: int = 1) -> RadioAnswer:
        return replace(OurRadio().run(scenario, seed), spent=1.0)


def test_speeds_are_compared_under_the_name_of_the_contract(short_turns: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(missing: object, progress: object) -> Radio:
        return Imitation()

    monkeypatch.setattr(radio, "_start_peer", start)
    monkeypatch.setattr(radio, "curves", lambda quick: curves(quick=quick)[:1])
    found = radio.run(quick=True)
    assert list(found.ratios) == [
        "nearcast/ns-3 simulated_seconds_per_second",
        "nearcast/ns-3 simulated_seconds_per_second (by Python, one by one)",
        "nearcast/ns-3 simulated_seconds_per_second (10 broadcasts/s)",
        "nearcast/ns-3 simulated_seconds_per_second (10 broadcasts/s, by Python, one by one)",
        "nearcast/ns-3 simulated_seconds_per_second (AR, GOSSIP)",
        "nearcast/ns-3 simulated_seconds_per_second (AR, FLOODING)",
    ]
    games = [row for row in found.results if row.parameters.get("delivery") == "GOSSIP"]
    assert [(row.system, "part" in row.parameters) for row in games] == [
        ("nearcast", False),
        ("nearcast", True),
        ("ns-3", True),
    ]
    assert games[1].parameters["receptions"] == games[2].parameters["receptions"] > 1_000
    speeds = {
        (result.system, result.parameters["handed_in"]): result.value
        for result in found.results
        if result.parameters.get("handed_in") and result.parameters["broadcasts_per_second"] == 1
    }
    expected = speeds["nearcast", "by the kernel"] / speeds["ns-3", "by C++"]
    assert found.ratios["nearcast/ns-3 simulated_seconds_per_second"] == pytest.approx(expected, rel=1e-3)
    assert [result.value for result in found.results if result.metric == DIFFERENCE] == [0.0]


def test_a_machine_without_a_compiler_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert Ns3.available() == "g++ is not installed; scripts/install-peers installs it"
    with pytest.raises(SetupError, match=r"g\+\+ is not installed"):
        Ns3()


@needs_ns3
def test_a_program_that_does_not_build_is_reported_as_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "radio.cc"
    broken.write_text("int main() { return nonsense; }\n")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(ns3, "SOURCE", broken)
    missing: list[Missing] = []
    assert radio._start_peer(missing, lambda _: None) is None
    assert "does not build" in missing[0].reason
    assert "nonsense" in missing[0].reason


def test_options_reach_the_benchmark_and_json_is_all_there_is_on_stdout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: dict[str, object] = {}

    def run(*, quick: bool, peers: bool, progress: Callable[[str], None]) -> Report:
        asked.update(quick=quick, peers=peers)
        progress("working")
        return Report("radio", {}, (Measurement("nearcast", "growth", "1", 1.0),), (), {})

    monkeypatch.setattr("nearcast.benchmark.radio.run", run)
    assert main(["bench", "radio", "--quick", "--no-peers", "--json"]) == 0
    assert asked == {"quick": True, "peers": False}
    printed = capsys.readouterr()
    assert json.loads(printed.out)["results"][0]["metric"] == "growth"
    assert printed.err == "working\n"
