"""A lake, and the warehouse of the tables that are made of it."""

from pathlib import Path

import pytest
from tests.pipeline.tables.lakes import Lake

from nearcast.pipeline.tables import Warehouse


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "warehouse")
