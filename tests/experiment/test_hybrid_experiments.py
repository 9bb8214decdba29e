"""What is measured where events come several ways, on a small town."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from nearcast.experiment.catalogue import EXPERIMENTS
from nearcast.experiment.gatewaying import (
    CANDIDATES,
    DELIVERIES,
    FAIRNESS,
    GATEWAYS,
    MOST_DELIVERIES,
    SERVING,
    gateway_numbers,
)
from nearcast.experiment.measures import Measures
from nearcast.experiment.measuring import measure
from nearcast.experiment.runs import Run, scenario
from nearcast.metrics.columns import column, is_name, names_in, wholes
from nearcast.metrics.gateways import selection_fairness
from nearcast.metrics.traffic import carried
from nearcast.records.reader import read
from nearcast.scenario.schema import Scenario
from nearcast.scenario.simulation import simulate

SECONDS, SETTLING, CLIENTS = 12.0, 2.0, 25


def made(mode: str) -> Run:
    changes: dict[str, Any] = {
        "run.duration": f"{SECONDS:g} s",
        "clients.number": CLIENTS,
        "world": {"kind": "plain", "width": "200 m", "height": "200 m"},
        "mobility": {"model": "waypoint"},
        "delivery.mechanism": mode,
        "radio.standard": "802.11g",
        "gateways.acknowledged": False,
    }
    return Run(mode, scenario("ar-darmstadt", changes), window=2.0, settling=SETTLING, numbers=_numbers)


def _numbers(_scenario: Scenario, folder: Path) -> Mapping[str, float]:
    return gateway_numbers(folder, SETTLING)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("measured") / "gateway"
    simulate(made("gateway").scenario, 1, out=out)
    return out


@pytest.fixture(scope="module")
def measured(folder: Path) -> Measures:
    return measure(made("gateway"), folder)


def test_what_comes_over_each_network_is_what_the_books_of_the_links_say(folder: Path, measured: Measures) -> None:
    rows = carried(read(folder, "traffic")).to_pylist()
    for row in rows:
        prefix = "" if row["interface"] == "cellular" else "ad hoc "
        rate = measured.whole.rates[f"{prefix}{row['direction']} {row['class']}"]
        if row["class"] == "event":
            # All but the last two seconds of twelve.
            assert 0.75 * row["messages"] < rate.messages < 0.9 * row["messages"]
            assert rate.bytes / rate.messages == pytest.approx(row["bytes"] / row["messages"], rel=0.05)
    assert {(row["interface"], row["direction"]) for row in rows if row["class"] == "event"} == {
        (interface, direction) for interface in ("cellular", "wifi") for direction in ("upload", "download")
    }


def test_relays_count_as_events_and_are_fewer_than_those_who_are_told(measured: Measures) -> None:
    down = measured.whole.rates["download event"]
    assert 0 < down.messages < 0.6 * measured.whole.delivery.notified


def test_numbers_of_gateways(folder: Path, measured: Measures) -> None:
    rows, numbers = read(folder, "gateways"), measured.numbers
    events = len(names_in(column(rows, "event")))
    assert numbers[GATEWAYS] == pytest.approx(rows.num_rows / events, rel=0.1)
    assert 0 < numbers[SERVING] <= numbers[GATEWAYS] < numbers[CANDIDATES] < CLIENTS
    assert numbers[SERVING] / numbers[GATEWAYS] == pytest.approx((wholes(rows, "members") > 0).mean(), abs=0.1)
    clients = names_in(column(read(folder, "clients"), "client")).to_pylist()
    assert numbers[FAIRNESS] == pytest.approx(selection_fairness(rows, clients), abs=0.1)
    assert 1.0 <= numbers[DELIVERIES] <= numbers[MOST_DELIVERIES] < CLIENTS


def test_copies_are_frames_that_were_heard(folder: Path, measured: Measures) -> None:
    """Local events spread on the other port; all frames together are those of both."""
    traffic = read(folder, "traffic")
    heard = traffic.filter(
        is_name(column(traffic, "kind"), "ad hoc event") & is_name(column(traffic, "direction"), "received")
    )
    metrics = read(folder, "metrics")
    copies = metrics.filter(is_name(column(metrics, "metric"), "copies heard from gateways"))["value"].to_pylist()
    assert 0 < copies[-1] < int(wholes(heard, "messages").sum())
    assert copies == sorted(copies)
    assert measured.numbers[DELIVERIES] > 1.0


def test_without_gateways_there_are_no_such_numbers(tmp_path: Path) -> None:
    simulate(made("augment").scenario, 1, out=tmp_path / "augment")
    found = measure(made("augment"), tmp_path / "augment")
    assert found.numbers == {}
    assert found.whole.rates["download event"].messages > 0
    assert found.whole.rates["ad hoc download event"].messages > 0


@pytest.mark.parametrize("name", ["bypass-e6", "bypass-e10"])
def test_runs_have_the_radio_that_does_not_saturate_and_gateways_where_the_experiment_wants_them(name: str) -> None:
    experiment = next(each for each in EXPERIMENTS if each.name == name)
    for run in experiment.runs(True):
        assert run.scenario.radio.standard == "802.11g"
        if name == "bypass-e10":
            assert run.scenario.coexistence.inside == ("augment" if run.name == "without" else "gateway")
            assert (run.scenario.gateway_settings().schemes is None) is False
