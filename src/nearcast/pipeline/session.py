"""A Spark session that starts on any machine, without noise."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from nearcast.errors import SetupError
from nearcast.pipeline.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOGGING = Path(__file__).with_name("log4j2.properties")

QUIET_LOCAL_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
"""What every session starts with; ``settings`` goes over it."""

FAST_START = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""Java options that save a third of the start and cost speed afterwards: right for tests, wrong for benchmarks."""


def spark_session(
    app_name: str, *, master: str = "local[*]", settings: Mapping[str, str] | None = None
) -> "SparkSession":
    """Give the running session, or start one.

    Java options in ``settings`` (``spark.driver.extraJavaOptions``) count only for the first session of a process:
    that is the one that starts the JVM.

    Raises:
        SetupError: PySpark or a usable Java is missing.

    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SetupError(f"PySpark is missing ({error}): pip install 'nearcast[spark]'") from error

    if SparkSession.getActiveSession() is None:
        _prepare_environment()
    chosen = QUIET_LOCAL_SETTINGS | dict(settings or {})
    java_options = chosen.pop("spark.driver.extraJavaOptions", "")
    builder = SparkSession.builder.appName(app_name).master(master)
    builder = builder.config(
        "spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={_LOGGING.as_uri()} {java_options}".strip()
    )
    for name, value in chosen.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _prepare_environment() -> None:
    """Spark's launcher reads these from the environment and from nowhere else."""
    os.environ["JAVA_HOME"] = str(find_java().home)
    # Otherwise the workers take whatever `python3` is on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    # Otherwise Spark looks for an address of this machine in the network, and may pick one that does not answer.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
