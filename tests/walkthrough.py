"""Documents that lead through something, step by step: every command is run, and prints what is shown.

In the order of the document, in one folder:

- a block with a title (``toml title="broker.toml"``) is a file;
- ``console``: each line behind ``$`` is run, and prints what stands below it, where ``...`` stands for anything.  ``nearcast serve``
  goes on in the background, as in a terminal of its own, until the document ends;
  ``nearcast pipeline`` runs in this process, on the Spark that is there;
- ``py``: is run, and prints what the ``txt`` block behind it says.

Ports that documents name are free ones here.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.documents import titled_blocks
from tests.waiting import PATIENCE, SPARK_PATIENCE

from nearcast.cli import main

PORTS: Final = (1883, 8080, 8883, 8884, 9001, 2883, 9090, 7400, 7401)
SEARCHED: Final = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
"""Where programs are looked for: those of this environment first."""


@dataclass
class Walkthrough:
    """One document in one folder."""

    folder: Path
    ports: dict[int, int] = field(default_factory=dict)
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "walkthrough"})
    """What programs of the document have left behind."""

    _serving: list[subprocess.Popen[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        with contextlib.ExitStack() as held:  # all at once, so that no two are the same
            for port in PORTS:
                reserved = held.enter_context(socket.socket())
                reserved.bind(("127.0.0.1", 0))
                self.ports[port] = reserved.getsockname()[1]

    def follow(self, document: Path) -> None:
        try:
            printed = ""
            for kind, title, code in titled_blocks(document):
                if title:
                    (self.folder / title).write_text(self.here(code))
                elif kind == "console":
                    for command, shown in steps(code):
                        self._step(command, shown)
                elif kind == "py":
                    printed = self._program(code, document.name)
                elif kind == "txt":
                    assert_like(printed, code)
        finally:
            for process in reversed(self._serving):
                process.terminate()
                process.communicate(timeout=PATIENCE)

    def here(self, text: str) -> str:
        """The same with the ports of this machine."""
        text = re.sub(r"mqtt://localhost(?!:)", "mqtt://localhost:1883", text)
        for shown, port in self.ports.items():
            text = re.sub(rf"(?<!\d){shown}(?!\d)", str(port), text)
        return text

    def _step(self, command: str, shown: str) -> None:
        if command.startswith("nearcast serve"):
            self._serve(command, shown)
            return
        if command.startswith("nearcast pipeline"):
            with contextlib.redirect_stdout(io.StringIO()) as said:
                assert main(shlex.split(self.here(command))[1:]) == 0, command
            assert_like(said.getvalue(), shown, command)
            return
        ran = subprocess.run(
            ["sh", "-c", self.here(command)],
            cwd=self.folder,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=SPARK_PATIENCE,  # a simulation takes long on a machine that has other work
            check=False,
        )
        # What fails on purpose is shown with what it says on stderr.
        assert ran.returncode == 0 or shown, f"{command}: {ran.stderr}"
        assert_like(ran.stdout if ran.returncode == 0 else ran.stdout + ran.stderr, self.here(shown), command)

    def _serve(self, command: str, shown: str) -> None:
        if "--config" not in command:
            command += "" if "--port" in command else " --port 1883"
            command += "" if "--http-port" in command else " --http-port 8080"
        process = subprocess.Popen(
            ["sh", "-c", f"exec {self.here(command)}"],
            cwd=self.folder,
            env=self._environment(),
            stderr=subprocess.PIPE,
            text=True,
        )
        self._serving.append(process)
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if line == "ready\n":
                break
        threading.Thread(target=process.stderr.read, daemon=True).start()  # or it would wait for a reader some day
        assert said[-1:] == ["ready\n"], "".join(said)
        assert set(self.here(shown).splitlines(keepends=True)) <= set(said), said

    def _program(self, code: str, name: str) -> str:
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(compile(self.here(code), name, "exec", dont_inherit=True), self.names)  # noqa: S102 - that is the point
        return said.getvalue()

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PATH": SEARCHED,
            "NO_COLOR": "1",
            "COLUMNS": "120",
            "NEARCAST_URL": f"mqtt://localhost:{self.ports[1883]}",
            "NEARCAST_HTTP": f"http://localhost:{self.ports[8080]}",
        }


def steps(session: str) -> Iterator[tuple[str, str]]:
    """Commands, and what each of them prints."""
    _, *parts = re.split(r"^\$ ", session, flags=re.MULTILINE)
    for part in parts:
        lines = part.splitlines(keepends=True)
        end = next(number for number, line in enumerate(lines) if not line.endswith("\\\n")) + 1
        yield "".join(lines[:end]).strip(), "".join(lines[end:])


def assert_like(said: str, shown: str, what: str = "") -> None:
    """Where ``...`` stands in what is shown, anything may be said."""
    pattern = ".*?".join(re.escape(part) for part in shown.split("..."))
    assert re.fullmatch(pattern, said, re.DOTALL), f"{what}\n--- said\n{said}\n--- shown\n{shown}"
