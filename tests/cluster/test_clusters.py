"""The same jobs run on a laptop, on a cluster of several processes and over Spark Connect, and give the same."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.clusters import connect_server, environment, standalone
from tests.pipeline.tables.lakes import DAY, Lake, event, report, unpublished
from tests.waiting import SPARK_PATIENCE

from nearcast.metrics import run_metrics
from nearcast.pipeline.session import FAST_START
from nearcast.scenario.reading import read as read_scenario
from nearcast.scenario.simulation import simulate

pytestmark = pytest.mark.slow

COMMAND = Path(sys.executable).with_name("nearcast")


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cluster") / "run"
    simulate(read_scenario("rnd-waypoint", {"run.duration": "5 s", "clients.number": 10}), 1, out=folder)
    return folder


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Lake(tmp_path_factory.mktemp("lake") / "lake")
    wanted = {"client": "bob", "subscription": "s", "action": "subscribed", "topic_filter": "t", "radius": 500.0}
    made.export(
        {
            "events": [
                event("a"),
                event("a"),
                event("b"),
                event("gone"),
                event("bad", lat=99.0),
                event("far", lat=48.0),
            ],
            "reports": [report("bob", DAY)],
            "subscriptions": [{"time": DAY, **wanted}],
        }
    )
    made.export({"unpublished": [unpublished("gone", 3)]})
    return made.folder


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("settings") / "pipeline.toml"
    executors = '"spark.executor.memory" = "512m"\n"spark.executor.cores" = "1"\n'
    file.write_text(
        '[spark]\nui = false\nshuffle_partitions = 2\ndriver_memory = "1 GiB"\n[spark.settings]\n'
        f'{executors}"spark.driver.extraJavaOptions" = "{FAST_START}"\n"spark.executor.extraJavaOptions" = "{FAST_START}"\n'
    )
    return file


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone(tmp_path_factory.mktemp("spark")) as address:
        yield address


def run(folder: Path, *arguments: str) -> Any:
    answer = subprocess.run(
        [str(COMMAND), "pipeline", *arguments, "--json"],
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=SPARK_PATIENCE,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


KEPT = {"files": 1, "bronze": 6, "silver": 3, "aside": 1, "duplicates": 1, "unpublished": 1, "expired": 0}
"""What becomes of the events of the lake."""


def check_tables(found: Any) -> None:
    assert found["silver"]["events"] == KEPT
    assert found["gold"]["activity"] == {"days_computed": 1}


def check_metrics(found: Any, recording: Path) -> None:
    expected = run_metrics(recording).to_json()
    assert found["metrics"]["delivery"] == pytest.approx(expected["delivery"], rel=1e-9)
    assert found["metrics"]["delay"] == pytest.approx(expected["delay"], rel=1e-9)


def test_tables_on_a_master_and_two_workers(cluster: str, lake: Path, settings: Path, tmp_path: Path) -> None:
    where = ["--lake", str(lake), "--warehouse", str(tmp_path / "warehouse"), "--config", str(settings)]
    check_tables(run(tmp_path, "tables", "--master", cluster, *where))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server(tmp_path_factory.mktemp("server")) as address:
        yield address


def test_metrics_over_spark_connect(server: str, recording: Path, settings: Path, tmp_path: Path) -> None:
    where = ["--lake", str(recording), "--config", str(settings)]
    check_metrics(run(tmp_path, "metrics", "--remote", server, *where), recording)


def test_tables_over_spark_connect(server: str, lake: Path, settings: Path, tmp_path: Path) -> None:
    where = ["--lake", str(lake), "--warehouse", str(tmp_path / "warehouse"), "--config", str(settings)]
    check_tables(run(tmp_path, "tables", "--remote", server, *where))


def submit(folder: Path, master: str, program: str, *arguments: str) -> str:
    """What the program prints under ``spark-submit``."""
    (folder / "program.py").write_text(program)
    quick = (f"spark.{half}.extraJavaOptions={FAST_START}" for half in ("driver", "executor"))
    settings = ("spark.ui.enabled=false", "spark.executor.memory=512m", "spark.sql.shuffle.partitions=2", *quick)
    given = [part for setting in settings for part in ("--conf", setting)]
    command = [str(Path(sys.executable).with_name("spark-submit")), "--master", master, *given, *arguments]
    answer = subprocess.run(
        [*command, str(folder / "program.py")],
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=SPARK_PATIENCE,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr + answer.stdout
    return answer.stdout


def test_a_program_measures_and_matches_on_a_master_and_two_workers(
    cluster: str, lake: Path, recording: Path, tmp_path: Path
) -> None:
    told, metrics = submit(tmp_path, cluster, MATCHING.format(lake=str(lake), recording=str(recording))).splitlines()
    assert told == f"{cluster} a:bob b:bob far:nobody gone:bob"
    check_metrics({"metrics": json.loads(metrics)}, recording)


def test_on_a_local_cluster_executors_get_the_package_as_one_file_and_make_tables(lake: Path, tmp_path: Path) -> None:
    package, program = tmp_path / "nearcast.zip", TABLES.format(lake=str(lake), warehouse=str(tmp_path / "warehouse"))
    subprocess.run([sys.executable, "-m", "nearcast.pipeline.package", str(package)], capture_output=True, check=True)
    sent = ["--archives", f"{package}#packages", "--conf", "spark.executorEnv.PYTHONPATH=packages"]
    home, tables = submit(tmp_path, "local-cluster[2,1,1024]", program, *sent).splitlines()
    assert home == "packages"
    assert json.loads(tables) == KEPT


MATCHING = """
import json
from pathlib import Path

from nearcast.pipeline.matching import match
from nearcast.pipeline.metrics import run_metrics
from nearcast.pipeline.session import spark_session
from nearcast.pipeline.tables import read_lake

spark = spark_session("a program")
recorded = read_lake(spark, Path({lake!r}))
events = recorded["events"].where("lat < 90").dropDuplicates(["event"])
found = match(events, recorded["reports"], recorded["subscriptions"]).collect()
shown = sorted((row["event"], "+".join(row["receivers"]) or "nobody") for row in found)
print(spark.sparkContext.master, *(f"{{event}}:{{who}}" for event, who in shown))
print(json.dumps(run_metrics(read_lake(spark, Path({recording!r}))).to_json()))
spark.stop()
"""

TABLES = """
import json
from pathlib import Path

import pyarrow as pa

from nearcast.pipeline.session import spark_session
from nearcast.pipeline.tables import Warehouse, refine


def homes(batches):
    import nearcast.pipeline

    for _ in batches:
        yield pa.RecordBatch.from_pydict({{"home": [Path(nearcast.pipeline.__file__).parents[2].name]}})


spark = spark_session("a program")
print(*spark.range(0, 1, 1, 1).mapInArrow(homes, "home string").first())
warehouse = Warehouse({warehouse!r})
*_, events = [refine(spark, warehouse, Path({lake!r}), name, 2**52) for name in ("unpublished", "events")]
print(json.dumps(events.to_json()))
spark.stop()
"""
