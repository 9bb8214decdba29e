"""A wheel that installs: into an environment without this checkout, where the command and the broker with its dashboard work."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[1]
TOOLS = Path(sys.executable).parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [str(TOOLS / "hatchling"), "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=PATIENCE)
    [made] = folder.glob("nearcast-*.whl")
    return made


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh one without network: nearcast from the wheel, the locked packages from the environment of the tests.

    A path that a .pth file names is searched, but .pth files in it are not read: so this checkout, which is installed there to be
    edited, is not found.
    """
    venv = tmp_path_factory.mktemp("installed") / "venv"
    subprocess.run([TOOLS / "uv", "venv", "--quiet", "--offline", "--python", sys.executable, venv], check=True)
    command = [
        str(TOOLS / "uv"),
        "pip",
        "install",
        "--quiet",
        "--offline",
        "--no-deps",
        "--python",
        f"{venv}/bin/python",
    ]
    subprocess.run([*command, str(wheel)], check=True, timeout=PATIENCE)
    [packages] = (venv / "lib").glob("python*/site-packages")
    [locked] = [path for path in site.getsitepackages() if Path(path).is_dir()]
    (packages / "locked.pth").write_text(f"{locked}\n")
    _hand_on_what_is_compiled(packages)
    return venv


def _hand_on_what_is_compiled(packages: Path) -> None:
    """Compiling takes a minute or two in a new place; what comes out is the same, and known by name and time of its source."""
    for compiled in (ROOT / "src").glob("nearcast/**/__pycache__/*.nb[ic]"):
        there = packages / compiled.relative_to(ROOT / "src")
        there.parent.mkdir(exist_ok=True)
        shutil.copy2(compiled, there)
    for source in (ROOT / "src").glob("nearcast/**/*.py"):
        seen = source.stat()
        os.utime(packages / source.relative_to(ROOT / "src"), ns=(seen.st_atime_ns, seen.st_mtime_ns))


def _run(environment: Path, *command: str) -> str:
    done = subprocess.run(
        [environment / "bin" / command[0], *command[1:]],
        capture_output=True,
        text=True,
        check=False,
        cwd=environment.parent,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_everything_that_is_no_program_is_in_the_wheel_and_nothing_else(wheel: Path) -> None:
    source = ROOT / "src"
    kept = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "src"], capture_output=True, text=True, check=False
    ).stdout.splitlines()
    if not kept:  # not a checkout
        kept = [
            path.relative_to(ROOT).as_posix()
            for path in source.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        ]
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert {each.removeprefix("src/") for each in kept if (ROOT / each).exists()} <= names
    assert all(name.startswith("nearcast/") for name in names)


def test_the_command_is_that_of_the_wheel(environment: Path) -> None:
    assert _run(environment, "nearcast", "--version").startswith("nearcast ")
    found = _run(environment, "python", "-c", "import nearcast; print(nearcast.__file__)")
    assert Path(found.strip()).is_relative_to(environment)


@pytest.fixture
def serving(environment: Path, tmp_path: Path) -> Iterator[str]:
    process = subprocess.Popen(
        [environment / "bin" / "nearcast", "serve", "--port", "any", "--http-port", "any", "--data", tmp_path / "data"],
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line.strip())
        if said[-1] == "ready":
            break
    else:
        process.wait(PATIENCE)
        process.stderr.close()
        raise AssertionError("\n".join(said))
    try:
        yield next(line.partition(" on ")[2] for line in said if line.startswith("dashboard on "))
    finally:
        process.terminate()
        assert process.wait(PATIENCE) == 0
        process.stderr.close()


def test_the_broker_of_the_wheel_serves_its_dashboard(serving: str) -> None:
    def get(path: str) -> bytes:
        with urllib.request.urlopen(serving + path, timeout=PATIENCE) as answer:  # noqa: S310 - on this machine
            return bytes(answer.read())

    page = get("")
    assert b"main.js" in page
    assert get("main.js") == (ROOT / "src/nearcast/dashboard/static/main.js").read_bytes()
