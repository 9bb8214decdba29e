"""What is measured where events go from host to host: traffic by radio, delays, and how an exchange spreads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nearcast.dissemination.adhoc.carrier import LOCAL
from nearcast.experiment.measures import Measures
from nearcast.experiment.measuring import measure
from nearcast.experiment.runs import Run, scenario
from nearcast.metrics.spread import executions
from nearcast.metrics.traffic import carried
from nearcast.model.time import MICROSECONDS
from nearcast.records.reader import read
from nearcast.scenario.simulation import simulate

SECONDS, AT, CLIENTS = 14.0, 6.0, 25


def made() -> Run:
    changes: dict[str, Any] = {
        "run.duration": f"{SECONDS:g} s",
        "clients.number": CLIENTS,
        "world": {"kind": "plain", "width": "300 m", "height": "300 m"},
        "mobility": {"model": "waypoint"},
        "radio.standard": "802.11g",
        "adhoc.transition": [{"at": f"{AT:g} s", "mechanism": {"kind": "HYPERG"}, "initiators": 1}],
    }
    phases = ("GOSSIP", "HYPERG")
    return Run("spread", scenario("adhoc", changes), phases, transitions=True, proxy=LOCAL, window=2.0, settling=1.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("measured") / "spread"
    simulate(made().scenario, 1, out=out)
    return out


@pytest.fixture(scope="module")
def measured(folder: Path) -> Measures:
    return measure(made(), folder)


def test_traffic_by_radio_is_what_the_books_of_the_links_say(folder: Path, measured: Measures) -> None:
    known = {f"{row['direction']} {row['class']}": row for row in carried(read(folder, "traffic")).to_pylist()}
    assert {"upload event", "download event", "upload neighbourhood", "download neighbourhood"} == set(known)
    for name, row in known.items():
        rate = measured.whole.rates[f"ad hoc {name}"]
        # All but the last two seconds of fourteen; hellos are said in the second part only.
        assert 0.6 * row["messages"] < rate.messages < row["messages"]
        assert rate.bytes / rate.messages == pytest.approx(row["bytes"] / row["messages"], rel=0.05)
        assert rate.kilobits_per_second == pytest.approx(rate.bytes * 8 / 1000 / (SECONDS - 2.0) / CLIENTS)


def test_nothing_of_it_counts_as_cellular(measured: Measures) -> None:
    assert all(rate.bytes == 0 for name, rate in measured.whole.rates.items() if not name.startswith("ad hoc"))


def test_hellos_begin_with_the_mechanism_that_says_them(measured: Measures) -> None:
    before, after = measured.phases
    assert "ad hoc upload neighbourhood" not in before.rates
    # Ten a second from each client.
    assert after.rates["ad hoc upload neighbourhood"].messages == pytest.approx(
        10 * CLIENTS * (after.until - after.since), rel=0.05
    )


def test_who_followed_when_and_where(folder: Path, measured: Measures) -> None:
    (mark,) = measured.marks
    followed = mark.followed
    assert followed is not None
    known = executions(read(folder, "transitions"), proxy=LOCAL, target="HYPERG")
    start = made().scenario.run.start + round(AT * MICROSECONDS)
    assert followed.after == [(time - start) / MICROSECONDS for time in known.times.tolist()]
    assert followed.clients == CLIENTS
    assert mark.first == followed.after[0] == 0.0, "the initiator"
    assert mark.last == followed.after[-1]
    assert mark.executed == len(followed.after) > CLIENTS // 2
    assert mark.last is not None
    assert 0.0 < mark.last < 5.0
    assert all(-1.0 <= place <= 300.0 for place in (*followed.x, *followed.y))
    assert max(followed.x) - min(followed.x) > 100.0


def test_clients_are_counted_by_what_spreads_their_events(measured: Measures) -> None:
    counts = measured.series.mechanisms
    assert set(counts) == {"GOSSIP", "HYPERG"}
    assert counts["GOSSIP"][0] == CLIENTS
    assert counts["HYPERG"][-1] > CLIENTS // 2
    assert all(sum(at_once) == CLIENTS for at_once in zip(*counts.values(), strict=True))


def test_delays_are_those_of_the_radio(measured: Measures) -> None:
    delivery = measured.whole.delivery
    assert delivery.median_delay is not None
    assert delivery.mean_delay is not None
    assert delivery.p95_delay is not None
    assert 0.0001 < delivery.median_delay < delivery.p95_delay < 0.1
    shown = [delay for delay in measured.series.delay if delay is not None]
    assert len(shown) == len(measured.series.starts)
    assert min(shown) < delivery.mean_delay < max(shown)
