"""What the documents show of the broker is true: their commands and programs are run against one."""

import asyncio
import contextlib
import io
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.documents import ROOT, blocks
from tests.served import ServedBroker, served
from tests.waiting import PATIENCE

from nearcast.broker.settings import load


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedBroker]:
    with served(tmp_path_factory.mktemp("broker")) as running:
        yield running


def code_blocks(document: str, kind: str) -> list[str]:
    """The blocks of that kind."""
    return [code for _, code in blocks(ROOT / document, kind)]


def commands(document: str) -> list[str]:
    """Those of the console blocks, put together from their lines."""
    text = "\n".join(code_blocks(document, "console")).replace("\\\n", " ")
    return [line.removeprefix("$ ") for line in re.sub(r"\n    ", " ", text).splitlines() if line.strip()]


@pytest.mark.skipif(not shutil.which("mosquitto_pub"), reason="mosquitto-clients is not installed")
def test_the_mosquitto_clients_do_what_is_shown(broker: ServedBroker) -> None:
    shown = [line for line in commands("docs/mqtt.md") if line.startswith("mosquitto")]
    assert len(shown) == 4
    running = [
        subprocess.Popen([*shlex.split(line), "-p", str(broker.port)], stdout=subprocess.PIPE, text=True)
        for line in shown
    ]
    for process in running:
        output, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
        if "mosquitto_sub" in str(process.args):
            assert output == "traffic/jam blocked\n"


def test_the_program_for_paho_prints_what_is_shown(broker: ServedBroker) -> None:
    (program,) = code_blocks("docs/mqtt.md", "py")
    program = program.replace('"localhost", 1883', f'"127.0.0.1", {broker.port}')
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    assert answer.stdout == "traffic/jam blocked 49.8728,8.6512\n"


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_curl_publishes_and_asks(broker: ServedBroker) -> None:
    answers = []
    for line in commands("docs/broker.md"):
        words = shlex.split(line.replace("localhost:8080", broker.http))
        answers.append(subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout)
    published, found = answers
    assert '"ids"' in published
    assert '"severity":4' in found.replace(" ", "")


def test_the_settings_shown_can_be_read(tmp_path: Path) -> None:
    (text,) = code_blocks("docs/broker.md", "toml")
    assert tomllib.loads(text)
    (tmp_path / "broker.toml").write_text(text)
    settings = load(tmp_path / "broker.toml")
    assert settings.schemes.initial().name == "RADIAL"
    assert settings.schemes.transition_rules()


def test_the_two_terminals_of_the_readme(broker: ServedBroker) -> None:
    shown = [line.split("#  ")[0].split("   #")[0] for line in "\n".join(code_blocks("README.md", "sh")).splitlines()]
    pub = next(line for line in shown if line.startswith("nearcast pub"))
    sub = next(line for line in shown if line.startswith("nearcast sub"))
    command = str(Path(sys.executable).with_name("nearcast"))
    for line, more in ((pub, []), (sub, ["--count", "1"])):
        words = [command, *shlex.split(line)[1:], "--url", broker.url, *more]
        answer = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert answer.returncode == 0, answer.stderr
    assert "traffic/jam" in answer.stdout


def test_the_python_of_the_readme(broker: ServedBroker) -> None:
    (code,) = code_blocks("README.md", "py")
    code = code.replace("mqtt://localhost", broker.url).replace("print(event)", "print(event.topic); break")
    shared: dict[str, Any] = {}
    exec(f"import nearcast\nasync def main():\n{textwrap.indent(code, '    ')}", shared)  # noqa: S102 - that is the point
    with contextlib.redirect_stdout(io.StringIO()) as output:
        asyncio.run(asyncio.wait_for(shared["main"](), PATIENCE))
    assert output.getvalue() == "traffic/jam\n"
