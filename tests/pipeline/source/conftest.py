"""A broker, and a session that knows its source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.pipeline.source.live_broker import LiveBroker, live_broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    from nearcast.pipeline.source import register

    register(spark)
    return spark


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[LiveBroker]:
    with live_broker(tmp_path / "data") as it:
        yield it
