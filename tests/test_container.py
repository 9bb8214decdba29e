"""``Containerfile``: what it names exists, its steps run, and what it starts is what it says.  No image is built: that needs a registry."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.waiting import PATIENCE, free_port

ROOT = Path(__file__).parents[1]
TOOLS = Path(sys.executable).parent
KNOWN = {
    "FROM",
    "WORKDIR",
    "COPY",
    "RUN",
    "ENV",
    "USER",
    "VOLUME",
    "EXPOSE",
    "STOPSIGNAL",
    "HEALTHCHECK",
    "ENTRYPOINT",
    "CMD",
}


class Instruction(NamedTuple):
    name: str
    value: str

    @property
    def command(self) -> list[str]:
        """Of the form that no shell reads."""
        found = json.loads(self.value[self.value.index("[") :])
        assert all(isinstance(each, str) for each in found)
        return list(found)


def _instructions() -> Iterator[Instruction]:
    text = re.sub(r"^#.*\n", "", (ROOT / "Containerfile").read_text(), flags=re.MULTILINE)
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip():
            name, _, value = line.partition(" ")
            yield Instruction(name, value.strip())


ALL = list(_instructions())
STAGES = [number for number, each in enumerate(ALL) if each.name == "FROM"]
FINAL = ALL[STAGES[-1] :]


def only(name: str) -> Instruction:
    [found] = [each for each in FINAL if each.name == name]
    return found


def test_every_instruction_is_known_and_both_stages_are_of_the_same_python() -> None:
    assert {each.name for each in ALL} <= KNOWN
    assert len({ALL[number].value.split()[0] for number in STAGES}) == 1
    for each in ALL:
        if each.name == "RUN":
            assert subprocess.run(["sh", "-n", "-c", each.value], check=False).returncode == 0, each.value


def _is_ignored(path: str) -> bool:
    """As the last pattern says that fits the path, or a folder above it."""
    ignored = False
    for line in (ROOT / ".containerignore").read_text().splitlines():
        if line and not line.startswith("#"):
            pattern = line.removeprefix("!")
            above = [path, *(parent.as_posix() for parent in Path(path).parents)]
            if any(fnmatch(each, pattern) or fnmatch(f"/{each}", pattern) for each in above):
                ignored = not line.startswith("!")
    return ignored


def test_what_is_copied_exists_and_is_not_ignored_and_nothing_else_is_sent() -> None:
    for each in ALL:
        if each.name == "COPY" and "--from=" not in each.value:
            for source in each.value.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert not _is_ignored(source), source
    for private in (".git/config", ".venv/bin/python", "tests/served.py", "docs/index.md", "nearcast-data/users"):
        assert _is_ignored(private), private
    assert _is_ignored("src/nearcast/__pycache__/x.pyc")


def test_it_runs_as_nobody_special_keeps_its_data_and_stops_on_sigterm() -> None:
    user, group = only("USER").value.split(":")
    assert int(user) > 0
    assert int(group) > 0
    assert only("STOPSIGNAL").value == "SIGTERM"
    assert only("VOLUME").value in only("CMD").command
    names = [each.name for each in FINAL]
    assert names.index("USER") < names.index("ENTRYPOINT"), "what comes after USER runs as that user"
    made = next(each.value for each in FINAL if each.name == "RUN")
    for folder in (only("VOLUME").value, "/var/cache/nearcast"):
        assert folder in made.partition("chown")[2]
    assert "NUMBA_CACHE_DIR=/var/cache/nearcast" in only("ENV").value


def test_the_wheel_is_built_from_what_is_copied_alone(tmp_path: Path) -> None:
    """The steps of the first stage, as far as they need no network, in a folder that has nothing else."""
    for each in ALL[: STAGES[1]]:
        if each.name == "COPY":
            *sources, target = each.value.split()
            for source in sources:
                name = target if (ROOT / source).is_dir() else f"{target}{source}"
                subprocess.run(["cp", "-r", ROOT / source, tmp_path / name], check=True)
    [build] = [each.value for each in ALL if each.name == "RUN" and "hatchling" in each.value]
    command = shlex.split(build.replace("/build/tools/bin", str(TOOLS)))
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=PATIENCE)
    assert list(tmp_path.glob("dist/nearcast-*.whl"))


def test_what_it_starts_is_healthy_and_ends_in_order(tmp_path: Path) -> None:
    ports = {"8883": str(free_port()), "8080": str(free_port())}
    settings = (ROOT / "scripts/container/broker.toml").read_text()
    check = " ".join(only("HEALTHCHECK").command[2:])
    assert only("EXPOSE").value == "8883"
    for known, free in ports.items():
        assert known in settings
        settings = settings.replace(known, free)
        check = check.replace(known, free)
    assert ports["8080"] in check
    (tmp_path / "broker.toml").write_text(settings)
    places = {"/var/lib/nearcast": str(tmp_path / "data"), "/etc/nearcast/broker.toml": str(tmp_path / "broker.toml")}
    [program] = only("ENTRYPOINT").command
    arguments = [places.get(each, each) for each in only("CMD").command]
    assert not {"/var/lib/nearcast", "/etc/nearcast/broker.toml"} & set(arguments)

    def healthy() -> bool:
        command = [sys.executable, "-c", check]
        return subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE).returncode == 0

    assert not healthy()
    process = subprocess.Popen([TOOLS / program, *arguments], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        said = []
        for line in process.stderr:
            said.append(line.strip())
            if said[-1] == "ready":
                break
        assert said[-1] == "ready", said
        assert healthy()
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
    assert not healthy()


@pytest.mark.parametrize("option", ["--target", "--directory"])
def test_the_build_tool_knows_its_options(option: str) -> None:
    asked = subprocess.run([TOOLS / "hatchling", "build", "--help"], capture_output=True, text=True, check=True)
    assert option in asked.stdout
