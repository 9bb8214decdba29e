"""What all tests share: how hard Hypothesis looks (HYPOTHESIS_PROFILE=thorough looks ten times as hard), one Spark."""

import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from tests.effort import HARDER, PROFILE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# No deadline: the first call of a kernel compiles it. The blob lets anyone repeat a failure seen elsewhere.
settings.register_profile(
    "ci", max_examples=100, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", settings.get_profile("ci"), max_examples=100 * HARDER)
settings.load_profile(PROFILE)

# A shell lets what it starts in the background ignore interruptions, and so would all programs that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """What matching needs is compiled once, before workers, and the brokers that they start, would do so side by side."""
    if hasattr(session.config, "workerinput"):
        return
    from nearcast.matching.compilation import compile_kernels, is_compiled

    if not is_compiled():
        compile_kernels()


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    """One small session for all tests of a worker: it takes longer to start than most tests to run."""
    from nearcast.pipeline.session import FAST_START, spark_session

    session = spark_session(
        "nearcast tests",
        master="local[2]",
        settings={"spark.driver.extraJavaOptions": FAST_START, "spark.sql.shuffle.partitions": "2"},
    )
    yield session
    session.stop()
