"""One broker for all tests that leave it alone."""

from collections.abc import Iterator

import pytest
from tests.served import ServedBroker, served

from nearcast.broker.access.users import add_user

SETTINGS = """
[listen]
tls_port = "any"
websocket_port = "any"
websocket_tls_port = "any"

[schemes.territory]
south = -0.01
west = -0.01
north = 0.02
east = 0.02

[[access.rule]]
anonymous = true
publish = ["#"]
subscribe = ["#"]
may_address = true

[[access.rule]]
users = ["ada"]
publish = ["#"]
subscribe = ["#"]
may_address = true
plans = true
"""
USER, PASSWORD = "ada", "correct-horse"


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedBroker]:
    folder = tmp_path_factory.mktemp("broker")
    (folder / "data").mkdir()
    add_user(folder / "data" / "users", USER, PASSWORD)
    with served(folder, SETTINGS) as running:
        yield running
