"""A Spark session that starts on any machine, without noise; the only module that knows how Spark is reached.

``spark_session`` gives the session that is running - of a notebook, of ``spark-submit``, of an earlier call - or starts one:
on all cores of this machine, on a cluster (``master``), or as a client of Spark Connect (``remote``).
"""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nearcast.errors import ConnectionFailed, InvalidSettings, JobFailed, SetupError
from nearcast.pipeline.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from nearcast.pipeline.settings import SparkSettings

_LOGGING: Final = Path(__file__).with_name("log4j2.properties")
_MASTER: Final = re.compile(
    r"local|local\[(\d+|\*)(, *\d+)?\]|local-cluster\[\d+,\d+,\d+\]|spark://[^:/]+:\d+(,[^:/]+:\d+)*|k8s://.+|yarn"
)
_PATIENCE: Final = 5.0
"""Seconds to wait for a master or a remote to take a connection; Spark itself would try for minutes."""

_CONNECT_PORT: Final = 15002

SQL_SETTINGS: Final[Mapping[str, str]] = {
    # Instants are UTC everywhere in nearcast; any other zone would move rows to the neighbouring date.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # No limit: to keep one, Spark adds up the bytes of a batch with every single row, which is more than half of what it does on
    # the way to Python.  The limit of rows (10,000) holds, for which ``matching.packing`` cuts its blobs; where rows may be
    # large, because they have payloads, ``limit_bytes`` sets one.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # The default forks two processes for every checkpoint file: a third of the latency of a stream.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # State of several kinds (transformWithState) is kept in RocksDB only, and changes of it are written rather than all.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # All of it only now and then: every tenth batch would wait for it by default.
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": "50",
}
"""What every session is told, also one that was running before."""

_LARGE_BATCH: Final = 64 << 20

FAST_START: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""Java options that save a third of the start and cost speed afterwards: right for tests, wrong for benchmarks."""


def spark_session(
    app_name: str = "nearcast",
    *,
    master: str = "local[*]",
    remote: str | None = None,
    ui: bool = False,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Give the running session, or start one; ``remote`` goes before ``master``, ``settings`` over all defaults.

    Java options in ``settings`` (``spark.driver.extraJavaOptions``) count only for the first session of a process:
    that is the one that starts the JVM.  Under ``spark-submit`` and in a notebook with a session, the master is theirs.

    Raises:
        SetupError: PySpark, what it needs for a remote, or a usable Java is missing.
        InvalidSettings: the master or the remote cannot be read.
        ConnectionFailed: nobody answers there.

    """
    running = _running()
    if running is not None:
        return _told(running, {**SQL_SETTINGS, **(settings or {})})
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(app_name)
    if remote is not None:
        _check_remote(remote)
        started = _started(builder.remote(remote), remote)
        return _told(started, {**SQL_SETTINGS, **(settings or {})})
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not submitted:
        _check_master(master)
        _prepare_environment(on_this_machine=_is_local(master))
        builder = builder.master(master)
    for name, value in _start_settings(master, ui=ui, submitted=submitted, settings=settings or {}).items():
        builder = builder.config(name, value)
    return _started(builder, master)


@contextmanager
def opened_session(spark: SparkSettings, app_name: str) -> Iterator[SparkSession]:
    """The session that a settings file asks for; it is stopped afterwards, unless it was running before."""
    settings = dict(spark.settings)
    if spark.shuffle_partitions is not None:
        settings.setdefault("spark.sql.shuffle.partitions", str(spark.shuffle_partitions))
    if spark.remote is None:
        settings.setdefault("spark.driver.memory", f"{max(1, spark.driver_memory >> 20)}m")
    running = _running()
    session = spark_session(app_name, master=spark.master, remote=spark.remote, ui=spark.ui, settings=settings)
    try:
        yield session
    finally:
        if session is not running:
            session.stop()


@contextmanager
def spark_failures() -> Iterator[None]:
    """Failures of Spark within the block as one of ours, in one line.

    Raises:
        JobFailed: Spark failed.

    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise JobFailed(f"Spark failed: {said_by_spark(error)}") from error


def said_by_spark(error: Exception) -> str:
    """The line of a complaint that says what is wrong, without the places in Spark's own code that follow."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # What nearcast itself has to say, in a process of Spark, comes at the end of a traceback.
    ours = next(filter(None, (re.match(r"nearcast\.errors\.\w+: (.+)", line) for line in lines)), None)
    if ours is not None:
        return ours[1]
    # Complaints of the Java side begin with the call that failed; what failed comes after it.
    named = (re.sub(r"^[: ]*([\w.$]+Exception: )", "", line) for line in lines if "Exception: " in line)
    return next(named, lines[0] if lines else type(error).__name__)


def limit_bytes(spark: SparkSession) -> None:
    """Before rows with payloads go to Python: a batch of Arrow holds 2 GiB at most, and memory less."""
    spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", str(_LARGE_BATCH))


def is_remote(spark: SparkSession) -> bool:
    """Whether the session is one of Spark Connect, where nothing but data frames can be asked for."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def ui_address(spark: SparkSession) -> str | None:
    """Where Spark shows its jobs; none if that is off, or the business of a server."""
    return None if is_remote(spark) else spark.sparkContext.uiWebUrl


def running_tasks(spark: SparkSession) -> tuple[int, int]:
    """How many tasks of the stages that are running now are done, and how many they have; no session of Spark Connect."""
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    known = [stage for stage in stages if stage is not None]
    return sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known)


def _running() -> SparkSession | None:
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SetupError(f"PySpark is missing ({error}): pip install 'nearcast[spark]'") from error
    # A complaint of Spark is raised, and need not be written to stderr as JSON besides.
    logging.getLogger("DataFrameQueryContextLogger").disabled = True
    return SparkSession.getActiveSession()


def _start_settings(master: str, *, ui: bool, submitted: bool, settings: Mapping[str, str]) -> dict[str, str]:
    chosen = {
        **SQL_SETTINGS,
        "spark.ui.enabled": str(ui).lower(),
        "spark.ui.showConsoleProgress": "false",
    }
    if not submitted and _is_local(master):
        # The default of 200 is for clusters: on a laptop most of a small job would be starting tasks.
        chosen["spark.sql.shuffle.partitions"] = str(2 * (os.cpu_count() or 1))
        chosen["spark.driver.host"] = chosen["spark.driver.bindAddress"] = "127.0.0.1"
    chosen |= settings
    java_options = chosen.pop("spark.driver.extraJavaOptions", "")
    log = f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"
    return {**chosen, "spark.driver.extraJavaOptions": f"{log} {java_options}".strip()}


def _started(builder: Any, where: str) -> SparkSession:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        session: SparkSession = builder.getOrCreate()
    except ImportError as error:
        raise SetupError(f"Spark Connect lacks a package ({error}): pip install 'pyspark[connect]'") from None
    except (PySparkException, Py4JError) as error:
        raise SetupError(f"Spark did not start on {where}: {said_by_spark(error)}") from error
    return session


def _told(session: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """The session with all of these settings that can still be changed."""
    for name, value in settings.items():
        if name.startswith("spark.sql.") and session.conf.isModifiable(name):
            session.conf.set(name, value)
    return session


def _is_local(master: str) -> bool:
    return master.startswith("local")


def _check_master(master: str) -> None:
    if _MASTER.fullmatch(master) is None:
        raise InvalidSettings(
            f"{master!r} is no master of Spark; possible: local[*], local[4], spark://HOST:PORT, k8s://ADDRESS, yarn"
        )
    if master == "yarn" and not {"HADOOP_CONF_DIR", "YARN_CONF_DIR"} & set(os.environ):
        raise SetupError("YARN is found through its configuration; set HADOOP_CONF_DIR to the folder that holds it")
    if master.startswith("spark://"):
        addresses = [address.rsplit(":", 1) for address in master.removeprefix("spark://").split(",")]
        if not any(_answers(host, int(port)) for host, port in addresses):
            raise ConnectionFailed(f"no Spark master answers at {master}; is it running, and is the port right?")


def _check_remote(remote: str) -> None:
    found = re.fullmatch(r"sc://([^:/;]+)(?::(\d+))?(/.*)?", remote)
    if found is None:
        raise InvalidSettings(f"{remote!r} is no address of Spark Connect; write sc://HOST:PORT")
    if not _answers(found[1], int(found[2] or _CONNECT_PORT)):
        raise ConnectionFailed(f"no Spark Connect server answers at {remote}; is it running, and is the port right?")


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=_PATIENCE):
            return True
    except (OSError, OverflowError):
        return False


def _prepare_environment(*, on_this_machine: bool) -> None:
    """Spark's launcher reads these from the environment and from nowhere else."""
    os.environ["JAVA_HOME"] = str(find_java().home)
    # Otherwise the workers take whatever `python3` is on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if on_this_machine:
        # Otherwise Spark looks for an address of this machine in the network, and may pick one that does not answer.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
