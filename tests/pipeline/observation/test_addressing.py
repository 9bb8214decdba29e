"""The audit of addressed messages on Spark: it finds whom the simulation knows to be missed, and nobody else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.pipeline.frames import BEGINNING, rows, table_frame

from nearcast.overlay.routing.settings import AdaptiveSettings
from nearcast.pipeline.observation.addressing import addressed, hops, missed
from nearcast.pipeline.tables import read_lake
from nearcast.records import TABLES
from nearcast.runtime.observers import Observers
from nearcast.scenario.contextcast.cycles import Cycles, CycleSettings
from nearcast.scenario.contextcast.network import RouterNetwork
from nearcast.scenario.contextcast.recording import recording
from nearcast.scenario.contextcast.setups import GROUND, ground_of, s1, s2
from nearcast.scenario.contextcast.strategies import Propagation, Strategy
from nearcast.scenario.contextcast.walking import Walking, WalkingSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def in_cycles(observers: Observers, propagation: Propagation) -> Cycles:
    layout, areas, model = s2(2, 12)
    settings = AdaptiveSettings(window=5.0, propagate_above=1.1)
    strategy = Strategy(
        propagation, coarse=True, threshold=0.4, adaptive=settings, domains=model.domains(), hop_by_hop=True
    )
    network = RouterNetwork(2, layout, strategy, GROUND, observers=observers)
    rates = CycleSettings(clients=30, updates=0.5, messages=4.0, senders=tuple(range(12)), audited=1.0)
    world = Cycles(network, layout, areas, model, rates)
    network.run(10.0)
    world.run(30)
    network.run(15.0)
    return world


def on_foot(observers: Observers, reported: float | None) -> Walking:
    layout, areas = s1(2, 12, 3)
    strategy = Strategy(coarse=reported is None, hop_by_hop=True)
    network = RouterNetwork(2, layout, strategy, ground_of(3), observers=observers)
    settings = WalkingSettings(people=40, reported=reported, audited=1.0, period=20.0)
    world = Walking(network, areas, settings)
    network.run(60.0)
    return world


def audited(spark: SparkSession, folder: Path) -> tuple[list[dict[str, Any]], dict[str, int]]:
    tables = read_lake(spark, folder)
    done = {row["what"]: row["rows"] for row in rows(hops(tables["hops"]), "what")}
    return rows(missed(addressed(tables)), "time"), done


@pytest.mark.slow
@pytest.mark.parametrize("propagation", Propagation)
def test_nobody_is_missed_and_hops_are_those_that_routers_counted(
    spark: SparkSession, tmp_path: Path, propagation: Propagation
) -> None:
    with recording(tmp_path / "run", {"title": propagation.value}) as observers:
        world = in_cycles(observers, propagation)
    found, done = audited(spark, tmp_path / "run")
    assert sum(row["due"] for row in found) == world.audit.due > 20
    assert [row for row in found if row["missed"]] == []
    load = world.network.load()
    assert done.get("forwarded") == load.messages
    assert done.get("delivered") == load.delivered
    assert done.get("in vain", 0) == load.false_positives
    assert done.get("pruned", 0) > 0
    if propagation is Propagation.REFERENCE:
        assert done.get("update") == load.updates


def test_reports_by_distance_miss_whom_the_simulation_knows_to_be_missed(spark: SparkSession, tmp_path: Path) -> None:
    with recording(tmp_path / "run", {"title": "DB300"}) as observers:
        world = on_foot(observers, 300.0)
    found, _ = audited(spark, tmp_path / "run")
    sent_long_ago = [row for row in found if row["time"].timestamp() < 50.0]
    assert sum(row["due"] for row in sent_long_ago) == world.audit.due > 20
    assert sum(row["missed"] for row in sent_long_ago) == world.audit.missed > 0
    assert all(len(row["clients"]) == row["missed"] for row in found)


def small(spark: SparkSession, notified: list[str], changed: float) -> dict[str, DataFrame]:
    """A message for ada and bob at 100 s; bob changed so many seconds after the beginning."""

    def at(seconds: float) -> int:
        return BEGINNING + round(seconds * 1e6)

    content: dict[str, list[dict[str, Any]]] = {each.name: [] for each in TABLES}
    for number, client in enumerate(("ada", "bob")):
        content["clients"].append({"time": at(1), "client": client, "state": "accepting", "offset": number})
        content["contexts"].append(
            {"time": at(2), "client": client, "name": "c", "attributes": '{"age": 30}', "offset": 10 + number}
        )
    content["contexts"].append(
        {"time": at(changed), "client": "bob", "name": "c", "attributes": '{"age": 40}', "offset": 20}
    )
    content["events"].append(
        {"time": at(100), "event": "m", "topic": "t", "bytes": 0, "addressing": "age > 20", "offset": 30}
    )
    content["notifications"] = [
        {
            "time": at(101),
            "event": "m",
            "client": client,
            "path": "overlay",
            "outcome": "delivered",
            "delay": 1,
            "hops": 0,
        }
        for client in notified
    ]
    return {name: table_frame(spark, name, held) for name, held in content.items()}


def test_who_is_due_and_not_notified_is_missed_unless_it_just_changed(spark: SparkSession) -> None:
    settled = rows(missed(addressed(small(spark, ["ada"], 50.0))), "event")
    assert [(row["due"], row["missed"], row["clients"]) for row in settled] == [(2, 1, ["bob"])]
    changing = rows(missed(addressed(small(spark, ["ada"], 105.0))), "event")
    assert [(row["due"], row["missed"], row["clients"]) for row in changing] == [(1, 0, [])]
    pairs = rows(addressed(small(spark, ["ada", "eve"], 105.0)), "client")
    assert [(row["client"], row["due"], row["settled"], row["notified"]) for row in pairs] == [
        ("ada", True, True, True),
        ("bob", True, False, False),
        ("eve", False, True, True),
    ]
