"""Ten brokers in ten network namespaces, over wires that delay and lose packets."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.broker.federation.brokers import PHRASE
from tests.broker.federation.lossy_wires import namespaces_on_wires
from tests.documents import ROOT
from tests.served import COMMAND
from tests.waiting import wait_until

BROKERS = 10
LONG = 300.0
SETTINGS = """
[listen]
host = "{address}"
port = 1883
http_port = "off"
plain = true

[access]
anonymous = "always"

[[access.rule]]
anonymous = true
publish = ["#"]
subscribe = ["#"]
may_address = true

[federation]
name = "{name}"
listen = "{address}:7400"
join = {join}
secret_file = "{secret}"
"""


class Broker:
    """A process in a namespace."""

    def __init__(self, folder: Path, number: int, place: tuple[str, str], join: list[str]) -> None:
        self.namespace, self.address = place
        self.said: list[str] = []
        folder.mkdir()
        secret = folder / "secret"
        secret.write_text(PHRASE)
        self._folder = folder
        settings = SETTINGS.format(address=self.address, name=f"b{number}", join=join, secret=secret)
        (folder / "settings.toml").write_text(settings.replace("'", '"'))
        self.process: subprocess.Popen[str]
        self._reading: threading.Thread

    def start(self) -> None:
        command = [str(COMMAND), "serve", "--data", str(self._folder / "data")]
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", self.namespace, *command, "--config", str(self._folder / "settings.toml")],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "NO_COLOR": "1"},
        )
        self.said.clear()
        self._reading = threading.Thread(target=self._read, args=(self.process,), daemon=True)
        self._reading.start()
        wait_until(lambda: "ready" in self.said, LONG, lambda: "\n".join(self.said))

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        for line in process.stderr:
            self.said.append(line.rstrip())

    def reaches(self, others: int) -> bool:
        trees = [line for line in self.said if "brokers in reach" in line]
        return bool(trees) and f"has {others + 1} brokers" in trees[-1]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reading.join()
        assert self.process.stderr is not None
        self.process.stderr.close()


class Crowd:
    """The people, in a namespace of their own."""

    def __init__(self, namespace: str, brokers: list[Broker]) -> None:
        urls = [f"mqtt://{broker.address}" for broker in brokers]
        program = [sys.executable, "-m", "tests.broker.federation.people_on_wires", *urls]
        self._process = subprocess.Popen(
            ["ip", "netns", "exec", namespace, *program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        )

    def hears(self, word: str) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline().strip() == word

    def do(self, command: str, then: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        self.hears(then)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


@contextmanager
def ten_brokers(folder: Path, places: list[tuple[str, str]]) -> Iterator[list[Broker]]:
    brokers = [
        Broker(folder / f"b{number}", number, place, [f"{places[0][1]}:7400"] if number else [])
        for number, place in enumerate(places)
    ]
    with ExitStack() as stack:
        for broker in brokers:
            stack.callback(broker.kill)
            broker.start()
        wait_until(lambda: all(broker.reaches(len(brokers) - 1) for broker in brokers), LONG)
        yield brokers


@pytest.mark.slow
def test_over_wires_that_delay_and_lose_everybody_gets_everything_once_also_when_a_broker_falls(tmp_path: Path) -> None:
    with namespaces_on_wires(BROKERS + 1, loss=0.02, shortest=0.01, longest=0.05) as (places, wires):
        *homes, outside = places
        with ten_brokers(tmp_path, homes) as brokers, ExitStack() as stack:
            crowd = Crowd(outside[0], brokers)
            stack.callback(crowd.end)
            crowd.hears("ready")
            crowd.do("publish quiet", "acknowledged")
            crowd.do("wait", "everybody has it")
            victim = brokers[3]
            victim.kill()
            crowd.do("publish fallen 0 5 9", "acknowledged")
            victim.start()
            crowd.do("wait", "everybody has it")
            crowd.do("publish healed", "acknowledged")
            crowd.do("wait", "everybody has it")
        assert wires.lost > 0
