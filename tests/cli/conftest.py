"""What the tests of the demo share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from nearcast.cli.demo.streets import Streets


@pytest.fixture(scope="session")
def streets() -> Streets:
    from nearcast.cli.demo.ground import kind_of_ground
    from nearcast.cli.demo.streets import read_streets  # slow to import: most tests here do without

    return read_streets(kind_of_ground())
