"""The courses of ``nearcast bench broker`` at a tiny size: answers are compared, no server stays behind."""

import os
import signal
import subprocess
import sys
from dataclasses import replace

import psutil
import pytest

from nearcast.benchmark.broker import run
from nearcast.benchmark.broker_courses import COURSES, QUICK, SERVERS, Course
from nearcast.benchmark.broker_crowd import Crowd
from nearcast.benchmark.broker_laps import Findings
from nearcast.benchmark.broker_ours import Nearcast
from nearcast.benchmark.broker_packets import PUBLISH, SUBACK, numbered
from nearcast.benchmark.broker_streams import PAIRS, Streams
from nearcast.benchmark.peers.amqtt import Amqtt
from nearcast.benchmark.peers.mosquitto import Mosquitto
from nearcast.benchmark.peers.server import Server
from nearcast.errors import BenchmarkError

TINY = replace(
    QUICK,
    rounds=1,
    seconds=0.1,
    walkers=60,
    steps=1,
    cells=(75.0, 300.0),
    in_flight=((2, 10),),
    connections=30,
    fences=(300,),
    drivers=10,
    fence_steps=2,
)
INTERRUPTED = """
import sys
from nearcast.benchmark import broker
from nearcast.benchmark.peers.mosquitto import Mosquitto
from nearcast.cli import main

broker.SERVERS = (Mosquitto,)
sys.exit(main(["bench", "broker", "--course", "streams"]))
"""


def needed(kind: type[Server]) -> None:
    if reason := kind.available():
        pytest.skip(f"{kind.name}: {reason}")


def children() -> set[int]:
    return {process.pid for process in psutil.Process().children(recursive=True)}


@pytest.mark.parametrize("name", COURSES)
def test_a_course_measures_every_server_that_is_here_and_leaves_none_behind(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # amqtt takes seconds for what others do in no time; that it is understood is another test's matter.
    monkeypatch.setattr("nearcast.benchmark.broker.SERVERS", tuple(kind for kind in SERVERS if kind is not Amqtt))
    said: list[str] = []
    affinity, before = os.sched_getaffinity(0), children()  # other tests may have servers that stay
    report = run([name], size=TINY, progress=said.append)
    here = {row.system for row in report.results}
    assert here, report.missing
    assert all(row.value > 0 for row in report.results)
    assert all(row.parameters.get("differing_answers", 0) == 0 for row in report.results if row.system != "redis")
    assert said
    assert children() <= before
    assert os.sched_getaffinity(0) == affinity
    # Nothing failed in the middle: whoever is missing was not here to begin with.
    assert not [missing for missing in report.missing if missing.system in here]
    if not Nearcast.available():
        assert "nearcast" in here, report.missing
        for other in here - {"nearcast"}:
            assert any(ratio.startswith(f"nearcast/{other} ") for ratio in report.ratios)


def test_useful_deliveries_of_all_cell_sizes_are_the_same_ones() -> None:
    needed(Mosquitto)
    found = Findings()
    COURSES["useful"](Course(frozenset({Mosquitto}), TINY, found, lambda _: None))
    assert [row.parameters["cell"] for row in found.results] == [75.0, 300.0]
    assert [row.parameters["differing_answers"] for row in found.results] == [0, 0]
    finer, coarser = (row.parameters["delivered_per_useful"] for row in found.results)
    assert 1 < finer < coarser


def test_a_paced_stream_tells_how_long_messages_took() -> None:
    needed(Mosquitto)
    with Mosquitto() as server, Crowd(server.port, 128) as crowd:
        latencies = Streams(server, crowd, PAIRS).paced(rate=2_000, seconds=0.2)
    assert 0 < latencies.median <= latencies.p99
    assert latencies.differing == 0


def test_a_message_that_never_arrives_and_one_that_nobody_sent_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    needed(Mosquitto)
    monkeypatch.setattr("nearcast.benchmark.broker_streams.PATIENCE", 0.2)
    with Mosquitto() as server, Crowd(server.port, 128) as crowd:
        streams = Streams(server, crowd, PAIRS)
        assert streams.lap(0.05).differing == 0
        streams._sent[0] += 1  # a number that is never sent
        assert streams.lap(0.05).differing > 0
        assert streams.lap(0.05).differing == 0


def test_a_refused_subscription_is_an_error() -> None:
    needed(Mosquitto)
    with Mosquitto() as server, Crowd(server.port, 128) as crowd:
        (link,) = crowd.connect(["ada"])
        # A filter that cannot be: mosquitto refuses it, or ends the connection.
        with pytest.raises(BenchmarkError, match=r"refused|closed"):
            crowd.ask([(link, crowd.dialect.subscribe(["a/#/b"]))], SUBACK)


@pytest.mark.parametrize("kind", [Mosquitto, Amqtt, Nearcast], ids=lambda kind: str(kind.name))
def test_what_one_client_publishes_another_receives(kind: type[Server]) -> None:
    needed(kind)
    with kind() as server, Crowd(server.port, payload=16, dialect=server.dialect) as crowd:
        got: list[tuple[int, int]] = []
        crowd.arrived = lambda link, numbers, identifiers: got.extend((link.number, number) for number in numbers)
        ada, ben = crowd.connect(["ada", "ben"])
        crowd.ask([(ben, crowd.dialect.subscribe(["a/b"]))], SUBACK)
        crowd.send(ada, crowd.dialect.publish("a/b", numbered(7, 16)))
        crowd.wait(PUBLISH, 1)
        crowd.settle(ada)
        assert got == [(ben.number, 7)]
        assert server.version()[0].isdigit()
        assert server.resident_bytes() > 2**20


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_whoever_interrupts_the_benchmark_leaves_no_server_behind(how: signal.Signals) -> None:
    needed(Mosquitto)
    bench = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert bench.stderr is not None
    for line in bench.stderr:
        if "warming up" in line:
            break
    servers = psutil.Process(bench.pid).children(recursive=True)
    assert servers
    bench.send_signal(how)
    bench.stderr.read()
    bench.stderr.close()
    assert bench.wait(30) not in {0, -how}
    assert psutil.wait_procs(servers, timeout=10)[1] == []
