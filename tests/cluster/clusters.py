"""Spark clusters of several processes on this machine: started for a test, and ended by their process ids."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
from tests.waiting import SPARK_PATIENCE, free_port, wait_until

from nearcast.pipeline.java import find_java

HOME = Path(pyspark.__file__).parent
QUICK = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


def environment(folder: Path) -> dict[str, str]:
    """What Spark's scripts read, and nothing that an earlier session of this process has left behind."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    return {
        **kept,
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_LOG_DIR": str(folder),
        "SPARK_DAEMON_JAVA_OPTS": QUICK,
        # Of masters and workers, and of a Connect server, which Spark takes for one of them.
        "SPARK_DAEMON_MEMORY": "1g",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }


@contextlib.contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[str]:
    """A master and workers, each a process; gives the address of the master."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    here = ["--host", "127.0.0.1", "--webui-port", "0"]
    with contextlib.ExitStack() as stack:
        stack.enter_context(daemon(folder, "master", "master.Master", [*here, "--port", str(port)]))
        wait_for(folder / "master.log", r"New state: ALIVE")
        for number in range(workers):
            size = ["--cores", "1", "--memory", "1g"]
            stack.enter_context(daemon(folder, f"worker-{number}", "worker.Worker", [*here, *size, address]))
        for number in range(workers):
            wait_for(folder / f"worker-{number}.log", r"Successfully registered with master")
        yield address


@contextlib.contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """A Spark Connect server of two cores; gives its address."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    given = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    command = [str(HOME / "bin" / "spark-submit"), "--master", "local[2]", *given, "--class", server, "spark-internal"]
    with process(folder, "connect", command):
        wait_for_port(port, folder / "connect.log")
        yield f"sc://127.0.0.1:{port}"


@contextlib.contextmanager
def daemon(folder: Path, name: str, kind: str, arguments: list[str]) -> Iterator[None]:
    script = str(HOME / "bin" / "spark-class")
    with process(folder, name, [script, f"org.apache.spark.deploy.{kind}", *arguments]):
        yield


@contextlib.contextmanager
def process(folder: Path, name: str, command: list[str]) -> Iterator[None]:
    """In a group of its own, so that what it starts ends with it."""
    with (folder / f"{name}.log").open("wb") as log:
        started = subprocess.Popen(
            command, cwd=folder, env=environment(folder), stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGTERM)
        try:
            started.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)
            started.wait()


def wait_for(log: Path, pattern: str) -> None:
    """Until the log says so."""

    def said() -> str:
        return log.read_text(errors="replace")

    wait_until(
        lambda: re.search(pattern, said()) is not None,
        SPARK_PATIENCE,
        lambda: f"{log} does not say {pattern!r}, but {said()[-2000:]}",
    )


def wait_for_port(port: int, log: Path) -> None:
    def listens() -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        return False

    problem = f"nobody listens at {port}"
    wait_until(listens, SPARK_PATIENCE, lambda: f"{problem}: {log.read_text(errors='replace')[-2000:]}")
