"""Several ``nearcast serve`` of one federation, each a process of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
from tests.served import ServedBroker
from tests.waiting import free_port, wait_until

PHRASE = "known to all of them, and to nobody else"
SETTINGS = """
[federation]
name = "{name}"
listen = "127.0.0.1:{port}"
join = {join}
secret_file = "{secret}"
{more}

[[access.rule]]
anonymous = true
publish = ["#"]
subscribe = ["#"]
may_address = true
plans = true
"""


class FederatedBroker(ServedBroker):
    def __init__(self, folder: Path, name: str, port: int, join: list[int], more: str = "") -> None:
        folder.mkdir()
        secret = folder / "secret"
        secret.write_text(PHRASE)
        contacts = json.dumps([f"127.0.0.1:{each}" for each in join])
        super().__init__(folder, SETTINGS.format(name=name, port=port, join=contacts, secret=secret, more=more))
        self.name = name
        self.federation_port = port

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = httpx.get(f"{self.http}/status", timeout=30).json()["federation"]
        return found

    def reaches(self) -> int:
        """How many others."""
        return sum(self.status()["brokers"].values())


@contextmanager
def federation(folder: Path, size: int, more: str = "") -> Iterator[list[FederatedBroker]]:
    """So many brokers that know each other: the others have joined the first."""
    ports = [free_port() for _ in range(size)]
    brokers = [
        FederatedBroker(folder / f"b{number}", f"b{number}", port, ports[: min(number, 1)], more)
        for number, port in enumerate(ports)
    ]
    with ExitStack() as stack:
        for broker in brokers:
            broker.start()
            stack.callback(_stop, broker)
        together(brokers)
        yield brokers


def _stop(broker: FederatedBroker) -> None:
    if broker.is_running:
        broker.stop()


def together(brokers: list[FederatedBroker]) -> None:
    """Wait until all that run reach each other."""
    running = [broker for broker in brokers if broker.is_running]
    wait_until(
        lambda: all(broker.reaches() == len(running) - 1 for broker in running),
        problem=lambda: "\n".join(f"{broker.name}: {broker.status()['brokers']}" for broker in running),
    )
